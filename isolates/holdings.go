package isolates

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// holdings are the bytes that Go holds for runs: what they send, what comes for them, and what is computed for them elsewhere. Each is one
// run's, which may hold as much as its ArrayBuffers may take; its owner's, within the owner's share of the heaps; and the process's, within
// what all heaps may take. Safe for use by any goroutine.
type holdings struct {
	mu     sync.Mutex
	owners map[string]int64 // none is 0
	total  atomic.Int64
	told   int64 // total when Config.Held was last called; by mu
}

// heldStep is by how much total changes before Config.Held is called again.
const heldStep = 32 << 20

// hold counts n bytes as r's, unless that would be too much: the error says for whom. Whoever holds drops.
func (p *Pool) hold(r *run, n int) error {
	size, most := int64(n), int64(r.limits.HeapMB)<<20
	owner := r.attempt.Worker.Owner
	_, ofOwner := p.ownerUse(owner)
	_, share := p.share(owner)
	budget := int64(p.cfg.HeapMB) << 20
	if guard.RunMemory.Off() {
		most, share, budget = math.MaxInt64, math.MaxInt64, math.MaxInt64
	}
	switch held := r.held.Load(); {
	case held+size > most:
		return fmt.Errorf("%d bytes are too much: the event holds %d outside of its heap, of %d at most (limits.heapMB)", n, held, most)
	case ofOwner+size > share:
		return fmt.Errorf("%d bytes are too much: the owner's events hold all that they may in this process, %d bytes", n, share)
	case p.inUse()+size > budget:
		return fmt.Errorf("%d bytes are too much: the process has no memory for them now", n)
	}
	p.holdings.add(p, r, owner, size)
	return nil
}

// drop takes back what hold counted.
func (p *Pool) drop(r *run, n int) { p.holdings.add(p, r, r.attempt.Worker.Owner, -int64(n)) }

func (h *holdings) add(p *Pool, r *run, owner string, n int64) {
	r.held.Add(n)
	total := h.total.Add(n)
	h.mu.Lock()
	if h.owners == nil {
		h.owners = map[string]int64{}
	}
	if h.owners[owner] += n; h.owners[owner] == 0 {
		delete(h.owners, owner)
	}
	tell := p.cfg.Held != nil && (total-h.told >= heldStep || h.told-total >= heldStep)
	if tell {
		h.told = total
	}
	h.mu.Unlock()
	if tell {
		p.cfg.Held(total)
	}
}

// of is what an owner's runs hold.
func (h *holdings) of(owner string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owners[owner]
}

// inUse is what all isolates take, and what Go holds for what runs in them.
func (p *Pool) inUse() int64 { return p.heapBytes() + p.holdings.total.Load() }

// size is what an isolate takes, with what is held for what runs in it.
func (iso *isolate) size() int64 {
	sum := iso.heap
	for _, g := range iso.guests {
		for _, r := range g.runs {
			sum += r.held.Load()
		}
	}
	return sum
}
