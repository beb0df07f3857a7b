package isolates

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Why a context is thrown away, beside the reasons of failures.
const (
	discardReuses      = "reuses"      // it has run ContextMaxReuses events, or Lifetime.Requests, and is not small
	discardInterrupted = "interrupted" // its event was cut off by something else
	discardRoom        = "room"        // it was idle, and another context of its owner needed its place
	discardIdle        = "idle"        // a persistent one that had no event for Lifetime.Idle
	discardTTL         = "ttl"         // a persistent one that is older than Lifetime.TTL
	discardRemoved     = "removed"     // its worker was removed
	discardOther       = "other"       // no reason of this list
)

// tallyReasons are the labels of discards and kills. The last counts what is in no other place.
var tallyReasons = func() (list [len(events.Reasons) + 7]string) {
	for i, r := range events.Reasons {
		list[i] = string(r)
	}
	copy(list[len(events.Reasons):], []string{
		discardReuses, discardInterrupted, discardRoom, discardIdle, discardTTL, discardRemoved, discardOther,
	})
	return list
}()

// reasonCounts counts by reason. Its zero value is ready.
type reasonCounts [len(tallyReasons)]atomic.Uint64

func (c *reasonCounts) inc(reason string) {
	i := slices.Index(tallyReasons[:], reason)
	if i < 0 {
		i = len(tallyReasons) - 1
	}
	c[i].Add(1)
}

// add puts the counts that are not zero into m.
func (c *reasonCounts) add(m map[string]uint64) {
	for i := range c {
		if n := c[i].Load(); n > 0 {
			m[tallyReasons[i]] += n
		}
	}
}

// tally counts what a thread has and does. The thread alone writes it, anybody may read: an event costs it a few
// atomic additions that nobody contends for, and no lock.
type tally struct {
	isolates, busy, contexts, running, heap atomic.Int64
	warm, cold, resets, evictions           atomic.Uint64
	collections                             atomic.Uint64 // of garbage, between runs
	discards, kills                         reasonCounts

	mu      sync.Mutex // taken when an isolate or context is made, closed or handed on, and by readers
	owners  map[string]*useTally
	workers map[string]*useTally // by Worker.Target
}

// useTally counts for an owner that has an isolate, or a worker that has a context, on the thread; it goes with the last.
type useTally struct {
	isolates, contexts, running, heap atomic.Int64
	warm, cold                        atomic.Uint64
}

// inherit takes over what the thread before had counted. What it had is lost with it.
func (c *tally) inherit(old *tally) {
	for _, p := range [...]struct{ to, from *atomic.Uint64 }{
		{&c.warm, &old.warm}, {&c.cold, &old.cold}, {&c.resets, &old.resets}, {&c.evictions, &old.evictions}, {&c.collections, &old.collections},
	} {
		p.to.Store(p.from.Load())
	}
	for i := range c.discards {
		c.discards[i].Store(old.discards[i].Load())
		c.kills[i].Store(old.kills[i].Load())
	}
}

func use(all *map[string]*useTally, name string) *useTally {
	if *all == nil {
		*all = map[string]*useTally{}
	}
	u := (*all)[name]
	if u == nil {
		u = &useTally{}
		(*all)[name] = u
	}
	return u
}

// isolateOpened counts an isolate that was made or has come from another thread, with what is in it; isolateClosed one that
// was closed or goes to another thread.
func (c *tally) isolateOpened(iso *isolate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	iso.tally = use(&c.owners, iso.owner)
	iso.tally.isolates.Add(1)
	c.isolates.Add(1)
	c.grew(iso, iso.heap)
	for _, g := range iso.guests {
		c.count(g)
	}
}

func (c *tally) isolateClosed(iso *isolate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range iso.guests {
		c.uncount(g)
	}
	c.grew(iso, -iso.heap)
	c.isolates.Add(-1)
	if iso.tally.isolates.Add(-1) == 0 {
		delete(c.owners, iso.owner)
	}
}

// contextMade counts a new context, which is a cold start.
func (c *tally) contextMade(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(g)
	c.cold.Add(1)
	g.tally.cold.Add(1)
	g.isolate.tally.cold.Add(1)
}

func (c *tally) contextClosed(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uncount(g)
}

func (c *tally) count(g *guest) {
	g.tally = use(&c.workers, g.worker.Target())
	g.tally.contexts.Add(1)
	c.contexts.Add(1)
	g.isolate.tally.contexts.Add(1)
}

func (c *tally) uncount(g *guest) {
	c.contexts.Add(-1)
	g.isolate.tally.contexts.Add(-1)
	if g.tally.contexts.Add(-1) == 0 {
		delete(c.workers, g.worker.Target())
	}
}

// warmHit counts an attempt that found a context, which is reset for it unless it is a persistent one.
func (c *tally) warmHit(g *guest) {
	c.warm.Add(1)
	if g.life == nil {
		c.resets.Add(1)
	}
	g.tally.warm.Add(1)
	g.isolate.tally.warm.Add(1)
}

// entered and left count runs; n is how many the isolate has then.
func (c *tally) entered(g *guest, n int) {
	if n == 1 {
		c.busy.Add(1)
	}
	c.running.Add(1)
	g.tally.running.Add(1)
	g.isolate.tally.running.Add(1)
}

func (c *tally) left(g *guest, n int) {
	if n == 0 {
		c.busy.Add(-1)
	}
	c.running.Add(-1)
	g.tally.running.Add(-1)
	g.isolate.tally.running.Add(-1)
}

func (c *tally) grew(iso *isolate, by int64) {
	c.heap.Add(by)
	iso.tally.heap.Add(by)
}

// heapEvery is how often at most an isolate is asked how large it is without a reason: V8 takes microseconds to tell.
const heapEvery = time.Second

// sampleHeap notes the size of an isolate. Owner thread only.
func (c *tally) sampleHeap(iso *isolate, now time.Time, every time.Duration) {
	if now.Sub(iso.sampled) < every || iso.away || iso.lost {
		return
	}
	size := int64(iso.v8.HeapBytes())
	c.grew(iso, size-iso.heap)
	iso.heap, iso.sampled = size, now
}
