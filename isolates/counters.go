package isolates

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Reasons for which a context is discarded, in addition to the reasons of failures.
const (
	discardReuses      = "reuses"      // it has run ContextMaxReuses events, or Lifetime.Requests, and is not small
	discardInterrupted = "interrupted" // its event was interrupted by something else
	discardRoom        = "room"        // it was idle, and another context of its owner needed its place
	discardIdle        = "idle"        // a persistent context that had no event for Lifetime.Idle
	discardTTL         = "ttl"         // a persistent context that is older than Lifetime.TTL
	discardRemoved     = "removed"     // its worker was removed
	discardUnneeded    = "unneeded"    // it was idle, and another thread has one of the same version
	discardSecrets     = "secrets"     // a secret of its worker has another value
	discardReset       = "reset"       // its worker was reset
	discardOther       = "other"       // none of these reasons
)

// counterReasons are the labels of discards and kills. The last one counts all other reasons.
var counterReasons = func() (list [len(events.Reasons) + 10]string) {
	for i, r := range events.Reasons {
		list[i] = string(r)
	}
	copy(list[len(events.Reasons):], []string{
		discardReuses, discardInterrupted, discardRoom, discardIdle, discardTTL, discardRemoved, discardUnneeded,
		discardSecrets, discardReset, discardOther,
	})
	return list
}()

// KnownReason reports whether the discards, kills and broken bodies of Stats may have that reason: they are labels of
// metrics.
func KnownReason(reason string) bool { return slices.Contains(counterReasons[:], reason) }

// reasonCounts counts by reason. Its zero value is ready.
type reasonCounts [len(counterReasons)]atomic.Uint64

func (c *reasonCounts) inc(reason string) {
	i := slices.Index(counterReasons[:], reason)
	if i < 0 {
		i = len(counterReasons) - 1
	}
	c[i].Add(1)
}

// add puts the counts that are not zero into m.
func (c *reasonCounts) add(m map[string]uint64) {
	for i := range c {
		if n := c[i].Load(); n > 0 {
			m[counterReasons[i]] += n
		}
	}
}

// What becomes of a context.
const (
	ContextMade      = "cold start" // an event begins in a new one
	ContextDiscarded = "discard"    // no other event begins in it
	ContextEvicted   = "eviction"   // its isolate is closed to make room for others
)

// ContextChange says what became of a context.
type ContextChange struct {
	What   string // a constant above
	Worker *workers.Worker
	Mode   workers.Mode
	Uses   int    // events that began in it
	Reason string // of a discard
}

// notify reports to Config.OnContext what became of a context.
func (c *counters) notify(what string, jc *jsContext, reason string) {
	if c.changed != nil {
		c.changed(ContextChange{what, jc.worker, jc.isolate.mode, jc.uses, reason})
	}
}

// discarded counts a context that is about to be closed.
func (c *counters) discarded(jc *jsContext, reason string) {
	c.discards.inc(reason)
	c.notify(ContextDiscarded, jc, reason)
}

// evicted counts an isolate that is about to be closed to make room.
func (c *counters) evicted(iso *isolate) {
	c.evictions.Add(1)
	for _, jc := range iso.contexts {
		c.notify(ContextEvicted, jc, "")
	}
}

// counters counts what a thread has and does. Only the thread writes it. Any goroutine may read it. An event costs a
// few uncontended atomic additions, and no lock.
type counters struct {
	changed func(ContextChange) // Config.OnContext, or nil

	isolates, busy, contexts, running atomic.Int64
	heap, charged                     atomic.Int64 // bytes of isolates, and for them
	warm, cold, resets, evictions     atomic.Uint64
	collections                       atomic.Uint64 // of garbage, between runs
	discards, kills                   reasonCounts

	mu      sync.Mutex // held when an isolate or context is made, closed or given to another thread, and by readers
	tenants map[string]*useCounters
	workers map[string]*useCounters // by Worker.Target
}

// useCounters counts for a tenant that has an isolate on the thread, or for a worker that has a context there. It is
// deleted with the last of them.
type useCounters struct {
	isolates, contexts, running, heap atomic.Int64
	charged                           atomic.Int64
	warm, cold                        atomic.Uint64
}

// inherit copies the totals of the previous thread. The current figures of that thread are lost with it.
func (c *counters) inherit(old *counters) {
	for _, p := range [...]struct{ to, from *atomic.Uint64 }{
		{&c.warm, &old.warm}, {&c.cold, &old.cold}, {&c.resets, &old.resets}, {&c.evictions, &old.evictions},
		{&c.collections, &old.collections},
	} {
		p.to.Store(p.from.Load())
	}
	for i := range c.discards {
		c.discards[i].Store(old.discards[i].Load())
		c.kills[i].Store(old.kills[i].Load())
	}
}

func use(all *map[string]*useCounters, name string) *useCounters {
	if *all == nil {
		*all = map[string]*useCounters{}
	}
	u := (*all)[name]
	if u == nil {
		u = &useCounters{}
		(*all)[name] = u
	}
	return u
}

// isolateOpened counts an isolate that was made or has come from another thread, with its contexts. isolateClosed
// counts one that was closed or goes to another thread.
func (c *counters) isolateOpened(iso *isolate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	iso.counters = use(&c.tenants, iso.tenant)
	iso.counters.isolates.Add(1)
	c.isolates.Add(1)
	c.grew(iso, iso.heap, iso.charged)
	for _, jc := range iso.contexts {
		c.count(jc)
	}
}

func (c *counters) isolateClosed(iso *isolate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, jc := range iso.contexts {
		c.uncount(jc)
	}
	c.grew(iso, -iso.heap, -iso.charged)
	c.isolates.Add(-1)
	if iso.counters.isolates.Add(-1) == 0 {
		delete(c.tenants, iso.tenant)
	}
}

// contextMade counts a new context, which is a cold start.
func (c *counters) contextMade(jc *jsContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(jc)
	c.cold.Add(1)
	jc.counters.cold.Add(1)
	jc.isolate.counters.cold.Add(1)
}

func (c *counters) contextClosed(jc *jsContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uncount(jc)
}

func (c *counters) count(jc *jsContext) {
	jc.counters = use(&c.workers, jc.worker.Target())
	jc.counters.contexts.Add(1)
	c.contexts.Add(1)
	jc.isolate.counters.contexts.Add(1)
}

func (c *counters) uncount(jc *jsContext) {
	c.contexts.Add(-1)
	jc.isolate.counters.contexts.Add(-1)
	if jc.counters.contexts.Add(-1) == 0 {
		delete(c.workers, jc.worker.Target())
	}
}

// warmHit counts an attempt that found a context. The context is reset for it unless it is persistent.
func (c *counters) warmHit(jc *jsContext) {
	c.warm.Add(1)
	if jc.life == nil {
		c.resets.Add(1)
	}
	jc.counters.warm.Add(1)
	jc.isolate.counters.warm.Add(1)
}

// entered and left count runs. n is the number of runs that the isolate has afterwards.
func (c *counters) entered(jc *jsContext, n int) {
	if n == 1 {
		c.busy.Add(1)
	}
	c.running.Add(1)
	jc.counters.running.Add(1)
	jc.isolate.counters.running.Add(1)
}

func (c *counters) left(jc *jsContext, n int) {
	if n == 0 {
		c.busy.Add(-1)
	}
	c.running.Add(-1)
	jc.counters.running.Add(-1)
	jc.isolate.counters.running.Add(-1)
}

func (c *counters) grew(iso *isolate, heap, charged int64) {
	c.heap.Add(heap)
	iso.counters.heap.Add(heap)
	c.charged.Add(charged)
	iso.counters.charged.Add(charged)
}

const (
	// measureAfter is how long a turn must take for a heap to grow by an amount that matters. The isolate is measured
	// after such a turn.
	measureAfter = 2 * time.Millisecond
	// measureBetween is the same if the next turn belongs to another context. A measurement takes microseconds.
	measureBetween = 200 * time.Microsecond
	// heapEvery is the shortest time between two measurements of an isolate without a special reason.
	heapEvery = time.Second
)

// sampleHeap measures the size of an isolate. Owner thread only.
func (c *counters) sampleHeap(iso *isolate, now time.Time, every time.Duration) {
	if now.Sub(iso.sampled) < every || iso.away || iso.lost {
		return
	}
	size := int64(iso.v8.HeapBytes())
	iso.functions.Collected(iso.v8.Collections())
	charged := iso.charges.Of(size, iso.functions.Count(), int64(iso.v8.CodeBytes()))
	c.grew(iso, size-iso.heap, charged-iso.charged)
	iso.heap, iso.charged, iso.sampled, iso.unmeasured = size, charged, now, 0
}

// measure measures an isolate. Growth since the last measurement is attributed to the context that ran last.
func (c *counters) measure(iso *isolate, now time.Time, every time.Duration) {
	before := iso.heap
	c.sampleHeap(iso, now, every)
	switch {
	case iso.heap > before && iso.latest != nil:
		iso.latest.size += iso.heap - before
	case iso.heap < before: // garbage, of any of the contexts
		for _, jc := range iso.contexts {
			jc.size = int64(float64(jc.size) * float64(iso.heap) / float64(before))
		}
	}
}

// measureBefore measures an isolate before jc enters it, if another context has run in it since the last look, long
// enough to have grown by an amount that matters. Without this look, that growth would be attributed to jc.
func (c *counters) measureBefore(jc *jsContext) {
	iso := jc.isolate
	if iso.latest != jc && iso.unmeasured > measureBetween {
		c.measure(iso, time.Now(), 0)
	}
}
