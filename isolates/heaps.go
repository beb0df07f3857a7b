package isolates

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/ask"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/owners"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// heaps are the isolates of one thread and the contexts in them. They make and close both, and make room for them
// (heaps_room.go). Which context an attempt gets is up to the placer. They begin and end no attempt. Only their thread
// uses them, so they have no locks. Other goroutines may read counters. The isolates of mode shared that no thread uses
// are in poolHeaps.shared.
//
// An isolate is in isolates, and its contexts are in contexts, from addIsolate to removeIsolate: count is the length of
// all lists in isolates. borrowed and toClose name some of these isolates again, or isolates that were closed since. A
// context of a persistent worker is in persistents as well, for as long as it takes events.
type heaps struct {
	pool        *poolHeaps
	runs        runner
	endBetween  func(*jsContext) // ends what a persistent context does between events, before it is closed
	counters    counters         // any goroutine may read it
	maxIsolates int

	isolates map[string][]*isolate // by tenant
	contexts contextIndex          // in these isolates
	count    int                   // number of isolates
	borrowed []*isolate            // shared isolates that may be given back
	toClose  []*isolate            // isolates of mode oneshot that must be closed
	closed   []*workers.Worker     // whose last context was closed, not reported yet

	freed      bool          // there may be room for attempts that wait
	grown      bool          // a heap was found larger: the budget of the process must be checked
	collecting time.Duration // CPU time of garbage collections before the run, which its owner pays and not the run
	call       v8x.Call
}

// runner is what heaps need of their thread, which alone begins and ends runs. Its methods may close contexts. heaps
// call it when something is closed, never for an event that finds its context.
type runner interface {
	// stop ends a run that cannot continue.
	stop(r *run, why events.Reason, message string)
	// interrupt ends the runs in an isolate, to be repeated, and closes it.
	interrupt(iso *isolate)
	// terminateNow calls onTerminate of a persistent context in an isolate that is about to be closed.
	terminateNow(iso *isolate)
	// hasWaiting reports whether attempts wait for room.
	hasWaiting() bool
}

// prepare sets up the heaps of the thread with that number, which has no isolates yet.
func (h *heaps) prepare(p *poolHeaps, thread int, runs runner, endBetween func(*jsContext)) {
	h.pool, h.runs, h.endBetween = p, runs, endBetween
	h.counters.changed = p.cfg.OnContext
	h.maxIsolates = p.cfg.maxIsolatesOf(thread)
	h.isolates, h.contexts = map[string][]*isolate{}, contextIndex{}
}

func (h *heaps) newIsolate(w *workers.Worker, mode workers.Mode) *isolate {
	heapMB := h.pool.limits(w).HeapMB
	bytes := uint64(heapMB) << 20
	iso := &isolate{v8: h.pool.prewarmed.Isolate(v8x.Limits{Heap: bytes, Buffers: bytes}),
		tenant: h.pool.policies.Tenant(
			w.Owner), mode: mode, heapMB: heapMB, heap: freshHeap, charged: freshHeap, charges: h.pool.memory.charges}
	if !owners.Optimizes(iso.tenant) {
		iso.v8.Baseline()
	}
	h.pool.memory.live.Add(1)
	h.addIsolate(iso)
	return iso
}

// addIsolate adds an isolate to the thread, and removeIsolate removes it.
func (h *heaps) addIsolate(iso *isolate) {
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

// newContext makes a context with the runtime and the worker's env. The first run loads the module.
func (h *heaps) newContext(iso *isolate, w *workers.Worker) (*jsContext, error) {
	secrets, err := bindings.SecretsOf(w, h.pool.cfg.Secrets, h.pool.checks)
	if err != nil {
		return nil, err
	}
	jc := &jsContext{isolate: iso, worker: w, secrets: secrets, functions: v8x.FunctionsIn(w.Code)}
	h.counters.measureBefore(jc)
	if jc.v8, err = iso.v8.NewContext(ask.Answers(func(stack string) string {
		return h.pool.stacks.Author(w, stack)
	}, ask.Wasm{
		Admit:  func(code []byte) ([]byte, error) { return h.pool.wasm.Admit(iso.tenant, code) },
		Decode: func(hash []byte) error { return h.pool.wasm.Decode(iso.tenant, hash) },
		Tag:    func(parameters string) error { return h.pool.wasm.Tag(iso.tenant, parameters) },
		Import: w.Module,
	})); err != nil {
		return nil, err
	}
	iso.latest = jc
	iso.contexts = append(iso.contexts, jc)
	h.contexts.add(jc)
	iso.functions.Opened(jc.functions)
	h.counters.contextMade(jc)
	h.counters.notify(ContextMade, jc, "")
	h.counters.measure(iso, time.Now(), 0)
	h.grown = true
	bindings.Encode(h.call.Reset(js.OpEnv), w, secrets).Bool(iso.mode == workers.Persistent).Bool(h.pool.checks).
		String(string(cmp.Or(w.BinaryType, workers.BinaryBlob)))
	if r := jc.v8.Call(h.call.Bytes(), nil); r.Err != nil {
		h.dropContext(jc)
		return nil, fmt.Errorf("isolates: env: %w", r.Err)
	}
	return jc, nil
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
	iso.functions.Dropped(jc.functions)
	if iso.latest == jc {
		iso.latest = nil
	}
	if jc.life != nil {
		h.endBetween(jc)
	}
	if iso.lost {
		iso.dead = append(iso.dead, jc.v8)
	} else {
		jc.v8.Close()
	}
	h.freed = true
	h.counters.contextClosed(jc)
	if iso.mode != workers.Oneshot && !h.contexts.has(jc.worker) { // what oneshot makes is not used again
		h.closed = append(h.closed, jc.worker)
	}
}

// dropContexts closes those of the contexts that are idle and for which which returns true, except persistent ones.
func (h *heaps) dropContexts(contexts []*jsContext, why string, which func(*jsContext) bool) {
	for _, jc := range slices.Clone(contexts) {
		if len(jc.runs) == 0 && !jc.isolate.away && jc.isolate.mode != workers.Persistent && which(jc) {
			h.counters.discarded(jc, why)
			h.dropContext(jc)
		}
	}
}

// dropIdle closes the idle ones of a tenant's contexts, and then its isolates that have no context left.
func (h *heaps) dropIdle(tenant, why string, contexts []*jsContext) {
	h.dropContexts(contexts, why, func(*jsContext) bool { return true })
	for _, iso := range slices.Clone(h.isolates[tenant]) {
		if len(iso.contexts) == 0 && !iso.away {
			h.dropIsolate(iso)
		}
	}
}

// contextsOf returns the contexts that an owner has in the isolates.
func contextsOf(owner string, isolates []*isolate) (list []*jsContext) {
	for _, iso := range isolates {
		for _, jc := range iso.contexts {
			if jc.worker.Owner == owner {
				list = append(list, jc)
			}
		}
	}
	return list
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
		h.pool.memory.lost.Add(iso.charged)
	} else {
		iso.v8.Close()
	}
	h.pool.memory.live.Add(-1)
	h.pool.trimSoon()
	if !h.runs.hasWaiting() {
		h.pool.wakeWaiting()
	}
}

// dropAll closes all isolates, in which nothing runs.
func (h *heaps) dropAll() {
	for tenant := range h.isolates {
		for len(h.isolates[tenant]) > 0 {
			h.dropIsolate(h.isolates[tenant][0])
		}
	}
}

// warm returns an idle context of that version on the thread, with the current values of its secrets, in an isolate
// that its owner may still use. It returns nil if there is none.
func (h *heaps) warm(w *workers.Worker, mode workers.Mode) *jsContext {
	tenant := h.pool.policies.Tenant(w.Owner)
	for _, jc := range h.contexts.of(w.Owner, w.Name) {
		if jc.isolate.mode == mode && jc.isolate.tenant == tenant && jc.warm(w) {
			return jc
		}
	}
	return nil
}

// addRun and removeRun record the runs in a context.
func (h *heaps) addRun(jc *jsContext, r *run, now time.Time) {
	jc.runs = append(jc.runs, r)
	jc.used = now
	jc.isolate.busy++
	jc.isolate.used = now
	h.counters.entered(jc, jc.isolate.busy)
}

func (h *heaps) removeRun(jc *jsContext, r *run) {
	n := len(jc.runs)
	if jc.runs = slices.DeleteFunc(jc.runs, func(x *run) bool { return x == r }); len(jc.runs) == n {
		return
	}
	jc.isolate.busy--
	h.freed = true
	h.counters.left(jc, jc.isolate.busy)
}

// sweep closes the isolates that have had their one event. It is called after the reply was sent.
func (h *heaps) sweep() {
	for _, iso := range h.toClose {
		h.dropIsolate(iso)
	}
	clear(h.toClose)
	h.toClose = h.toClose[:0]
}
