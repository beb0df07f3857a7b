package isolates

import (
	"slices"
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
)

// commons are the isolates of mode shared that no thread has in its hands. A thread takes one for as long as something runs
// in it: no other can use it meanwhile, and V8's own lock is never waited for.
type commons struct {
	mu    sync.Mutex
	idle  []*isolate // the one idle the longest first
	tally tally      // of what is idle; written with the lock held
}

// borrow takes an idle isolate of the owner of w into the thread's hands: one with a warm context of that version if there
// is any, else one that has room for another context.
func (t *thread) borrow(w *events.Worker) {
	for _, iso := range t.isolates[w.Owner] {
		if iso.mode == events.Shared && iso.warm(w) != nil {
			return
		}
	}
	c := &t.pool.commons
	c.mu.Lock()
	i := c.find(w, t.pool.limits(w).HeapMB, t.pool.cfg.ContextsPerIsolate)
	if i < 0 || t.count >= t.maxIsolates {
		c.mu.Unlock()
		return
	}
	iso := c.remove(i)
	c.mu.Unlock()
	t.take(iso)
	t.lent = append(t.lent, iso) // should it not be used after all
}

// find is the index of the best idle isolate for w, -1 when none will do. most is how many contexts one has at most.
func (c *commons) find(w *events.Worker, heapMB, most int) int {
	fits := -1
	for i, iso := range slices.Backward(c.idle) {
		if iso.owner != w.Owner {
			continue
		}
		if iso.warm(w) != nil {
			return i
		}
		if fits < 0 && iso.heapMB == heapMB && len(iso.guests) < most && iso.heap <= iso.crowd() {
			fits = i
		}
	}
	return fits
}

// borrowAll takes all idle isolates of an owner into the thread's hands, for the rest of the round.
func (t *thread) borrowAll(owner string) {
	c := &t.pool.commons
	c.mu.Lock()
	var list []*isolate
	for i, iso := range slices.Backward(c.idle) {
		if iso.owner == owner {
			list = append(list, c.remove(i))
		}
	}
	c.mu.Unlock()
	for _, iso := range list {
		t.take(iso)
	}
	t.lent = append(t.lent, list...)
}

func (c *commons) remove(i int) *isolate {
	iso := c.idle[i]
	c.idle = slices.Delete(c.idle, i, i+1)
	c.tally.isolateClosed(iso)
	return iso
}

// giveBack puts the thread's shared isolates in which nothing runs any more where other threads find them. Not in the
// middle of a turn: what follows a turn still looks at its isolate.
func (t *thread) giveBack() {
	if len(t.lent) == 0 {
		return
	}
	c := &t.pool.commons
	for _, iso := range t.lent {
		if iso.closed || iso.busy > 0 || !slices.Contains(t.isolates[iso.owner], iso) {
			continue
		}
		t.letGo(iso)
		c.mu.Lock()
		c.idle = append(c.idle, iso)
		c.tally.isolateOpened(iso)
		c.mu.Unlock()
	}
	clear(t.lent)
	t.lent = t.lent[:0]
	t.pool.wakeHungry()
}

// evictShared closes the shared isolate, of one owner if that is not "", that has been idle the longest.
func (t *thread) evictShared(owner string) bool {
	c := &t.pool.commons
	c.mu.Lock()
	i := slices.IndexFunc(c.idle, func(iso *isolate) bool { return owner == "" || iso.owner == owner })
	if i < 0 {
		c.mu.Unlock()
		return false
	}
	iso := c.remove(i)
	c.mu.Unlock()
	t.take(iso)
	t.dropIsolate(iso)
	t.tally.evictions.Add(1)
	return true
}

// close frees what is idle. No thread runs any more.
func (c *commons) close() {
	for _, iso := range c.idle {
		for _, g := range iso.guests {
			g.ctx.Close()
		}
		iso.v8.Close()
	}
	c.idle = nil
}
