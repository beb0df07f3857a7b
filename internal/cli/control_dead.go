package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
)

// maxListed is how many letters or workers a list has at most; what follows is asked for with after.
const maxListed = 1000

// listed is how many a request wants.
func listed(limit int) (int, error) {
	if limit < 0 || limit > maxListed {
		return 0, refused("limit is %d: it is 1 to %d, or 0 for 100", limit, maxListed)
	}
	if limit == 0 {
		limit = 100
	}
	return limit, nil
}

// letterList is the answer of dead.list.
type letterList struct {
	Letters    []*events.LetterJSON `json:"letters"`
	Unreadable []uint64             `json:"unreadable,omitempty"`
	Next       uint64               `json:"next,omitempty"` // after which the list goes on; absent at its end
}

func (c *control) deadList(ctx context.Context, r request) (any, error) {
	var req filterRequest
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	f, err := req.filter()
	if err != nil {
		return nil, err
	}
	if f.Limit, err = listed(f.Limit); err != nil {
		return nil, err
	}
	list, n, size := letterList{Letters: []*events.LetterJSON{}}, 0, 0
	for l, err := range c.dead.List(ctx, f) {
		if ctx.Err() != nil {
			return nil, &controlError{http.StatusServiceUnavailable, fmt.Sprintf("looking took longer than %s: choose by owner, worker, kind or reason too", controlTimeout)}
		}
		if l == nil {
			return nil, err
		}
		n++
		list.Next = l.Seq
		if errors.Is(err, consumer.ErrUndecodable) {
			list.Unreadable = append(list.Unreadable, l.Seq)
			continue
		}
		j := l.JSON(false)
		text, err := json.Marshal(j)
		if err != nil {
			return nil, err
		}
		if size += len(text) + 1; size > c.answerRoom() && len(list.Letters) > 0 {
			list.Next = list.Letters[len(list.Letters)-1].ID
			return list, nil
		}
		list.Letters = append(list.Letters, j)
	}
	if n < f.Limit {
		list.Next = 0
	}
	return list, nil
}

// answerRoom is what an answer may hold beside its frame.
func (c *control) answerRoom() int { return int(c.f.nc.MaxPayload()) - 4096 }

// letterRequest names one letter.
type letterRequest struct {
	ID uint64 `json:"id"`
}

func (r letterRequest) check() error {
	if r.ID == 0 {
		return refused("id is missing: it is the number of a letter, as dead.list shows it")
	}
	return nil
}

func (c *control) deadShow(ctx context.Context, r request) (any, error) {
	var req letterRequest
	if err := errors.Join(decodeRequest(r.data, &req)); err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	l, err := c.dead.Get(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	j := l.JSON(true)
	if text, err := json.Marshal(j); err == nil && len(text) > c.answerRoom() {
		j.Body, j.BodyBase64 = nil, nil // bodyBytes tells that there is one
	}
	return j, nil
}

func (c *control) deadEdit(ctx context.Context, r request) (any, error) {
	var req struct {
		letterRequest
		editRequest
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	e, err := req.edit()
	if err != nil {
		return nil, err
	}
	if e.Empty() {
		return nil, refused("nothing to change: name body, bodyBase64, patch, setHeaders or removeHeaders")
	}
	l, err := c.dead.Edit(ctx, req.ID, e)
	if err != nil {
		return nil, err
	}
	return map[string]uint64{"id": l.Seq, "was": req.ID}, nil
}

func (c *control) deadReplay(_ context.Context, r request) (any, error) {
	var req replayRequest
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	s, err := req.selected()
	if err != nil {
		return nil, err
	}
	o, err := req.options()
	if err != nil {
		return nil, err
	}
	o.Runs = whoRuns(func(context.Context) (*deploy.Store, error) { return c.f.store, nil })
	o.Untold = func(err error) { c.f.log.Warn().Err(err).Msg("replays could not be noted") }
	return c.begin("replay", o.DryRun, func(ctx context.Context, each func(consumer.Progress)) (consumer.Tally, error) {
		return c.dead.ReplayAll(ctx, s, o, each)
	})
}

func (c *control) deadPurge(_ context.Context, r request) (any, error) {
	var req selectRequest
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	s, err := req.selected()
	if err != nil {
		return nil, err
	}
	return c.begin("purge", req.DryRun, func(ctx context.Context, each func(consumer.Progress)) (consumer.Tally, error) {
		return c.dead.Purge(ctx, s, req.DryRun, each)
	})
}
