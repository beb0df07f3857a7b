package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

// exportAtDoor writes whole letters as JSON, one a line: those of ids, or those that s chooses.
func exportAtDoor(ctx context.Context, e *env, s *selection, ids []uint64, w io.Writer, each func(deadletter.Progress)) (t deadletter.Counts, err error) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	write := func(id uint64, j *events.LetterJSON, err error) error {
		l := &events.DeadLetter{Seq: id}
		if err == nil {
			if l, err = j.Letter(); err == nil {
				if err := enc.Encode(l.JSON(true)); err != nil {
					return err
				}
			}
		}
		if t.Total = max(t.Total, t.Done+t.Failed+1); err == nil {
			t.Done++
		} else {
			t.Failed++
		}
		each(deadletter.Progress{Letter: l, Err: err, Counts: t})
		return nil
	}
	err = withDoor(e, func(c *control.Client) error {
		if len(ids) > 0 {
			t.Total = len(ids)
			return exportIDs(ctx, c, ids, write)
		}
		r := control.ListLetters{Filter: s.Filter}
		return everyPage(s.Limit, func(limit int) (int, bool, error) {
			r.Limit = limit
			page, err := c.WholeLetters(ctx, r)
			if err != nil {
				return 0, false, err
			}
			r.After = page.Next
			for _, id := range page.Unreadable {
				if err := write(id, nil, fmt.Errorf("message %d: not a dead letter", id)); err != nil {
					return 0, false, err
				}
			}
			for _, j := range page.Letters {
				if err := write(j.ID, j, nil); err != nil {
					return 0, false, err
				}
			}
			return len(page.Letters) + len(page.Unreadable), page.Next != 0, nil
		})
	})
	return t, err
}

// exportIDs exports single letters. One that is not there does not end the export.
func exportIDs(ctx context.Context, c *control.Client, ids []uint64, write func(uint64, *events.LetterJSON, error) error) error {
	for _, id := range ids {
		j, err := c.WholeLetter(ctx, id)
		var refused *control.Error
		if err != nil && (!errors.As(err, &refused) || refused.Code != 404) {
			return err
		}
		if err := write(id, j, err); err != nil {
			return err
		}
	}
	return nil
}

// A body of letters is sent when it has this many letters or bytes. One letter may have more bytes.
const (
	importLetters = 200
	importBytes   = 2 << 20
)

// importing is an import at an owner's door.
type importing struct {
	e  *env
	c  *control.Client
	up upload
	t  deadletter.ImportCounts

	body        bytes.Buffer
	letters     int
	first, last int // lines of the body
}

func importAtDoor(ctx context.Context, e *env, in io.Reader) error {
	i := &importing{e: e}
	err := withDoor(e, func(c *control.Client) (err error) {
		if i.up, err = openUpload(e); err != nil {
			return err
		}
		defer i.up.close()
		i.c = c
		return i.all(ctx, in)
	})
	return tellImported(ctx, e, i.t, err)
}

// all sends the letters of in. Those before a line that is no letter of the owner are stored.
func (i *importing) all(ctx context.Context, in io.Reader) error {
	for l, err := range deadletter.Lines(ctx, in, &i.t.Line) {
		if err == nil {
			if err = l.ImportFor(i.e.cfg.Owner); err != nil {
				err = fmt.Errorf("line %d: %w", i.t.Line, err)
			}
		}
		if err == nil {
			err = i.add(ctx, l)
		}
		if err != nil {
			return errors.Join(err, i.flush(ctx))
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return i.flush(ctx)
}

// add adds a letter to the next body.
func (i *importing) add(ctx context.Context, l *events.DeadLetter) error {
	j := l.JSON(true)
	text, err := json.Marshal(j)
	if err == nil && len(text) > importBytes && j.Body != nil { // JSON escapes may take six times the bytes
		j.Body, j.BodyBase64 = nil, l.Body
		text, err = json.Marshal(j)
	}
	if err != nil {
		return err
	}
	if len(text)+1 > control.MaxImportBody {
		return fmt.Errorf("line %d: the letter has %d bytes: at most %d are allowed", i.t.Line, len(text), control.MaxImportBody-1)
	}
	if i.letters == importLetters || i.letters > 0 && i.body.Len()+len(text) > importBytes {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	if i.letters == 0 {
		i.first = i.t.Line
	}
	i.body.Write(text)
	i.body.WriteByte('\n')
	i.last = i.t.Line
	i.letters++
	return nil
}

// flush sends the next body.
func (i *importing) flush(ctx context.Context) error {
	if i.letters == 0 {
		return nil
	}
	body, err := storeBody(ctx, i.up, i.e.cfg.Owner, i.body.Bytes())
	if err == nil {
		var done control.ImportedLetters
		done, err = i.c.ImportLetters(ctx, control.ImportLetters{Owner: i.e.cfg.Owner, Body: body})
		i.t.Stored += done.Stored
		i.t.There += done.There
	}
	i.body.Reset()
	i.letters = 0
	if err != nil {
		return fmt.Errorf("lines %d to %d: %w", i.first, i.last, err)
	}
	return nil
}
