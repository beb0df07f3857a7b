package isolates

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
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

// tenants estimates how many tenants have isolates. It is the largest number of them on one thread, or among the
// isolates that no thread has.
func (p *Pool) tenants() (most int64) {
	count := func(c *counters) {
		c.mu.Lock()
		defer c.mu.Unlock()
		most = max(most, int64(len(c.tenants)))
	}
	for i := range p.threads {
		count(&p.threads[i].Load().heaps.counters)
	}
	count(&p.shared.counters)
	return most
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
	tenants, heap := len(h.isolates), int64(h.pool.cfg.HeapMB)<<20/int64(len(h.pool.threads))
	for _, list := range h.isolates {
		if len(list) > 1 && (len(list)*tenants >= h.maxIsolates || list[0].counters.charged.Load()*int64(tenants) >= heap) {
			oldest = idlest(oldest, list)
		}
	}
	return h.evictIsolate(oldest) || h.evictOldest()
}

// The heaps of all isolates of a process lie in one address range of 4 GB (V8's pointer compression cage). V8 ends the
// process, or a thread of it, when that range is full. So the sum of the heaps is kept below a budget. A new isolate is
// made only where it fits. When existing isolates have grown too large, idle ones are closed first, then the largest.
const (
	cageMB  = 4096
	slackMB = 512 // a single value may be this large before V8 checks any limit
	// freshHeap is the assumed size of a new isolate with a context from the snapshot. The isolate is measured after
	// its first turns.
	freshHeap = 3 << 20
	// measureAfter is how long a turn must take for a heap to grow by an amount that matters. The isolate is measured
	// after such a turn.
	measureAfter = 2 * time.Millisecond
	// measureBetween is the same if the next turn belongs to another context. A measurement takes microseconds.
	measureBetween = 200 * time.Microsecond
)

// mostHeapMB is the largest budget for that many threads. It leaves room for the slack. It also assumes that each
// thread may be in an isolate that is about to grow to its limit, and beyond it by as much as the other contexts in the
// isolate may have.
func mostHeapMB(threads int) int {
	return max(cageMB-slackMB-threads*(workers.DefaultLimits.HeapMB+maxOthers>>20), 512)
}

// V8 has one table for the functions of all isolates of a process, and one range of addresses for their machine code.
// Neither must be full. So an isolate is charged for its heap, for its functions, or for its machine code: the most of
// the three. mostFunctions, or mostCode, are charged like all of Config.HeapMB. The rest of the table is for functions
// of WebAssembly, and for what isolates leave empty. The rest of the range is for what compiles between measurements.
const (
	mostFunctions = v8x.MaxFunctions * 3 / 4
	mostCode      = v8x.MaxCode * 3 / 4
)

// charges are the bytes that an isolate is charged for a function, and for 1024 bytes of machine code.
type charges struct{ function, codeKB int64 }

func chargesFor(heapMB int) charges {
	most := int64(heapMB) << 20
	return charges{max(1, most/mostFunctions), max(1, most/(mostCode>>10))}
}

func (c charges) of(heap, functions, code int64) int64 {
	return max(heap, functions*c.function, code>>10*c.codeKB)
}

// functions counts what an isolate has in V8's table.
type functions struct {
	live int64 // of its contexts
	// of contexts that were closed before V8 last collected all garbage, and since. V8 may begin to look for garbage
	// before a context is closed, and free it with the collection after that.
	closed, closedNow int64
	collections       uint32 // when these were counted
}

func (f *functions) opened(n int64) { f.live += n }

func (f *functions) dropped(n int64) { f.live, f.closedNow = f.live-n, f.closedNow+n }

// collected records how many times V8 has collected all garbage by now.
func (f *functions) collected(times uint32) {
	if times != f.collections {
		f.closed = f.closedNow
		if times-f.collections > 1 {
			f.closed = 0
		}
		f.closedNow, f.collections = 0, times
	}
}

func (f *functions) count() int64 { return f.live + f.closed + f.closedNow }

// use returns what a tenant has in the process: isolates, and the bytes charged for them and held for their runs.
func (p *Pool) use(tenant string) (isolates, bytes int64) {
	add := func(c *counters) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if u := c.tenants[tenant]; u != nil {
			isolates += u.isolates.Load()
			bytes += u.charged.Load()
		}
	}
	for i := range p.threads {
		add(&p.threads[i].Load().heaps.counters)
	}
	add(&p.shared.counters)
	return isolates, bytes + p.holdings.of(tenant)
}

// charged returns the bytes charged for all isolates when last measured, including those that were lost with their
// threads.
func (p *Pool) charged() int64 {
	sum := p.memory.lost.Load() + p.shared.counters.charged.Load()
	for i := range p.threads {
		sum += p.threads[i].Load().heaps.counters.charged.Load()
	}
	return sum
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
				cmp.Or(cmp.Compare(iso.counters.charged.Load()+h.pool.holdings.of(iso.tenant), most.counters.charged.Load()+
					h.pool.holdings.of(most.tenant)),
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

// trimAfter is how long after an isolate was closed the memory that it left goes back to the system, all of it at once.
const trimAfter = 2 * time.Second

// trimSoon schedules this. It may happen after Close.
func (p *Pool) trimSoon() {
	if p.memory.trimSet.CompareAndSwap(false, true) {
		time.AfterFunc(trimAfter, func() {
			p.memory.trimSet.Store(false)
			v8x.Trim()
		})
	}
}

// limits returns the limits of a worker, within what its owner may have now.
func (p *Pool) limits(w *workers.Worker) workers.Limits { return p.policies.Limits(w) }

// share returns how many isolates, and bytes in them, an owner may have.
func (p *Pool) share(owner string) (isolates, bytes int64) {
	return p.policies.Share(owner, int64(p.cfg.OwnerMaxIsolates), int64(p.cfg.OwnerHeapMB)<<20)
}
