package isolates

import (
	"slices"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

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
	h.borrowed = append(h.borrowed, iso) // given back if it is not used
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
	h.borrowed = append(h.borrowed, list...)
}

// giveBack returns the thread's shared isolates in which nothing runs, so that other threads find them. It is not
// called during a turn: the code after a turn still uses its isolate.
func (h *heaps) giveBack() {
	if len(h.borrowed) == 0 {
		return
	}
	c := &h.pool.shared
	for _, iso := range h.borrowed {
		if iso.closed || iso.busy > 0 || !slices.Contains(h.isolates[iso.tenant], iso) {
			continue
		}
		h.removeIsolate(iso)
		c.mu.Lock()
		c.idle = append(c.idle, iso)
		c.counters.isolateOpened(iso)
		c.mu.Unlock()
	}
	clear(h.borrowed)
	h.borrowed = h.borrowed[:0]
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
