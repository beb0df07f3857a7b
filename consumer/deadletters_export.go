package consumer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// maxLetterLine bounds a line of an import, bytes: a body of 8 MiB, and JSON may write six bytes for one.
const maxLetterLine = 64 << 20

// Export writes the letters of s to w as JSON, one a line (docs/wire.md, "As JSON"), whole: Import makes the same letters of it. It reads one at
// a time. each (may be nil) is told of every letter; the error of one that cannot be read leaves the rest.
func (d *DeadLetters) Export(ctx context.Context, s Selection, w io.Writer, each func(Progress)) (t Tally, err error) {
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
			t.Done++
		} else {
			t.Failed++
		}
		if each != nil {
			each(Progress{l, err, t})
		}
	}
	return t, ctx.Err()
}

// ImportTally is how far an import has come.
type ImportTally struct {
	Line   int // read
	Stored int
	There  int // letters that were there already
}

// Import stores the letters that Export wrote, but for those that are there already: so it may be repeated after whatever interrupted it. each
// (may be nil) is told how far it is. It ends at the first line that is no letter, which the error names; the lines before it are stored.
func (d *DeadLetters) Import(ctx context.Context, r io.Reader, each func(ImportTally)) (t ImportTally, err error) {
	if _, err := d.open(ctx); err != nil {
		return t, err
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLetterLine)
	for ctx.Err() == nil && lines.Scan() {
		t.Line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		letter, err := events.ParseLetter(lines.Bytes())
		if err != nil {
			return t, fmt.Errorf("line %d: %w", t.Line, err)
		}
		begun, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterPatience)
		stored, err := d.put(begun, letter)
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
	if err := lines.Err(); err != nil {
		return t, fmt.Errorf("line %d: %w", t.Line+1, err)
	}
	return t, ctx.Err()
}

// put stores a letter unless it is there.
func (d *DeadLetters) put(ctx context.Context, letter *events.DeadLetter) (stored bool, err error) {
	letter.Imported = time.Now().UTC()
	m := &nats.Msg{Subject: d.subjects.DeadLetter(letter, letter.Failure.Reason), Header: nats.Header(letter.Encode()), Data: letter.Body}
	same := d.subjects.DeadLetter(letter, anyReason)
	m.Header.Set(headerExpectLastSubjectSubject, same)
	for {
		last, there, err := d.find(ctx, letter, same)
		if err != nil || there {
			return false, err
		}
		m.Header.Set(headerExpectLastSubjectSeq, strconv.FormatUint(last, 10))
		_, err = d.js.PublishMsg(ctx, m, jetstream.WithExpectStream(StreamDead))
		var api *jetstream.APIError
		if errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence {
			continue // somebody else has just stored one there
		}
		return err == nil, err
	}
}

// find looks for a letter under its subject, whatever its reason. last is the number of the last that there is.
func (d *DeadLetters) find(ctx context.Context, letter *events.DeadLetter, subject string) (last uint64, there bool, err error) {
	for m, err := range stored.All(ctx, d.js.Conn(), StreamDead, subject, 1) {
		if err != nil {
			return 0, false, err
		}
		last = m.Sequence
		if old, err := decodeDead(m); err == nil && old.At.Equal(letter.At) && old.Stream == letter.Stream && old.StreamSeq == letter.StreamSeq {
			return last, true, nil
		}
	}
	return last, false, nil
}
