package deadletter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// maxLetterLine limits a line of an import, in bytes: a body has up to 8 MiB, and JSON may need six bytes for one byte.
const maxLetterLine = 64 << 20

// Export writes the complete letters of s to w as JSON, one per line (docs/reference/wire.md, "As JSON"). Import makes
// the same letters from it. Export reads one letter at a time. each (may be nil) is called for every letter. After a
// letter that cannot be read, Export continues with the rest.
func (d *Store) Export(ctx context.Context, s Selection, w io.Writer, each func(Progress)) (t Counts, err error) {
	letters, err := d.selected(ctx, s, &t)
	if err != nil {
		return t, err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for l, err := range letters {
		if l == nil || ctx.Err() != nil {
			return t, errors.Join(err, ctx.Err())
		}
		if err == nil {
			if err := enc.Encode(l.JSON(true)); err != nil {
				return t, err
			}
		}
		t.count(l, err, each)
	}
	return t, ctx.Err()
}

// ImportCounts is the progress of an import.
type ImportCounts struct {
	Line   int // lines read
	Stored int
	There  int // letters that were there already
}

// Import stores the letters that Export wrote, except those that exist already. So it may be repeated after an
// interruption. each (may be nil) is called with the progress. Import ends at the first line that is no letter, and the
// error names that line. The lines before it are stored.
func (d *Store) Import(ctx context.Context, r io.Reader, each func(ImportCounts)) (t ImportCounts, err error) {
	if _, err := d.open(ctx); err != nil {
		return t, err
	}
	for letter, err := range Lines(ctx, r, &t.Line) {
		if err != nil {
			return t, err
		}
		begun, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterPatience)
		stored, err := d.Put(begun, letter, nil)
		cancel()
		if err != nil {
			return t, fmt.Errorf("line %d: %w", t.Line, err)
		}
		if stored {
			t.Stored++
		} else {
			t.There++
		}
		if each != nil {
			each(t)
		}
	}
	return t, ctx.Err()
}

// Lines iterates over the letters that Export wrote, and counts their lines in line, until ctx is done. It ends at the
// first line that is no letter, with an error that names the line.
func Lines(ctx context.Context, r io.Reader, line *int) iter.Seq2[*events.DeadLetter, error] {
	return func(yield func(*events.DeadLetter, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLetterLine)
		for ctx.Err() == nil && lines.Scan() {
			*line++
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			letter, err := events.ParseLetter(lines.Bytes())
			if err != nil {
				yield(nil, fmt.Errorf("line %d: %w", *line, err))
				return
			}
			if !yield(letter, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("line %d: %w", *line+1, err))
		}
	}
}

// maxSame is how many letters imports store under one subject: each is compared with those before. There is more than
// one only if the event stream was deleted and counts from the start again.
const maxSame = 16

// Put stores a letter unless it exists already. admit (may be nil) gets the size of a letter that does not, and
// may refuse it.
func (d *Store) Put(ctx context.Context, letter *events.DeadLetter,
	admit func(size int) error) (stored bool, err error) {
	letter.Imported = time.Now().UTC()
	m := letterMessage(letter, d.subjects.DeadLetter(letter, letter.Failure.Reason))
	same := d.subjects.DeadLetter(letter, anyReason)
	m.Header.Set(jsapi.HeaderExpectLastSubjectSubject, same)
	for {
		last, there, err := d.find(ctx, letter, same)
		if err != nil || there {
			return false, err
		}
		if admit != nil {
			if err := admit(m.Size()); err != nil {
				return false, err
			}
			admit = nil
		}
		m.Header.Set(jsapi.HeaderExpectLastSubjectSeq, strconv.FormatUint(last, 10))
		_, err = d.js.PublishMsg(ctx, m, jetstream.WithExpectStream(events.StreamDead))
		if jsapi.IsWrongLastSequence(err) {
			continue // another client has just stored one there
		}
		return err == nil, err
	}
}

// ErrTooManySame is the error of a letter whose place has too many letters.
var ErrTooManySame = fmt.Errorf("there are %d letters of events with this stream and streamSeq already", maxSame)

// find looks for a letter under its subject, with any reason. last is the number of the last letter there.
func (d *Store) find(ctx context.Context, letter *events.DeadLetter,
	subject string) (last uint64, there bool, err error) {
	n := 0
	for m, err := range stored.All(ctx, d.js.Conn(), events.StreamDead, subject, 1) {
		if err != nil {
			return 0, false, err
		}
		last = m.Sequence
		if old, err := decodeDead(m); err == nil && old.At.Equal(letter.At) && old.Stream == letter.Stream &&
			old.StreamSeq == letter.StreamSeq {
			return last, true, nil
		}
		if n++; n == maxSame {
			return 0, false, ErrTooManySame
		}
	}
	return last, false, nil
}
