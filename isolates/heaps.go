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
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// heaps are the isolates of one thread and the contexts in them. They decide where an attempt runs, and what is closed
// to make room for it. They begin and end no attempt. Only their thread uses them, and they have no locks. Other
// goroutines may read counters. The isolates of mode shared that no thread uses are in Pool.shared.
//
// An isolate is in isolates, and its contexts are in contexts, from addIsolate to removeIsolate. A context of a
// persistent worker is in persistents as well, for as long as it takes events.
type heaps struct {
	pool        *Pool
	runs        runner
	persistents *persistents
	counters    counters // any goroutine may read it
	resting     resting
	maxIsolates int

	isolates    map[string][]*isolate // by tenant
	contexts    contextIndex          // in these isolates
	count       int                   // number of isolates
	lent        []*isolate            // shared isolates that may be given back
	spent       []*isolate            // isolates of mode oneshot that must be closed
	closed      []*workers.Worker     // whose last context was closed, not reported yet
	pendingCode pendingCode           // contexts whose code is to be kept

	freed      bool          // there may be room for attempts that wait
	grown      bool          // a heap was found larger
	collecting time.Duration // CPU time of garbage collections before the run
	call       v8x.Call
}

// runner is what heaps need of their thread, which alone begins and ends runs. Its methods may close contexts.
type runner interface {
	// stop ends a run that cannot continue.
	stop(r *run, why events.Reason, message string)
	// interrupt ends the runs in an isolate, to be repeated, and closes it.
	interrupt(iso *isolate)
	// terminateNow calls onTerminate of a persistent context in an isolate that is about to be closed.
	terminateNow(iso *isolate)
	// cancelStarted cancels everything that a run started.
	cancelStarted(r *run)
	// turn calls the entry function on behalf of a run. It does not return if the turn goes away.
	turn(r *run, call, body []byte)
	// hasWaiting reports whether attempts wait for room.
	hasWaiting() bool
}

// prepare sets up the heaps of t, which has no isolates yet.
func (h *heaps) prepare(t *thread) {
	h.pool, h.runs, h.persistents = t.pool, t, &t.persistents
	h.pendingCode.cache = t.pool.code
	h.counters.changed = t.pool.cfg.OnContext
	h.resting = resting{heaps: h, rests: &t.pool.rests, nudge: t.inbox.nudge}
	h.maxIsolates = t.pool.cfg.maxIsolatesOf(t.index)
	h.isolates, h.contexts = map[string][]*isolate{}, contextIndex{}
}

// acquire finds or makes the context for w, according to its mode. It returns nil if there is no room now.
func (h *heaps) acquire(w *workers.Worker, mode workers.Mode) (*jsContext, error) {
	// First, so that a worker that cannot run takes no room from others.
	if _, err := bindings.SecretsOf(w, h.pool.cfg.Secrets, h.pool.checks); err != nil {
		return nil, err
	}
	switch mode {
	case workers.Oneshot:
		return h.newInOwnIsolate(w, mode)
	case workers.Persistent:
		return h.persistents.acquire(w)
	case workers.Shared:
		h.borrow(w)
	}
	return h.reuse(w, mode)
}

// addRun and removeRun record the runs in a context.
func (h *heaps) addRun(jc *jsContext, r *run, now time.Time) {
	jc.runs = append(jc.runs, r)
	jc.used = now
	jc.isolate.busy++
	jc.isolate.used = now
	h.counters.entered(jc, jc.isolate.busy)
}

// release takes a run that has ended out of its context. The context is used again, unless the run failed.
func (h *heaps) release(r *run) {
	jc, iso, e := r.context, r.context.isolate, &r.end
	h.removeRun(jc, r)
	iso.used, iso.rest = time.Now(), restNone
	h.resting.await()
	clean := e.Failure == nil && !e.Interrupted && r.failure == nil && !jc.outdated() && !h.mustRecreate(jc)
	if clean {
		h.pendingCode.noteRun(jc)
	}
	switch {
	case iso.mode == workers.Persistent:
		h.persistents.runEnded(jc, r)
		h.measure(iso, iso.used, heapEvery)
	case iso.mode == workers.Oneshot:
		h.spent = append(h.spent, iso)
	case !clean:
		h.counters.discarded(jc, discardReason(r, e))
		h.dropContext(jc)
	default:
		h.measure(iso, iso.used, heapEvery)
	}
	if iso.mode == workers.Shared && iso.busy == 0 && !iso.closed {
		h.lent = append(h.lent, iso)
	}
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

// mustRecreate reports whether to recreate a context after ContextMaxReuses events. Recreating loses what V8 has
// learned about its code, so a context whose isolate is small stays.
func (h *heaps) mustRecreate(jc *jsContext) bool {
	cfg := &h.pool.cfg
	if jc.life != nil || jc.uses == 0 || jc.uses%cfg.ContextMaxReuses != 0 {
		return false
	}
	h.measure(jc.isolate, time.Now(), 0)
	return jc.isolate.heap > int64(cfg.ContextKeepMB)<<20
}

func (h *heaps) newIsolate(w *workers.Worker, mode workers.Mode) *isolate {
	heapMB := h.pool.limits(w).HeapMB
	bytes := uint64(heapMB) << 20
	iso := &isolate{v8: h.pool.prewarmed.Isolate(v8x.Limits{Heap: bytes, Buffers: bytes}),
		tenant: h.pool.policies.Tenant(
			w.Owner), mode: mode, heapMB: heapMB, heap: freshHeap, charged: freshHeap, charges: h.pool.memory.charges}
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
	h.measureBefore(jc)
	if jc.v8, err = iso.v8.NewContext(ask.Answers(func(stack string) string {
		return h.pool.stacks.Author(w, stack)
	})); err != nil {
		return nil, err
	}
	iso.latest = jc
	iso.contexts = append(iso.contexts, jc)
	h.contexts.add(jc)
	iso.functions.opened(jc.functions)
	h.counters.contextMade(jc)
	h.counters.notify(ContextMade, jc, "")
	h.measure(iso, time.Now(), 0)
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
