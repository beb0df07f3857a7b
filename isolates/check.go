package isolates

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Checker checks before a deploy whether modules load. It has its own pinned thread.
type Checker struct {
	alone
	pool *Pool
	host Host
	of   func(owner string) workers.Policy
	mu   sync.Mutex
	next []*lifecycle.Attempt
	ends map[*lifecycle.Attempt]chan *lifecycle.End
}

// CheckConfig is how modules run in a Checker: as they will in the pool for which they are checked.
type CheckConfig struct {
	AllowAddresses []netip.Prefix    // Config.AllowAddresses of that pool
	AllowHosts     []string          // Config.AllowHosts of that pool
	Compilers      workers.Compilers // Config.Compilers of that pool
	// PolicyOf returns that of an owner, of which a check uses the compilers and WASM. It is called for each module.
	// nil = every owner has Compilers, and WASM.
	PolicyOf func(owner string) workers.Policy
}

// OpenChecker starts a checker.
func OpenChecker(host Host, like CheckConfig) (*Checker, error) {
	c := &Checker{host: host, of: like.PolicyOf, ends: map[*lifecycle.Attempt]chan *lifecycle.End{}}
	cfg := DefaultConfig(1)
	cfg.ContextMaxReuses, cfg.ContextKeepMB, cfg.SpareIsolates = 1, 0, 0
	cfg.AllowAddresses, cfg.AllowHosts, cfg.Compilers = like.AllowAddresses, like.AllowHosts, like.Compilers
	var err error
	if c.pool, err = New(cfg, c, host); err != nil {
		return nil, err
	}
	c.pool.checks = true
	return c, c.pool.Open()
}

// Close stops the checker.
func (c *Checker) Close() { c.pool.Close() }

// LostThread reports whether V8 has kept the checker's thread. It is known when Close has returned.
func (c *Checker) LostThread() bool {
	return c.pool.losses.parked.Load() > 0 || c.pool.losses.ranAway.Load() > c.pool.losses.back.Load()
}

// Check evaluates the module of w in a fresh context and returns which handlers it has. Of a module with a queue
// handler, Task is among the kinds only if it has a task handler too. The error is an *events.Failure when the module
// does not load or has no handler.
func (c *Checker) Check(ctx context.Context, w *workers.Worker) (workers.Handlers, error) {
	policy := workers.Policy{WASM: true}
	if c.of != nil {
		of := c.of(w.Owner)
		policy = workers.Policy{Compilers: of.Compilers, WASM: of.WASM}
	}
	c.pool.SetPolicy(w.Owner, policy)
	a := &lifecycle.Attempt{Worker: w, Number: 1}
	end := make(chan *lifecycle.End, 1)
	c.mu.Lock()
	c.next = append(c.next, a)
	c.ends[a] = end
	c.mu.Unlock()
	c.pool.Wake(0)
	select {
	case e := <-end:
		c.warn(a, e)
		return handlers(a, e)
	case <-ctx.Done():
		return workers.Handlers{}, fmt.Errorf("check of %s: %w", w.Target(), ctx.Err())
	}
}

// uncalled lists functions that modules export for other runtimes and that nothing calls here. The bit of each is what
// events/handlers.js sets.
var uncalled = [...]struct {
	bit          int
	name, advice string
}{
	{64, "email", noSuchEvents},
	{128, "tail", "a worker's output is on the NATS subject pinwheel.logs.OWNER.WORKER"},
	{256, "tailStream", "a worker's output is on the NATS subject pinwheel.logs.OWNER.WORKER"},
	{512, "trace", "a worker's output is on the NATS subject pinwheel.logs.OWNER.WORKER"},
	{1024, "connect", noSuchEvents},
	{2048, "alarm", "a schedule in the manifest calls scheduled(event, env, ctx)"},
	{4096, "onIdle", "the mode persistent calls it: say \"mode\": \"persistent\" in the manifest"},
	{8192, "onTerminate", "the mode persistent calls it: say \"mode\": \"persistent\" in the manifest"},
}

// hooksUncalled is the first bit of the hooks, which only the mode persistent calls.
const hooksUncalled = 4096

const noSuchEvents = "a worker gets fetch, task and scheduled events"

// warn tells the author about exported functions that look like handlers and that nothing calls.
func (c *Checker) warn(a *lifecycle.Attempt, e *lifecycle.End) {
	bits, _ := a.Slot.(int)
	if c.host == nil || e.Failure != nil {
		return
	}
	for _, u := range uncalled {
		// The check itself does not use the mode persistent.
		if bits&u.bit != 0 && (u.bit < hooksUncalled || a.Worker.Mode != workers.Persistent) {
			c.host.Log(events.LogLine{
				Time: time.Now(), Owner: a.Worker.Owner, Worker: a.Worker.Name, Version: a.Worker.Version, Level: "warn",
				Text: fmt.Sprintf("nothing calls %s(), which the default export has: %s", u.name, u.advice),
			})
		}
	}
}

// Bits of a queue handler, and of exported classes that extend WorkerEntrypoint.
const (
	queueHandler = 32
	entrypoints  = 16384
)

func handlers(a *lifecycle.Attempt, e *lifecycle.End) (has workers.Handlers, err error) {
	if e.Failure != nil {
		return has, e.Failure
	}
	bits, _ := a.Slot.(int)
	for i, k := range events.Kinds {
		if bits&(1<<i) != 0 {
			has.Kinds = append(has.Kinds, k)
		}
	}
	has.Queue, has.Entrypoints = bits&queueHandler != 0, bits&entrypoints != 0
	if has.Queue || has.Entrypoints || len(has.Kinds) > 0 {
		return has, nil
	}
	return has, events.Fail(events.ReasonNoHandler,
		"%s has no handler: it must export default { fetch, routes, task, queue or scheduled }, or a class with such methods, or a class that extends WorkerEntrypoint, or call addEventListener", a.Worker.File)
}

// Next and Report make a Checker the Source of its pool.
func (c *Checker) Next(_, free int) []*lifecycle.Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(free, len(c.next))
	batch := c.next[:n:n]
	c.next = c.next[n:]
	return batch
}

// Report ends the checks that are over.
func (c *Checker) Report(_ int, reports []lifecycle.Report) {
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
