package isolates

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/charges"
	"github.com/pinwheel-run/pinwheel/isolates/holdings"
	"github.com/pinwheel-run/pinwheel/isolates/owners"
	"github.com/pinwheel-run/pinwheel/isolates/prewarm"
	"github.com/pinwheel-run/pinwheel/isolates/stacks"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
	"github.com/pinwheel-run/pinwheel/isolates/wasmgate"
)

// poolHeaps is what the heaps of all threads share: what they may have, what they take, and the isolates that no thread
// has. It knows no thread, only the counters of each. Any goroutine may call its methods.
//
// What all isolates take together stays below cfg.HeapMB: it is memory.lost, the counters of the threads and of shared,
// and holdings. Who needs more closes something first, on its own thread (heaps.makeRoom).
type poolHeaps struct {
	cfg       Config
	checks    bool // the pool belongs to a Checker
	policies  owners.Policies
	stacks    stacks.Maps
	wasm      *wasmgate.Gate
	prewarmed *prewarm.Set
	memory    poolMemory
	shared    sharedPool
	holdings  holdings.Holdings
	counters  []atomic.Pointer[counters] // of the thread of each number; replaced with it

	waitingThreads atomic.Uint64    // threads with attempts that wait for room, a bit each
	wake           func(thread int) // has a thread try its waiting attempts again
}

// open sets up p for a pool with that configuration.
func (p *poolHeaps) open(cfg Config, wake func(thread int)) {
	p.cfg, p.wake = cfg, wake
	p.prewarmed = prewarm.New(cfg.prewarmed())
	p.wasm = wasmgate.New(cfg.Compilers != workers.CompilersBaseline && cfg.Compilers != workers.CompilersNone)
	p.memory.charges = charges.For(cfg.HeapMB)
	p.holdings.OnChange(cfg.Held)
	p.counters = make([]atomic.Pointer[counters], cfg.Threads+cfg.Background)
}

// poolMemory is what the isolates of all threads take.
type poolMemory struct {
	live    atomic.Int64 // number of isolates
	lost    atomic.Int64 // bytes charged for isolates that were lost with their threads
	charges charges.Rates
	trimSet atomic.Bool // a trim is due
}

// sharedPool has the isolates of mode shared that no thread owns now. A thread takes one for as long as something runs
// in it. No other thread can use it in that time, and no thread ever waits for V8's own lock.
type sharedPool struct {
	mu       sync.Mutex
	idle     []*isolate // longest idle first
	counters counters   // counts the idle isolates; written with the lock held
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

func (c *sharedPool) remove(i int) *isolate {
	iso := c.idle[i]
	c.idle = slices.Delete(c.idle, i, i+1)
	c.counters.isolateClosed(iso)
	return iso
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

// tenants estimates how many tenants have isolates. It is the largest number of them on one thread, or among the
// isolates that no thread has.
func (p *poolHeaps) tenants() (most int64) {
	count := func(c *counters) {
		c.mu.Lock()
		defer c.mu.Unlock()
		most = max(most, int64(len(c.tenants)))
	}
	for i := range p.counters {
		count(p.counters[i].Load())
	}
	count(&p.shared.counters)
	return most
}

// use returns what a tenant has in the process: isolates, and the bytes charged for them and held for their runs.
func (p *poolHeaps) use(tenant string) (isolates, bytes int64) {
	add := func(c *counters) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if u := c.tenants[tenant]; u != nil {
			isolates += u.isolates.Load()
			bytes += u.charged.Load()
		}
	}
	for i := range p.counters {
		add(p.counters[i].Load())
	}
	add(&p.shared.counters)
	return isolates, bytes + p.holdings.Of(tenant)
}

// charged returns the bytes charged for all isolates when last measured, including those that were lost with their
// threads.
func (p *poolHeaps) charged() int64 {
	sum := p.memory.lost.Load() + p.shared.counters.charged.Load()
	for i := range p.counters {
		sum += p.counters[i].Load().charged.Load()
	}
	return sum
}

// inUse returns the bytes charged for all isolates, and the bytes that Go holds for their runs.
func (p *poolHeaps) inUse() int64 { return p.charged() + p.holdings.Total() }

// share returns how many isolates, and bytes in them, an owner may have.
func (p *poolHeaps) share(owner string) (isolates, bytes int64) {
	return p.policies.Share(owner, int64(p.cfg.OwnerMaxIsolates), int64(p.cfg.OwnerHeapMB)<<20)
}

// limits returns the limits of a worker, within what its owner may have now.
func (p *poolHeaps) limits(w *workers.Worker) workers.Limits { return p.policies.Limits(w) }

// trimAfter is how long after an isolate was closed the memory that it left goes back to the system, all of it at once.
const trimAfter = 2 * time.Second

// trimSoon schedules this. It may happen after Close.
func (p *poolHeaps) trimSoon() {
	if p.memory.trimSet.CompareAndSwap(false, true) {
		time.AfterFunc(trimAfter, func() {
			p.memory.trimSet.Store(false)
			v8x.Trim()
		})
	}
}

// wakeWaiting notifies the threads whose attempts wait for room.
func (p *poolHeaps) wakeWaiting() {
	if p.waitingThreads.Load() == 0 {
		return
	}
	set := p.waitingThreads.Swap(0)
	for i := range p.counters {
		if set&(1<<i) != 0 {
			p.wake(i)
		}
	}
}

// hold counts n bytes as r's. The error says which limit that would exceed, and nothing is counted then. After success
// the caller must uncount the bytes with drop.
func (p *poolHeaps) hold(r *run, n int) error {
	size, most := int64(n), int64(r.limits.HeapMB)<<20
	_, ofTenant := p.use(r.holder.Tenant)
	_, share := p.share(r.attempt.Worker.Owner)
	budget := int64(p.cfg.HeapMB) << 20
	if guard.RunMemory.Off() {
		most, share, budget = math.MaxInt64, math.MaxInt64, math.MaxInt64
	}
	switch held := r.holder.Held(); {
	case held+size > most:
		return fmt.Errorf("%d bytes are too much: the event holds %d outside of its heap, of %d at most (limits.heapMB)", n, held, most)
	case ofTenant+size > share:
		return fmt.Errorf("%d bytes are too much: the owner's events hold all that they may in this process, %d bytes", n, share)
	case p.inUse()+size > budget:
		return fmt.Errorf("%d bytes are too much: the process has no memory for them now", n)
	}
	p.holdings.Add(&r.holder, size)
	return nil
}

// drop uncounts n bytes that hold counted.
func (p *poolHeaps) drop(r *run, n int) { p.holdings.Add(&r.holder, -int64(n)) }

// free closes an isolate that was given up and whose turn has come back. Its thread may have ended.
func (p *poolHeaps) free(iso *isolate) {
	for _, c := range iso.dead {
		c.Close()
	}
	iso.dead = nil
	iso.v8.Close()
	p.memory.lost.Add(-iso.charged)
}

// forgetCalls forgets the runs of queued calls that are never done.
func (p *poolHeaps) forgetCalls(lost ...queuedCall) {
	for _, c := range lost {
		if c.run != nil {
			p.holdings.Forget(&c.run.holder)
		}
	}
}

// forgetIsolate forgets the runs of a lost isolate.
func (p *poolHeaps) forgetIsolate(iso *isolate) {
	for _, jc := range iso.contexts {
		for _, r := range jc.runs {
			p.holdings.Forget(&r.holder)
		}
		if jc.life != nil {
			p.holdings.Forget(&jc.life.betweenEvents.holder)
		}
	}
	p.forgetCalls(iso.later...)
}
