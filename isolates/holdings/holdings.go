// Package holdings counts the bytes that Go holds for runs, outside of V8.
package holdings

import (
	"sync"
	"sync/atomic"
)

// Holdings are the bytes that Go holds for runs: data that they send, data that comes for them, and data that is
// computed for them outside the thread. Each byte counts for one run, its tenant and the process. A run may hold as
// much as its ArrayBuffers may take. A tenant may hold bytes within its share of the heaps, and the process within the
// bound of all heaps. Safe for use by any goroutine.
type Holdings struct {
	mu       sync.Mutex
	tenants  map[string]int64 // entries of 0 are deleted
	total    atomic.Int64
	reported int64             // total when changed was last called; by mu
	changed  func(total int64) // nil, or called when total has changed by step
}

// step is the change of the total after which changed is called again.
const step = 32 << 20

// Holder is a run for which bytes are counted. Make it with its tenant.
type Holder struct {
	Tenant    string
	held      atomic.Int64
	forgotten bool // nothing more is counted for it; guarded by Holdings.mu
}

// Held returns the bytes that are counted for it. Any goroutine may call it.
func (r *Holder) Held() int64 { return r.held.Load() }

// OnChange has changed called, by any goroutine, when the total has changed by much. Call it before everything else.
func (h *Holdings) OnChange(changed func(total int64)) { h.changed = changed }

// Add counts n bytes for r, or uncounts them if n is negative.
func (h *Holdings) Add(r *Holder, n int64) {
	h.mu.Lock()
	total, changed := h.count(r, n)
	h.mu.Unlock()
	if changed && h.changed != nil {
		h.changed(total)
	}
}

// count adds n bytes, and reports whether the total has changed much. With mu.
func (h *Holdings) count(r *Holder, n int64) (total int64, much bool) {
	if r.forgotten {
		return 0, false
	}
	r.held.Add(n)
	total = h.total.Add(n)
	if h.tenants == nil {
		h.tenants = map[string]int64{}
	}
	if h.tenants[r.Tenant] += n; h.tenants[r.Tenant] == 0 {
		delete(h.tenants, r.Tenant)
	}
	much = total-h.reported >= step || h.reported-total >= step
	if much {
		h.reported = total
	}
	return total, much
}

// Forget uncounts the bytes of a run whose turn or thread is lost. From now on nothing is counted for it: the queued
// calls that would uncount its bytes are never done. Any goroutine may call it.
func (h *Holdings) Forget(r *Holder) {
	h.mu.Lock()
	total, changed := h.count(r, -r.held.Load())
	r.forgotten = true
	h.mu.Unlock()
	if changed && h.changed != nil {
		h.changed(total)
	}
}

// Of returns the bytes held for a tenant's runs.
func (h *Holdings) Of(tenant string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tenants[tenant]
}

// Total returns the bytes held for all runs.
func (h *Holdings) Total() int64 { return h.total.Load() }

// Tenants returns how many tenants hold bytes.
func (h *Holdings) Tenants() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.tenants)
}
