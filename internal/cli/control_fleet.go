package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// pool tells what GET /admin/pool tells. A request without sense is answered too: clients of old sent anything.
func (c *control) pool(context.Context, request) (any, error) { return c.f.stats(), nil }

// streamStats is what a stream holds.
type streamStats struct {
	Messages uint64    `json:"messages"`
	Bytes    uint64    `json:"bytes"`
	Oldest   time.Time `json:"oldest,omitzero"` // when its first message was stored
}

// stats tells what is stored for the whole fleet.
func (c *control) stats(ctx context.Context, r request) (any, error) {
	if err := decodeRequest(r.data, &struct{}{}); err != nil {
		return nil, err
	}
	subjects := events.Subjects(c.f.cfg.Prefix)
	all := map[string]any{"node": nodeName()}
	for _, of := range []struct{ name, stream, filter, pin string }{
		{"events", consumer.StreamEvents, subjects.AllStored(), subjects.Pin()},
		{"parked", consumer.StreamParked, subjects.ParkedOwner("*"), subjects.ParkedPin()},
		{"dead", consumer.StreamDead, subjects.AllDead(), ""},
	} {
		switch one, err := c.stored(ctx, of.stream, of.filter, of.pin); {
		case err == nil:
			all[of.name] = one
		case !errors.Is(err, jetstream.ErrStreamNotFound): // else it is being made again
			return nil, err
		}
	}
	return all, nil
}

// stored tells what a stream holds under filter; all else in it is under pin.
func (c *control) stored(ctx context.Context, stream, filter, pin string) (one streamStats, err error) {
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return one, fmt.Errorf("stream %s: %w", stream, err)
	}
	one.Bytes = s.CachedInfo().State.Bytes
	if one.Messages, err = assets.Count(ctx, c.js, stream, pin); err != nil || one.Messages == 0 {
		return one, err
	}
	first, err := stored.Get(ctx, c.f.nc, stream, stored.Request{Seq: 1, Next: filter})
	if errors.Is(err, stored.ErrNone) { // it has just left
		return one, nil
	}
	if err != nil {
		return one, fmt.Errorf("oldest message of stream %s: %w", stream, err)
	}
	one.Oldest = first.Time
	return one, nil
}

// drainProcess has the processes that are meant drain and end.
func (c *control) drainProcess(_ context.Context, r request) (any, error) {
	var req struct {
		Node string `json:"node"`
		All  bool   `json:"all"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if req.All == (req.Node != "") {
		return nil, refused("which process? Name its node, as pool tells it, or say all")
	}
	if !req.All && req.Node != nodeName() {
		return nil, errNotMeant
	}
	// The answer is on its way before the connection closes: draining takes longer.
	time.AfterFunc(10*time.Millisecond, c.drain)
	return map[string]any{"node": nodeName(), "draining": true, "timeoutMs": c.f.cfg.DrainTimeout.Milliseconds()}, nil
}

// workersAsked is the active versions of an owner, or all, that come after one, in order, and how many of them are wanted.
func (c *control) workersAsked(ctx context.Context, r request) (ws []*events.Worker, limit int, err error) {
	var req struct {
		Owner string `json:"owner"`
		After string `json:"after"`
		Limit int    `json:"limit"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, 0, err
	}
	if req.Owner != "" && !events.ValidName(req.Owner) {
		return nil, 0, refused("%v", events.CheckName("owner", req.Owner))
	}
	if limit, err = listed(req.Limit); err != nil {
		return nil, 0, err
	}
	ws, err = c.f.store.List(ctx, req.Owner)
	return slices.DeleteFunc(ws, func(w *events.Worker) bool { return w.Target() <= req.After }), limit, err
}

func (c *control) workersList(ctx context.Context, r request) (any, error) {
	ws, limit, err := c.workersAsked(ctx, r)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Workers []workerJSON `json:"workers"`
		Next    string       `json:"next,omitempty"`
	}{Workers: []workerJSON{}}
	size := 0
	for _, w := range ws {
		j := newWorkerJSON(w)
		text, err := json.Marshal(j)
		if err != nil {
			return nil, err
		}
		if size += len(text) + 1; len(answer.Workers) == limit || size > c.answerRoom() && len(answer.Workers) > 0 {
			last := answer.Workers[len(answer.Workers)-1]
			answer.Next = last.Owner + "/" + last.Name
			break
		}
		answer.Workers = append(answer.Workers, j)
	}
	return answer, nil
}

func (c *control) workersVersions(ctx context.Context, r request) (any, error) {
	var req struct {
		Worker string `json:"worker"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	owner, name, err := events.ParseTarget(req.Worker)
	if err != nil {
		return nil, refused("%v", err)
	}
	ws, err := c.f.store.Versions(ctx, owner, name)
	if err != nil {
		return nil, err
	}
	versions := []versionJSON{}
	for _, w := range ws {
		versions = append(versions, versionJSON{w.Version, w.DeployedAt})
	}
	return map[string]any{"worker": req.Worker, "versions": versions, "active": cmp.Or(ws[len(ws)-1:]...).Version}, nil
}

func (c *control) ownersList(ctx context.Context, r request) (any, error) {
	if err := decodeRequest(r.data, &struct{}{}); err != nil {
		return nil, err
	}
	all, err := c.f.policies.List(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{"owners": all}, nil
}

// ownerRequest names an owner.
type ownerRequest struct {
	Owner string `json:"owner"`
}

func (r ownerRequest) check() error {
	if err := events.CheckName("owner", r.Owner); err != nil {
		return refused("%v", err)
	}
	return nil
}

func (c *control) ownersGet(ctx context.Context, r request) (any, error) {
	var req ownerRequest
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	p, err := c.f.policies.Get(ctx, req.Owner)
	if err != nil {
		return nil, err
	}
	return ownerPolicy{req.Owner, p}, nil
}

type ownerPolicy struct {
	Owner  string        `json:"owner"`
	Policy events.Policy `json:"policy"`
}

func (c *control) ownersSet(ctx context.Context, r request) (any, error) {
	var req struct {
		ownerRequest
		Policy json.RawMessage `json:"policy"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	if len(req.Policy) == 0 {
		return nil, refused("policy is missing: it is an object with what is to change")
	}
	var p events.Policy
	if err := decodeRequest(req.Policy, &p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, refused("policy: %v", err)
	}
	// What is named is changed: read into the policy that there is, what is not named stays.
	p, err := c.f.policies.Set(ctx, req.Owner, func(p *events.Policy) { _ = json.Unmarshal(req.Policy, p) })
	if err != nil {
		return nil, err
	}
	return ownerPolicy{req.Owner, p}, nil
}

func (c *control) ownersRemove(ctx context.Context, r request) (any, error) {
	var req ownerRequest
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}
	if err := c.f.policies.Remove(ctx, req.Owner); err != nil {
		return nil, err
	}
	return ownerPolicy{Owner: req.Owner}, nil
}
