package isolates

import (
	"cmp"
	"fmt"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// hasEvenShare reports whether a tenant has at least an even share among the tenants that have isolates: of the
// thread's isolates, of the process's isolates, or of the heap.
func (h *heaps) hasEvenShare(tenant string) bool {
	cfg := &h.pool.cfg
	isolates, bytes := h.pool.use(tenant)
	tenants := h.pool.tenants()
	return len(h.isolates[tenant])*len(h.isolates) >= h.maxIsolates ||
		isolates*tenants >= int64(cfg.MaxIsolates-cfg.prewarmed()) || bytes*tenants >= int64(cfg.HeapMB)<<20
}

// evictFor closes an idle isolate of this thread to make room for one of tenant. A tenant that has its even share loses
// one of its own, if it has an idle one.
func (h *heaps) evictFor(tenant string) bool {
	return h.hasEvenShare(tenant) && h.evictIsolate(idlest(nil, h.isolates[tenant])) || h.evictGreedy()
}

// evictAnyFor is like evictFor, but it may also close an isolate that no thread has.
func (h *heaps) evictAnyFor(tenant string) bool {
	return h.hasEvenShare(tenant) && h.evictOf(tenant) || h.evictShared("") || h.evictGreedy()
}

// evictGreedy closes the isolate that has been idle longest. It prefers tenants that have more than one isolate and at
// least their even share of this thread. If there is none, it considers all.
func (h *heaps) evictGreedy() bool {
	var oldest *isolate
	tenants, heap := len(h.isolates), int64(h.pool.cfg.HeapMB)<<20/int64(len(h.pool.counters))
	for _, list := range h.isolates {
		if len(list) > 1 && (len(list)*tenants >= h.maxIsolates || list[0].counters.charged.Load()*int64(tenants) >= heap) {
			oldest = idlest(oldest, list)
		}
	}
	return h.evictIsolate(oldest) || h.evictOldest()
}

// makeRoom makes sure that w may have one more isolate. It may close others: the owner's own if the owner has its
// share, otherwise those that were idle longest. It returns false when all are in use. Then the attempt must wait.
func (h *heaps) makeRoom(w *workers.Worker) bool {
	cfg, tenant := &h.pool.cfg, h.pool.policies.Tenant(w.Owner)
	if h.count >= h.maxIsolates {
		h.sweep()
	}
	for {
		n, bytes := h.pool.use(tenant)
		mostN, mostBytes := h.pool.share(w.Owner)
		if n < mostN && bytes+freshHeap <= mostBytes {
			break
		}
		if !h.evictOf(tenant) {
			return false
		}
	}
	for int(h.pool.memory.live.Load()) >= cfg.MaxIsolates-cfg.prewarmed() ||
		h.pool.inUse()+freshHeap > int64(cfg.HeapMB)<<20 {
		if !h.evictAnyFor(tenant) {
			return false
		}
	}
	return h.count < h.maxIsolates || h.evictFor(tenant)
}

// mayAddIsolate reports whether there is room for one more isolate of w without closing any.
func (h *heaps) mayAddIsolate(w *workers.Worker) bool {
	cfg := &h.pool.cfg
	n, bytes := h.pool.use(h.pool.policies.Tenant(w.Owner))
	mostN, mostBytes := h.pool.share(w.Owner)
	return n < mostN && bytes+freshHeap <= mostBytes && h.count < h.maxIsolates &&
		int(h.pool.memory.live.Load()) < cfg.MaxIsolates-cfg.prewarmed() && h.pool.inUse()+freshHeap <= int64(cfg.HeapMB)<<20
}

// evictOldest closes the isolate that has been idle longest. Isolates of persistent workers come last.
func (h *heaps) evictOldest() bool {
	var oldest *isolate
	for _, list := range h.isolates {
		oldest = idlest(oldest, list)
	}
	return h.evictIsolate(oldest)
}

// evictOf closes the longest idle isolate of one tenant.
func (h *heaps) evictOf(tenant string) bool {
	return h.evictShared(tenant) || h.evictIsolate(idlest(nil, h.isolates[tenant]))
}

// idlest returns the isolate to close first: oldest, or one in the list in which nothing runs.
func idlest(oldest *isolate, list []*isolate) *isolate {
	for _, iso := range list {
		if iso.busy == 0 && !iso.away && (oldest == nil || iso.evictedBefore(oldest)) {
			oldest = iso
		}
	}
	return oldest
}

func (iso *isolate) evictedBefore(other *isolate) bool {
	if a, b := iso.mode == workers.Persistent, other.mode == workers.Persistent; a != b {
		return b
	}
	return iso.used.Before(other.used)
}

// evictIsolate closes an idle isolate to make room. It returns false if iso is nil.
func (h *heaps) evictIsolate(iso *isolate) bool {
	if iso == nil {
		return false
	}
	h.runs.terminateNow(iso)
	h.counters.evicted(iso)
	h.dropIsolate(iso)
	return true
}

// enforceBudget brings the heaps of the process below the budget after one has grown. It closes idle isolates of this
// thread. Then it ends what runs in the largest isolate of the owner that has most. Called between turns only.
func (h *heaps) enforceBudget() {
	going := int64(0) // bytes held for runs that were ended here; other goroutines free them
	for h.grown && h.pool.inUse()-going > int64(h.pool.cfg.HeapMB)<<20 {
		if h.evictShared("") || h.evictGreedy() {
			continue
		}
		iso := h.largest()
		if iso == nil || h.pool.inUse()/max(1, h.pool.memory.live.Load()) > iso.size() {
			break // other threads have more: they evict
		}
		going += iso.size() - iso.charged
		h.killIsolate(iso)
	}
	h.grown = false
}

// largest returns the largest isolate of the owner that has most on this thread.
func (h *heaps) largest() (most *isolate) {
	for _, list := range h.isolates {
		for _, iso := range list {
			if iso.away {
				continue
			}
			if most == nil ||
				cmp.Or(cmp.Compare(iso.counters.charged.Load()+h.pool.holdings.Of(iso.tenant), most.counters.charged.Load()+
					h.pool.holdings.Of(most.tenant)),
					cmp.Compare(iso.size(), most.size())) > 0 {
				most = iso
			}
		}
	}
	return most
}

// killIsolate closes an isolate, and ends what runs in it, because the process has too little memory.
func (h *heaps) killIsolate(iso *isolate) {
	h.counters.kills.inc(string(events.ReasonMemory))
	message := fmt.Sprintf("the heaps of the process have passed %d MB, and this one of %d MB was the largest of the owner that had most",
		h.pool.cfg.HeapMB, iso.heap>>20)
	for len(iso.contexts) > 0 && !iso.closed {
		jc := iso.contexts[0]
		for len(jc.runs) > 0 {
			h.runs.stop(jc.runs[0], events.ReasonMemory, message)
		}
		if !jc.closed {
			h.dropContext(jc)
		}
	}
	h.dropIsolate(iso)
}

// newInOwnIsolate makes a context in its own isolate. It returns nil if there is no room for one now.
func (h *heaps) newInOwnIsolate(w *workers.Worker, mode workers.Mode) (*jsContext, error) {
	if !h.makeRoom(w) {
		return nil, nil
	}
	return h.newContext(h.newIsolate(w, mode), w)
}

// size returns the bytes charged for an isolate, and the bytes held for its runs.
func (iso *isolate) size() int64 {
	sum := iso.charged
	for _, jc := range iso.contexts {
		for _, r := range jc.runs {
			sum += r.holder.Held()
		}
	}
	return sum
}
