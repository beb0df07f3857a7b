package isolates

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// holdings are the bytes that Go holds for runs: data that they send, data that comes for them, and data that is
// computed for them outside the thread. Each byte counts for one run, its tenant and the process. A run may hold as
// much as its ArrayBuffers may take. A tenant may hold bytes within its share of the heaps, and the process within the
// bound of all heaps. Safe for use by any goroutine.
type holdings struct {
	mu       sync.Mutex
	tenants  map[string]int64 // entries of 0 are deleted
	total    atomic.Int64
	reported int64 // total when Config.Held was last called; by mu
}

// heldStep is the change of total after which Config.Held is called again.
const heldStep = 32 << 20

// hold counts n bytes as r's. The error says which limit that would exceed, and nothing is counted then. After success
// the caller must uncount the bytes with drop.
func (p *Pool) hold(r *run, n int) error {
	size, most := int64(n), int64(r.limits.HeapMB)<<20
	_, ofTenant := p.use(r.tenant)
	_, share := p.share(r.attempt.Worker.Owner)
	budget := int64(p.cfg.HeapMB) << 20
	if guard.RunMemory.Off() {
		most, share, budget = math.MaxInt64, math.MaxInt64, math.MaxInt64
	}
	switch held := r.held.Load(); {
	case held+size > most:
		return fmt.Errorf("%d bytes are too much: the event holds %d outside of its heap, of %d at most (limits.heapMB)", n, held, most)
	case ofTenant+size > share:
		return fmt.Errorf("%d bytes are too much: the owner's events hold all that they may in this process, %d bytes", n, share)
	case p.inUse()+size > budget:
		return fmt.Errorf("%d bytes are too much: the process has no memory for them now", n)
	}
	p.holdings.add(p, r, size)
	return nil
}

// drop uncounts n bytes that hold counted.
func (p *Pool) drop(r *run, n int) { p.holdings.add(p, r, -int64(n)) }

func (h *holdings) add(p *Pool, r *run, n int64) {
	h.mu.Lock()
	total, changed := h.count(r, n)
	h.mu.Unlock()
	if changed && p.cfg.Held != nil {
		p.cfg.Held(total)
	}
}

// count adds n bytes, and reports whether the total has changed much. With mu.
func (h *holdings) count(r *run, n int64) (total int64, much bool) {
	if r.forgotten {
		return 0, false
	}
	r.held.Add(n)
	total = h.total.Add(n)
	if h.tenants == nil {
		h.tenants = map[string]int64{}
	}
	if h.tenants[r.tenant] += n; h.tenants[r.tenant] == 0 {
		delete(h.tenants, r.tenant)
	}
	much = total-h.reported >= heldStep || h.reported-total >= heldStep
	if much {
		h.reported = total
	}
	return total, much
}

// forget uncounts the bytes of a run whose turn or thread is lost. From now on nothing is counted for it: the queued
// calls that would uncount its bytes are never done. Any goroutine may call it.
func (h *holdings) forget(p *Pool, r *run) {
	h.mu.Lock()
	total, changed := h.count(r, -r.held.Load())
	r.forgotten = true
	h.mu.Unlock()
	if changed && p.cfg.Held != nil {
		p.cfg.Held(total)
	}
}

// forgetCalls forgets the runs of queued calls that are never done.
func (h *holdings) forgetCalls(p *Pool, lost ...queuedCall) {
	for _, c := range lost {
		if c.run != nil {
			h.forget(p, c.run)
		}
	}
}

// forgetIsolate forgets the runs of a lost isolate.
func (h *holdings) forgetIsolate(p *Pool, iso *isolate) {
	for _, jc := range iso.contexts {
		for _, r := range jc.runs {
			h.forget(p, r)
		}
		if jc.life != nil {
			h.forget(p, jc.life.betweenEvents)
		}
	}
	h.forgetCalls(p, iso.later...)
}

// forgetThread forgets the runs of a lost thread. Pool.replace only.
func (h *holdings) forgetThread(t *thread) {
	for _, list := range t.heaps.isolates {
		for _, iso := range list {
			h.forgetIsolate(t.pool, iso)
		}
	}
	for _, o := range t.queuedCalls.ring {
		h.forgetCalls(t.pool, o.list[o.first:]...)
	}
	h.forgetCalls(t.pool, t.inbox.lost()...)
}

// of returns the bytes held for a tenant's runs.
func (h *holdings) of(tenant string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tenants[tenant]
}

// inUse returns the bytes charged for all isolates, and the bytes that Go holds for their runs.
func (p *Pool) inUse() int64 { return p.charged() + p.holdings.total.Load() }

// size returns the bytes charged for an isolate, and the bytes held for its runs.
func (iso *isolate) size() int64 {
	sum := iso.charged
	for _, jc := range iso.contexts {
		for _, r := range jc.runs {
			sum += r.held.Load()
		}
	}
	return sum
}
