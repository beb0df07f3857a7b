package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
)

// Bounds of an import of letters.
const (
	// MaxImportBody is the most bytes of letters that come in one body: one letter of any size has room.
	MaxImportBody = 25 << 20
	// MaxImportLetters is how many lines a body has.
	MaxImportLetters = 1000
	// importTime is how long a process stores letters of one request, and importPatience how long storing one may take.
	importTime, importPatience = 5 * time.Second, 10 * time.Second
)

// ImportLetters stores letters of an export, one a line, that came in parts as a body of their owner.
type ImportLetters struct {
	Owner string       `json:"owner"`
	Body  UploadedBody `json:"body"`
	From  int          `json:"from,omitempty"` // line where it begins
}

// ImportedLetters is how far an import came.
type ImportedLetters struct {
	Stored int `json:"stored"`
	There  int `json:"there"`          // were there already
	Next   int `json:"next,omitempty"` // line where the next request begins; 0 at the end
}

// recorded is what the audit stream tells of an import.
func (i ImportedLetters) recorded() any {
	if i.Stored == 0 {
		return nil
	}
	return map[string]int{"number": i.Stored}
}

// importLetters stores letters of an owner. It checks all before it stores the first one.
func (s *Server) importLetters(ctx context.Context, r ImportLetters) (answer ImportedLetters, err error) {
	switch err := events.CheckName("owner", r.Owner); {
	case err != nil:
		return answer, wrongName("owner", err)
	case r.From < 0 || r.From >= MaxImportLetters:
		return answer, wrongField("from", " is %d: it is 0 to %d", r.From, MaxImportLetters-1)
	}
	if err := r.Body.check(MaxImportBody); err != nil {
		return answer, err
	}
	err = s.bodies.with(ctx, r.Owner, r.Body, func(data []byte) (bool, error) {
		err := eachLetter(data, r.Owner, 0, func(int, *events.DeadLetter) error { return nil })
		if err == nil {
			answer, err = storeLetters(ctx, s, r, data)
		}
		return answer.Next > 0, err
	})
	return answer, err
}

// storeLetters stores letters until its time is over, or one cannot be stored. That is an error only if it stored none
// before: then nothing is left to tell.
func storeLetters(ctx context.Context, s *Server, r ImportLetters, data []byte) (answer ImportedLetters, err error) {
	until := time.Now().Add(importTime)
	err = eachLetter(data, r.Owner, r.From, func(line int, l *events.DeadLetter) error {
		progress := answer.Stored+answer.There > 0
		if progress && (time.Now().After(until) || ctx.Err() != nil) {
			answer.Next = line
			return errLater
		}
		begun, cancel := context.WithTimeout(context.WithoutCancel(ctx), importPatience) // half a letter is none
		defer cancel()
		stored, err := s.dead.Put(begun, l,
			func(size int) error { return refusedLetter(s.cfg.Process.AdmitLetter(r.Owner, size)) })
		switch {
		case err != nil && progress:
			answer.Next = line
			return errLater
		case errors.Is(err, deadletter.ErrTooManySame):
			return &Error{Code: http.StatusConflict, Text: fmt.Sprintf("line %d: %v", line+1, err)}
		case err != nil:
			return fmt.Errorf("line %d: %w", line+1, err)
		case stored:
			answer.Stored++
		default:
			answer.There++
		}
		return nil
	})
	if errors.Is(err, errLater) {
		err = nil
	}
	return answer, err
}

// errLater ends a request whose next one goes on.
var errLater = errors.New("later")

// refusedLetter is the error of a letter that is not admitted, or nil.
func refusedLetter(f *events.Failure) error {
	switch {
	case f == nil:
		return nil
	case f.Reason == events.ReasonRate:
		return &Error{Code: http.StatusTooManyRequests, Text: f.Error()}
	}
	return &Error{Code: http.StatusServiceUnavailable, Text: f.Error()}
}

// eachLetter calls do for the letters of owner in data, from a line on, one at a time. Lines count from 0, and in
// errors from 1.
func eachLetter(data []byte, owner string, from int, do func(line int, l *events.DeadLetter) error) error {
	line := -1
	for text := range bytes.Lines(data) {
		line++
		if line >= MaxImportLetters {
			return wrongField("body", " has more than %d lines: import the others with another request", MaxImportLetters)
		}
		if line < from || len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l, err := events.ParseLetter(text)
		switch {
		case err != nil:
			return refused("line %d: %v", line+1, err)
		case l.Owner != owner:
			return &Error{Code: http.StatusForbidden, Text: fmt.Sprintf("line %d: the letter is of owner %.80q, and not of %s", line+1,
				l.Owner, owner)}
		}
		if err := l.ImportFor(owner); err != nil {
			return refused("line %d: %v", line+1, err)
		}
		if err := do(line, l); err != nil {
			return err
		}
	}
	return nil
}

// Import stores letters. A request that could not store all is sent again for the others. It returns how many
// were stored until it ended.
func Import(ctx context.Context, c *Client, r ImportLetters) (all ImportedLetters, err error) {
	for {
		one, err := Ask(ctx, c, DeadImport, r)
		all.Stored, all.There = all.Stored+one.Stored, all.There+one.There
		if err != nil || one.Next == 0 {
			return all, err
		}
		if one.Next <= r.From {
			return all, fmt.Errorf("dead.import: a process answered that line %d is next, after line %d", one.Next, r.From)
		}
		r.From = one.Next
	}
}

// Restores reports whether Restore stores letters in this program.
func (c *Client) Restores() bool { return c.here != nil }

// Restore stores the letters of an export as they were, with what only the fleet writes. No process does that: what an
// owner imports is checked.
func Restore(ctx context.Context, c *Client, in io.Reader) (t deadletter.ImportCounts, err error) {
	t, err = c.here.Remote.DeadLetters().Import(ctx, in, nil)
	if t.Stored == 0 {
		return t, err
	}
	unrecorded := c.here.Record(ctx, DeadImport.Name, "", c.claims, map[string]int{"number": t.Stored})
	if unrecorded != nil && !errors.Is(unrecorded, audit.ErrNoStream) {
		c.here.Warn(unrecorded)
	}
	return t, err
}

// WholeLetters lists dead letters with their bodies.
func WholeLetters(ctx context.Context, c *Client, r ListLetters) (LetterList, error) {
	r.Bodies = true
	list, err := Ask(ctx, c, patiently(DeadList), r)
	if err != nil {
		return list, err
	}
	for _, j := range list.Letters {
		if err := complete(ctx, c, j); err != nil {
			return list, err
		}
	}
	return list, nil
}

// WholeLetter returns a letter with its body.
func WholeLetter(ctx context.Context, c *Client, id uint64) (*events.LetterJSON, error) {
	j, err := Ask(ctx, c, patiently(DeadShow), LetterID{ID: id})
	if err == nil {
		err = complete(ctx, c, j)
	}
	return j, err
}

// complete reads the body of a letter if it did not fit the answer.
func complete(ctx context.Context, c *Client, j *events.LetterJSON) error {
	if j.BodyBytes == 0 || j.Body != nil || j.BodyBase64 != nil {
		return nil
	}
	r := LetterPart{LetterID: LetterID{ID: j.ID}}
	for {
		b, err := Ask(ctx, c, patiently(DeadBody), r)
		if err != nil {
			return err
		}
		j.BodyBase64 = append(j.BodyBase64, b.Part...)
		if b.Next == 0 {
			return nil
		}
		if r.From = b.Next; r.From != len(j.BodyBase64) {
			return fmt.Errorf("dead letter %d: a process answered with another part of its body", j.ID)
		}
	}
}
