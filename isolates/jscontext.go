package isolates

import (
	"fmt"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// isolate is a V8 heap of one tenant: an owner, or a group of owners. One thread owns it at a time.
type isolate struct {
	v8       *v8x.Isolate
	tenant   string
	mode     events.Mode // of all workers in it
	heapMB   int
	contexts []*jsContext
	busy     int // runs in it
	used     time.Time
	rest     rest // since then
	closed   bool
	away     bool           // a turn in it runs beside the thread: no thread may enter it
	later    []queuedCall   // queued calls that wait until it is back
	lost     bool           // V8 does not end that turn: it was given up
	dead     []*v8x.Context // its contexts when it was lost, to be closed if it comes back

	counters  *useCounters // its tenant's on this thread
	heap      int64        // its last measured size in bytes
	functions functions
	charged   int64 // bytes, for the larger of them (charges)
	charges   charges
	sampled   time.Time // when heap was measured

	unmeasured  time.Duration // time of turns since then
	latest      *jsContext    // whose turn was the latest
	collected   int64         // its size after the last garbage collection between runs
	setToOthers int64         // the size of others that was last passed to V8
}

// jsContext is a context with one worker's module in it. Between events it is idle and warm.
type jsContext struct {
	isolate   *isolate
	worker    *events.Worker
	v8        *v8x.Context
	runs      []*run // under way in it: at most one, except in a persistent context
	loader    *run   // the run that evaluates its module
	uses      int
	used      time.Time       // when the latest run in it began
	size      int64           // bytes of the isolate that are attributed to it
	loaded    bool            // its module is evaluated
	state     v8x.ModuleState // after the latest step of the evaluation
	closed    bool
	functions int64        // at most this many are in its code
	handlers  int          // bits of cmdHandlers
	life      *life        // nil unless the context is persistent
	counters  *useCounters // its worker's on this thread
	secrets   *Secrets     // in its env; nil = the worker names none
	reset     bool         // its worker was reset
}

// outdated reports whether no further event may begin in it.
func (jc *jsContext) outdated() bool { return jc.reset || jc.secrets.Replaced() }

// find returns the live run with that id.
func (jc *jsContext) find(id uint64) *run {
	if jc.life != nil && id == 0 {
		return jc.life.betweenEvents
	}
	for _, r := range jc.runs {
		if r.id == id {
			return r
		}
	}
	return nil
}

// acquire finds or makes the context for w, according to its mode. It returns nil if there is no room now.
func (h *heaps) acquire(w *events.Worker, mode events.Mode) (*jsContext, error) {
	// First, so that a worker that cannot run takes no room from others.
	if _, err := secretsOf(w, h.pool); err != nil {
		return nil, err
	}
	switch mode {
	case events.Oneshot:
		return h.fresh(w, mode)
	case events.Persistent:
		return h.persistents.acquire(w)
	case events.Shared:
		h.borrow(w)
	}
	return h.reuse(w, mode)
}

// reuse returns a warm context of that version, or makes a new one.
func (h *heaps) reuse(w *events.Worker, mode events.Mode) (*jsContext, error) {
	jc := h.warm(w, mode)
	if jc == nil {
		// Contexts are many. Those of other versions that have had no event for a while are unlikely to get another.
		now := time.Now()
		h.dropContexts(h.contexts.of(w.Owner, w.Name), discardRoom, func(jc *jsContext) bool {
			return jc.outdated() || !sameVersion(jc.worker, w) && now.Sub(jc.used) > h.pool.cfg.OldVersionIdle
		})
		return h.settle(h.place(w, mode), w, mode)
	}
	if h.stays(jc) {
		h.counters.warmHit(jc)
		return jc, nil
	}
	// Another isolate gets a context for w, if one has room. Closing this context leaves more room here.
	iso := h.place(w, mode)
	if !jc.closed && (iso == nil || iso == jc.isolate) {
		h.counters.warmHit(jc)
		return jc, nil
	}
	if !jc.closed {
		h.counters.discarded(jc, discardRoom)
		h.dropContext(jc)
	}
	return h.settle(iso, w, mode)
}

// warm returns an idle context of that version on the thread, with the current values of its secrets, in an isolate
// that its owner may still use. It returns nil if there is none.
func (h *heaps) warm(w *events.Worker, mode events.Mode) *jsContext {
	tenant := h.pool.policies.tenant(w.Owner)
	for _, jc := range h.contexts.of(w.Owner, w.Name) {
		if jc.isolate.mode == mode && jc.isolate.tenant == tenant && jc.warm(w) {
			return jc
		}
	}
	return nil
}

// settle makes a context in the isolate, or in the least crowded isolate if that is nil.
func (h *heaps) settle(iso *isolate, w *events.Worker, mode events.Mode) (*jsContext, error) {
	if iso == nil {
		iso = leastCrowded(h.own(w, mode), h.pool.cfg.ContextsPerIsolate)
	}
	if iso == nil {
		return nil, nil
	}
	return h.newContext(iso, w)
}

// own returns the isolates in which w may have a context.
func (h *heaps) own(w *events.Worker, mode events.Mode) []*isolate {
	heapMB := h.pool.limits(w).HeapMB
	return slices.DeleteFunc(slices.Clone(h.isolates[h.pool.policies.tenant(w.Owner)]), func(iso *isolate) bool {
		return iso.mode != mode || iso.heapMB != heapMB || iso.away
	})
}

// place returns an isolate for a context of w. It prefers, in this order: an isolate of the owner with room; a new one,
// if none must be closed for it; the one with the owner's context that was used longest ago, which it closes; a new one
// for which it closes idle ones. It returns nil if all are busy.
func (h *heaps) place(w *events.Worker, mode events.Mode) *isolate {
	own := h.own(w, mode)
	if i := slices.IndexFunc(own, h.hasRoom); i >= 0 {
		return own[i]
	}
	if h.vacant(w) {
		return h.newIsolate(w, mode)
	}
	if jc := idlestContext(own); jc != nil {
		h.counters.discarded(jc, discardRoom)
		h.dropContext(jc)
		return jc.isolate
	}
	if h.room(w) {
		return h.newIsolate(w, mode)
	}
	for _, iso := range own {
		if !iso.closed && h.thin(iso) && (h.hasRoom(iso) || h.collect(iso) && h.hasRoom(iso)) {
			return iso
		}
	}
	return nil
}

// warm reports whether it is an idle context of that version, with the current values of its secrets.
func (jc *jsContext) warm(w *events.Worker) bool {
	return !jc.isolate.away && len(jc.runs) == 0 && sameVersion(jc.worker, w) && !jc.outdated()
}

// fresh makes a context in its own isolate.
func (h *heaps) fresh(w *events.Worker, mode events.Mode) (*jsContext, error) {
	if !h.room(w) {
		return nil, nil
	}
	return h.newContext(h.newIsolate(w, mode), w)
}

// sameVersion reports whether both are the same version of the same worker. A redeploy makes a new *Worker
// of an old version only when its bundle is the same.
func sameVersion(a, b *events.Worker) bool {
	return a == b || a.Owner == b.Owner && a.Name == b.Name && a.Version == b.Version && a.Hash == b.Hash
}

func (h *heaps) newIsolate(w *events.Worker, mode events.Mode) *isolate {
	heapMB := h.pool.limits(w).HeapMB
	bytes := uint64(heapMB) << 20
	iso := &isolate{v8: h.pool.prewarmed.isolate(v8x.Limits{Heap: bytes, Buffers: bytes}), tenant: h.pool.policies.tenant(w.Owner), mode: mode, heapMB: heapMB, heap: freshHeap, charged: freshHeap, charges: h.pool.charges}
	h.pool.live.Add(1)
	h.take(iso)
	return iso
}

// take adds an isolate to the thread, and removeIsolate removes it.
func (h *heaps) take(iso *isolate) {
	h.isolates[iso.tenant] = append(h.isolates[iso.tenant], iso)
	for _, jc := range iso.contexts {
		h.contexts.add(jc)
	}
	h.count++
	h.counters.isolateOpened(iso)
}

func (h *heaps) removeIsolate(iso *isolate) {
	rest := slices.DeleteFunc(h.isolates[iso.tenant], func(x *isolate) bool { return x == iso })
	if len(rest) == 0 {
		delete(h.isolates, iso.tenant)
	} else {
		h.isolates[iso.tenant] = rest
	}
	for _, jc := range iso.contexts {
		h.contexts.remove(jc)
	}
	h.count--
	h.freed = true
	h.counters.isolateClosed(iso)
}

// contextIndex has the contexts of a thread by worker, in all its versions.
type contextIndex map[workerKey][]*jsContext

type workerKey struct{ owner, name string }

func keyOf(w *events.Worker) workerKey { return workerKey{w.Owner, w.Name} }

// of returns the contexts of a worker, oldest first.
func (x contextIndex) of(owner, name string) []*jsContext { return x[workerKey{owner, name}] }

// has reports whether there is a context of that version of a worker.
func (x contextIndex) has(w *events.Worker) bool {
	return slices.ContainsFunc(x[keyOf(w)], func(jc *jsContext) bool { return jc.worker.Version == w.Version })
}

func (x contextIndex) add(jc *jsContext) {
	k := keyOf(jc.worker)
	x[k] = append(x[k], jc)
}

func (x contextIndex) remove(jc *jsContext) {
	k := keyOf(jc.worker)
	if x[k] = slices.DeleteFunc(x[k], func(c *jsContext) bool { return c == jc }); len(x[k]) == 0 {
		delete(x, k)
	}
}

// newContext makes a context with the runtime and the worker's env. The first run loads the module.
func (h *heaps) newContext(iso *isolate, w *events.Worker) (*jsContext, error) {
	secrets, err := secretsOf(w, h.pool)
	if err != nil {
		return nil, err
	}
	jc := &jsContext{isolate: iso, worker: w, secrets: secrets, functions: v8x.FunctionsIn(w.Code)}
	h.lookBefore(jc)
	if jc.v8, err = iso.v8.NewContext(answer); err != nil {
		return nil, err
	}
	iso.latest = jc
	iso.contexts = append(iso.contexts, jc)
	h.contexts.add(jc)
	iso.functions.opened(jc.functions)
	h.counters.contextMade(jc)
	h.counters.tell(ContextMade, jc, "")
	h.look(iso, time.Now(), 0)
	h.grown = true
	bindings.Encode(h.call.Reset(opEnv), w, secrets).Bool(iso.mode == events.Persistent).Bool(h.pool.checks)
	if r := jc.v8.Call(h.call.Bytes(), nil); r.Err != nil {
		h.dropContext(jc)
		return nil, fmt.Errorf("isolates: env: %w", r.Err)
	}
	return jc, nil
}

// enlist and delist record the runs in a context.
func (h *heaps) enlist(jc *jsContext, r *run, now time.Time) {
	jc.runs = append(jc.runs, r)
	jc.used = now
	jc.isolate.busy++
	jc.isolate.used = now
	h.counters.entered(jc, jc.isolate.busy)
}

func (h *heaps) delist(jc *jsContext, r *run) {
	n := len(jc.runs)
	if jc.runs = slices.DeleteFunc(jc.runs, func(x *run) bool { return x == r }); len(jc.runs) == n {
		return
	}
	jc.isolate.busy--
	h.freed = true
	h.counters.left(jc, jc.isolate.busy)
}

// dropContext closes a context in which nothing runs.
func (h *heaps) dropContext(jc *jsContext) {
	if jc.closed {
		return
	}
	jc.closed = true
	iso := jc.isolate
	iso.contexts = slices.DeleteFunc(iso.contexts, func(x *jsContext) bool { return x == jc })
	h.contexts.remove(jc)
	iso.functions.dropped(jc.functions)
	if iso.latest == jc {
		iso.latest = nil
	}
	h.persistents.endBetween(jc)
	if iso.lost {
		iso.dead = append(iso.dead, jc.v8)
	} else {
		jc.v8.Close()
	}
	h.freed = true
	h.counters.contextClosed(jc)
	if iso.mode != events.Oneshot && !h.contexts.has(jc.worker) { // what oneshot makes is not used again
		h.closed = append(h.closed, jc.worker)
	}
}

// dropIsolate closes an isolate and all its contexts, in which nothing runs.
func (h *heaps) dropIsolate(iso *isolate) {
	if iso.closed {
		return
	}
	iso.closed = true
	iso.lost = iso.lost || iso.away // no other thread may touch it
	for len(iso.contexts) > 0 {
		h.dropContext(iso.contexts[0])
	}
	h.removeIsolate(iso)
	if iso.lost {
		h.pool.lost.Add(iso.charged)
	} else {
		iso.v8.Close()
	}
	h.pool.live.Add(-1)
	h.pool.trimSoon()
	if !h.runs.waits() {
		h.pool.wakeHungry()
	}
}

// sweep closes the isolates that have had their one event. It is called after the reply was sent.
func (h *heaps) sweep() {
	for _, iso := range h.spent {
		h.dropIsolate(iso)
	}
	clear(h.spent)
	h.spent = h.spent[:0]
}
