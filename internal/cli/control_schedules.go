package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

// schedulesList tells the schedules of the active versions, with their last and next tick.
func (c *control) schedulesList(ctx context.Context, r request) (any, error) {
	workers, limit, err := c.workersAsked(ctx, r)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Schedules []scheduleJSON `json:"schedules"`
		Next      string         `json:"next,omitempty"`
	}{Schedules: []scheduleJSON{}}
	size, last := 0, ""
	for _, w := range workers {
		if len(w.Schedules) == 0 {
			continue
		}
		rows, err := scheduleRows(ctx, []*events.Worker{w}, c.schedules)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(rows)
		if err != nil {
			return nil, err
		}
		// All schedules of a worker, or none: what follows is asked for by worker.
		if size += len(text); last != "" && (len(answer.Schedules)+len(rows) > limit || size > c.answerRoom()) {
			answer.Next = last
			break
		}
		answer.Schedules, last = append(answer.Schedules, rows...), w.Target()
	}
	return answer, nil
}

// maxNext is how many ticks schedules.next tells at most.
const maxNext = 100

// schedulesNext tells the next ticks of a schedule.
func (c *control) schedulesNext(ctx context.Context, r request) (any, error) {
	var req struct {
		scheduleRequest
		Count int `json:"count"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if req.Count < 0 || req.Count > maxNext {
		return nil, refused("count is %d: it is 1 to %d, or 0 for 10", req.Count, maxNext)
	}
	if req.Count == 0 {
		req.Count = 10
	}
	w, s, err := c.scheduleOf(ctx, req.scheduleRequest)
	if err != nil {
		return nil, err
	}
	ticks, paused, err := c.schedules.Next(ctx, w, s, req.Count)
	if err != nil {
		return nil, err
	}
	return map[string]any{"worker": req.Worker, "name": req.Name, "ticks": append([]time.Time{}, ticks...), "paused": paused}, nil
}

// scheduleRequest names one schedule of an active version.
type scheduleRequest struct {
	Worker string `json:"worker"`
	Name   string `json:"name"`
}

func (c *control) scheduleOf(ctx context.Context, r scheduleRequest) (*events.Worker, events.Schedule, error) {
	owner, name, err := events.ParseTarget(r.Worker)
	if err != nil {
		return nil, events.Schedule{}, refused("%v", err)
	}
	w, err := c.f.store.Get(ctx, owner, name, "")
	if err != nil {
		return nil, events.Schedule{}, err
	}
	s, err := findSchedule(w, r.Name)
	if err != nil {
		return nil, events.Schedule{}, &controlError{http.StatusNotFound, err.Error()}
	}
	return w, s, nil
}

func (c *control) schedulesPause(ctx context.Context, r request) (any, error) {
	return c.changeSchedule(ctx, r, c.schedules.Pause)
}

func (c *control) schedulesResume(ctx context.Context, r request) (any, error) {
	return c.changeSchedule(ctx, r, c.schedules.Resume)
}

func (c *control) changeSchedule(ctx context.Context, r request, change func(context.Context, *events.Worker, events.Schedule) error) (any, error) {
	var req scheduleRequest
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	w, s, err := c.scheduleOf(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := change(ctx, w, s); err != nil {
		return nil, err
	}
	rows, err := scheduleRows(ctx, []*events.Worker{{Owner: w.Owner, Name: w.Name, DeployedAt: w.DeployedAt, Number: w.Number, Schedules: []events.Schedule{s}}}, c.schedules)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// schedulesWaiting tells the events that wait for their time.
func (c *control) schedulesWaiting(ctx context.Context, r request) (any, error) {
	var req struct {
		Owner  string `json:"owner"`
		Worker string `json:"worker"`
		After  uint64 `json:"after"`
		Limit  int    `json:"limit"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if err := splitWorker(&req.Owner, &req.Worker); err != nil {
		return nil, refused("%s", strings.TrimPrefix(err.Error(), "--"))
	}
	for what, name := range map[string]string{"owner": req.Owner, "worker": req.Worker} {
		if err := events.CheckName(what, name); name != "" && err != nil {
			return nil, refused("%v", err)
		}
	}
	limit, err := listed(req.Limit)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Events []waitingJSON `json:"events"`
		Next   uint64        `json:"next,omitempty"` // after which the list goes on; absent at its end
	}{Events: []waitingJSON{}}
	size, last := 0, uint64(0)
	for w, err := range c.schedules.WaitingAfter(ctx, req.Owner, req.Worker, req.After) {
		if err != nil {
			return nil, err
		}
		j := newWaitingJSON(w)
		text, err := json.Marshal(j)
		if err != nil {
			return nil, err
		}
		if size += len(text) + 1; len(answer.Events) == limit || size > c.answerRoom() && last > 0 {
			answer.Next = last
			break
		}
		answer.Events, last = append(answer.Events, j), w.Event.Origin.Seq
	}
	return answer, nil
}

// schedulesCancel ends the events of an id that wait for their time.
func (c *control) schedulesCancel(ctx context.Context, r request) (any, error) {
	var req struct {
		Worker string `json:"worker"`
		ID     string `json:"id"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	owner, worker, err := events.ParseTarget(req.Worker)
	if err != nil {
		return nil, refused("%v", err)
	}
	n, err := c.schedules.Cancel(ctx, owner, worker, req.ID)
	if errors.Is(err, consumer.ErrEventID) {
		return nil, refused("%v", err)
	}
	if err != nil {
		return nil, err
	}
	return map[string]int{"cancelled": n}, nil
}
