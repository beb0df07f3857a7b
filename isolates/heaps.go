package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// heaps are the isolates of one thread and the contexts in them. They decide where an attempt runs, and what is closed
// to make room for it. They begin and end no attempt. Only their thread uses them, and they have no locks. Other
// goroutines may read counters. The isolates of mode shared that no thread uses are in Pool.shared.
//
// An isolate is in isolates, and its contexts are in contexts, from take to removeIsolate. A context of a persistent
// worker is in persistents as well, for as long as it takes events.
type heaps struct {
	pool        *Pool
	runs        runner
	persistents *persistents
	counters    counters // any goroutine may read it
	resting     resting
	maxIsolates int

	isolates map[string][]*isolate // by tenant
	contexts contextIndex          // in these isolates
	count    int                   // number of isolates
	lent     []*isolate            // shared isolates that may be given back
	spent    []*isolate            // isolates of mode oneshot that must be closed
	closed   []*events.Worker      // of which there is no context any more, not reported yet

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
	// forget cancels everything that a run started.
	forget(r *run)
	// turn calls the entry function on behalf of a run. It does not return if the turn goes away.
	turn(r *run, call, body []byte)
	// waits reports whether attempts wait for room.
	waits() bool
}

// prepare sets up the heaps of t, which has no isolates yet.
func (h *heaps) prepare(t *thread) {
	h.pool, h.runs, h.persistents = t.pool, t, &t.persistents
	h.counters.changed = t.pool.cfg.OnContext
	h.resting = resting{heaps: h, rests: &t.pool.rests, nudge: t.nudge}
	h.maxIsolates = t.pool.cfg.maxIsolatesOf(t.index)
	h.isolates, h.contexts = map[string][]*isolate{}, contextIndex{}
}

// dropAll closes all isolates, in which nothing runs.
func (h *heaps) dropAll() {
	for tenant := range h.isolates {
		for len(h.isolates[tenant]) > 0 {
			h.dropIsolate(h.isolates[tenant][0])
		}
	}
}
