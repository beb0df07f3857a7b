package isolates

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
)

// Checker loads modules to see whether they load, before they are deployed. It has a pinned thread of its own.
type Checker struct {
	alone
	pool *Pool
	mu   sync.Mutex
	next []*events.Attempt
	ends map[*events.Attempt]chan *events.End
}

// OpenChecker starts a checker.
func OpenChecker(host Host) (*Checker, error) {
	c := &Checker{ends: map[*events.Attempt]chan *events.End{}}
	cfg := DefaultConfig(1)
	cfg.ContextMaxReuses, cfg.ContextKeepMB, cfg.SpareIsolates = 1, 0, 0
	var err error
	if c.pool, err = New(cfg, c, host, prometheus.NewRegistry()); err != nil {
		return nil, err
	}
	return c, c.pool.Open()
}

// Close stops it.
func (c *Checker) Close() { c.pool.Close() }

// Check evaluates the module of w in a fresh context and returns which handlers it has. The error is an
// *events.Failure when the module does not load or has none.
func (c *Checker) Check(ctx context.Context, w *events.Worker) ([]events.Kind, error) {
	a := &events.Attempt{Worker: w, Number: 1}
	end := make(chan *events.End, 1)
	c.mu.Lock()
	c.next = append(c.next, a)
	c.ends[a] = end
	c.mu.Unlock()
	c.pool.Wake(0)
	select {
	case e := <-end:
		return handlers(a, e)
	case <-ctx.Done():
		return nil, fmt.Errorf("check of %s: %w", w.Target(), ctx.Err())
	}
}

func handlers(a *events.Attempt, e *events.End) ([]events.Kind, error) {
	if e.Failure != nil {
		return nil, e.Failure
	}
	bits, _ := a.Slot.(int)
	var kinds []events.Kind
	for i, k := range events.Kinds {
		if bits&(1<<i) != 0 {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil, events.Fail(events.ReasonNoHandler,
			"%s has no handler: it must export default { fetch, task or scheduled } or call addEventListener", a.Worker.File)
	}
	return kinds, nil
}

// Next and Report make a Checker the Source of its pool.
func (c *Checker) Next(_, free int) []*events.Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(free, len(c.next))
	batch := c.next[:n:n]
	c.next = c.next[n:]
	return batch
}

// Report ends the checks that are over.
func (c *Checker) Report(_ int, reports []events.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range reports {
		if r.End == nil {
			continue
		}
		c.ends[r.Attempt] <- r.End
		delete(c.ends, r.Attempt)
	}
}
