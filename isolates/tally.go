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
	discardReuses      = "reuses"      // it has run ContextMaxReuses events
	discardInterrupted = "interrupted" // its event was cut off by something else
	discardRoom        = "room"        // it was idle, and another context of its owner needed its place
	discardIdle        = "idle"        // a persistent one that had no event for Lifetime.Idle
	discardTTL         = "ttl"         // a persistent one that is older than Lifetime.TTL
	discardRemoved     = "removed"     // a persistent one whose worker was removed
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
	warm, cold, evictions                   atomic.Uint64
	discards, kills                         reasonCounts

	mu     sync.Mutex // taken when an isolate is made or closed, and by readers
	owners map[string]*ownerTally
}

// ownerTally counts for an owner that has an isolate on the thread; it goes with the last of them.
type ownerTally struct {
	isolates, contexts, running, heap atomic.Int64
	warm, cold                        atomic.Uint64
}

// inherit takes over what the thread before had counted. What it had is lost with it.
func (c *tally) inherit(old *tally) {
	for _, p := range [...]struct{ to, from *atomic.Uint64 }{{&c.warm, &old.warm}, {&c.cold, &old.cold}, {&c.evictions, &old.evictions}} {
		p.to.Store(p.from.Load())
	}
	for i := range c.discards {
		c.discards[i].Store(old.discards[i].Load())
		c.kills[i].Store(old.kills[i].Load())
	}
}

func (c *tally) isolateOpened(iso *isolate) {
	c.isolates.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.owners[iso.owner]
	if o == nil {
		if c.owners == nil {
			c.owners = map[string]*ownerTally{}
		}
		o = &ownerTally{}
		c.owners[iso.owner] = o
	}
	o.isolates.Add(1)
	iso.tally = o
	c.moved(iso, 1)
}

// moved counts what an isolate that changes hands has in it.
func (c *tally) moved(iso *isolate, sign int64) {
	contexts := sign * int64(len(iso.guests))
	c.contexts.Add(contexts)
	iso.tally.contexts.Add(contexts)
	c.heap.Add(sign * iso.heap)
	iso.tally.heap.Add(sign * iso.heap)
}

func (c *tally) isolateClosed(iso *isolate) {
	c.isolates.Add(-1)
	c.moved(iso, -1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if iso.tally.isolates.Add(-1) == 0 {
		delete(c.owners, iso.owner)
	}
}

func (c *tally) contextMade(iso *isolate) {
	c.contexts.Add(1)
	iso.tally.contexts.Add(1)
	c.cold.Add(1)
	iso.tally.cold.Add(1)
}

func (c *tally) contextClosed(iso *isolate) {
	c.contexts.Add(-1)
	iso.tally.contexts.Add(-1)
}

func (c *tally) warmHit(iso *isolate) {
	c.warm.Add(1)
	iso.tally.warm.Add(1)
}

// entered and left count runs; n is how many the isolate has then.
func (c *tally) entered(iso *isolate, n int) {
	if n == 1 {
		c.busy.Add(1)
	}
	c.running.Add(1)
	iso.tally.running.Add(1)
}

func (c *tally) left(iso *isolate, n int) {
	if n == 0 {
		c.busy.Add(-1)
	}
	c.running.Add(-1)
	iso.tally.running.Add(-1)
}

// heapEvery is how often at most an isolate is asked how large it is: V8 takes microseconds to tell.
const heapEvery = time.Second

// sampleHeap notes the size of an isolate. Owner thread only.
func (c *tally) sampleHeap(iso *isolate, now time.Time) {
	if now.Sub(iso.sampled) < heapEvery {
		return
	}
	size := int64(iso.v8.HeapBytes())
	c.heap.Add(size - iso.heap)
	iso.tally.heap.Add(size - iso.heap)
	iso.heap, iso.sampled = size, now
}
