package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// maxScanned is how many letters are read for a page of the newest, about. A caller that wants more asks again: so a
	// request of which few letters match does not take all of its time.
	maxScanned = 20_000
	// scanTime is how long a page of the newest may take.
	scanTime = requestTimeout / 4
)

// letterPage is a page of letters that is being filled.
type letterPage struct {
	LetterList
	bodies     bool
	room, size int // bytes of the answer: how many it may have, and how many it has
}

// add adds a letter of a store's list. full reports that there was no room for it.
func (p *letterPage) add(l *events.DeadLetter, err error) (full bool, _ error) {
	if errors.Is(err, deadletter.ErrUndecodable) {
		p.Unreadable, p.Next = append(p.Unreadable, l.Seq), l.Seq
		p.size += len("18446744073709551615,")
		return false, nil
	}
	j := l.JSON(p.bodies)
	text, err := json.Marshal(j)
	if err != nil {
		return false, err
	}
	if p.size += len(text) + 1; p.size > p.room {
		if len(p.Letters) > 0 {
			return true, nil
		}
		j.Body, j.BodyBase64 = nil, nil // bodyBytes shows that there is one
		p.size = p.room + 1             // it is the only one of the page
	}
	p.Letters, p.Next = append(p.Letters, j), l.Seq
	return false, nil
}

// oldest fills the page with the oldest letters that f chooses.
func (p *letterPage) oldest(ctx context.Context, dead *deadletter.Store, f deadletter.Filter) error {
	n := 0
	for l, err := range dead.List(ctx, f) {
		if ctx.Err() != nil {
			return tookTooLong()
		}
		if l == nil {
			return err
		}
		n++
		if full, err := p.add(l, err); full || err != nil {
			return err
		}
	}
	if n < f.Limit {
		p.Next = 0
	}
	return nil
}

// newest fills the page with the newest letters that f chooses, below the number before. It ends when it has read most
// letters, or taken scanTime.
func (p *letterPage) newest(ctx context.Context, dead *deadletter.Store, f deadletter.Filter, before uint64,
	most int) error {
	look, stop := context.WithTimeout(ctx, scanTime)
	defer stop()
	n := 0
	for w, err := range dead.Newest(look, f, before) {
		if err != nil {
			return p.cut(look, err)
		}
		p.Scanned += w.Read
		for _, l := range w.Letters {
			if full, err := p.add(l.Letter, l.Err); full || err != nil {
				return err
			}
		}
		n, p.Next = n+len(w.Letters), w.From
		switch {
		case n == f.Limit:
			return nil
		case p.Scanned >= most:
			p.More = true
			return nil
		}
	}
	p.Next = 0
	return nil
}

// cut ends a page of the newest because of err. If the time is over, what was found is the page.
func (p *letterPage) cut(look context.Context, err error) error {
	switch {
	case look.Err() == nil:
		return err
	case p.Next == 0:
		return tookTooLong()
	}
	p.More = true
	return nil
}

func tookTooLong() error {
	return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("looking took longer than %s: choose by owner, worker, kind or reason too",
		requestTimeout)}
}
