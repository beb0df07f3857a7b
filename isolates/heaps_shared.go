package isolates

import (
	"slices"
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// sharedPool has the isolates of mode shared that no thread owns now. A thread takes one for as long as something runs
// in it. No other thread can use it in that time, and no thread ever waits for V8's own lock.
type sharedPool struct {
	mu       sync.Mutex
	idle     []*isolate // longest idle first
	counters counters   // counts the idle isolates; written with the lock held
}

// borrow moves an idle isolate of the tenant of w to the thread. It prefers one with a warm context of that version,
// then one that has room for another context.
func (h *heaps) borrow(w *workers.Worker) {
	if h.warm(w, workers.Shared) != nil {
		return
	}
	c := &h.pool.shared
	c.mu.Lock()
	i := c.find(h.pool.policies.Tenant(w.Owner), w, h.pool.limits(w).HeapMB, h.pool.cfg.ContextsPerIsolate)
	if i < 0 || h.count >= h.maxIsolates {
		c.mu.Unlock()
		return
	}
	iso := c.remove(i)
	c.mu.Unlock()
	h.addIsolate(iso)
	h.lent = append(h.lent, iso) // given back if it is not used
}

// find returns the index of the best idle isolate for w, or -1 if none is suitable. most is the largest number of
// contexts in an isolate.
func (c *sharedPool) find(tenant string, w *workers.Worker, heapMB, most int) int {
	fits := -1
	for i, iso := range slices.Backward(c.idle) {
		if iso.tenant != tenant {
			continue
		}
		if slices.ContainsFunc(iso.contexts, func(jc *jsContext) bool { return jc.warm(w) }) {
			return i
		}
		if fits < 0 && iso.heapMB == heapMB && len(iso.contexts) < most && iso.heap <= iso.othersLimit() {
			fits = i
		}
	}
	return fits
}

// borrowAll moves all idle isolates of a tenant to the thread, for the rest of the round.
func (h *heaps) borrowAll(tenant string) {
	c := &h.pool.shared
	c.mu.Lock()
	var list []*isolate
	for i, iso := range slices.Backward(c.idle) {
		if iso.tenant == tenant {
			list = append(list, c.remove(i))
		}
	}
	c.mu.Unlock()
	for _, iso := range list {
		h.addIsolate(iso)
	}
	h.lent = append(h.lent, list...)
}

func (c *sharedPool) remove(i int) *isolate {
	iso := c.idle[i]
	c.idle = slices.Delete(c.idle, i, i+1)
	c.counters.isolateClosed(iso)
	return iso
}

// giveBack returns the thread's shared isolates in which nothing runs, so that other threads find them. It is not
// called during a turn: the code after a turn still uses its isolate.
func (h *heaps) giveBack() {
	if len(h.lent) == 0 {
		return
	}
	c := &h.pool.shared
	for _, iso := range h.lent {
		if iso.closed || iso.busy > 0 || !slices.Contains(h.isolates[iso.tenant], iso) {
			continue
		}
		h.removeIsolate(iso)
		c.mu.Lock()
		c.idle = append(c.idle, iso)
		c.counters.isolateOpened(iso)
		c.mu.Unlock()
	}
	clear(h.lent)
	h.lent = h.lent[:0]
	h.pool.wakeWaiting()
}

// evictShared closes the shared isolate that has been idle longest. If tenant is not "", it considers only isolates of
// that tenant.
func (h *heaps) evictShared(tenant string) bool {
	c := &h.pool.shared
	c.mu.Lock()
	i := slices.IndexFunc(c.idle, func(iso *isolate) bool { return tenant == "" || iso.tenant == tenant })
	if i < 0 {
		c.mu.Unlock()
		return false
	}
	iso := c.remove(i)
	c.mu.Unlock()
	h.addIsolate(iso)
	h.counters.evicted(iso)
	h.dropIsolate(iso)
	return true
}

// close frees the idle isolates. All threads have ended.
func (c *sharedPool) close() {
	for _, iso := range c.idle {
		for _, jc := range iso.contexts {
			jc.v8.Close()
		}
		iso.v8.Close()
	}
	c.idle = nil
}
