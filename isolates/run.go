package isolates

import (
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/callqueue"
	"github.com/pinwheel-run/pinwheel/isolates/holdings"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/timers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// run is one attempt on its thread, from Next to the Report with its End. Only its thread uses it, except what says
// otherwise. What it has been doing since it began is in these fields, so that the thread's turns can end anywhere.
//
// It is in thread.running, and in the runs of its context, until over is set; then nothing of it may reach JavaScript.
// cpuLeft falls by what cpu rises by, but starts again when the module is loaded, since loading has limits of its own.
// replied comes before over, or not at all: what fails after the reply does not change it.
type run struct {
	thread  *thread
	attempt *lifecycle.Attempt
	context *jsContext // the context it runs in
	id      uint64     // of the run in JavaScript; never used twice on a thread
	start   time.Time
	begun   bool // its handler was called

	// What Go holds for it (poolHeaps.hold) counts for the tenant that its owner had when it began. Any goroutine.
	holder   holdings.Holder
	limits   workers.Limits // of its worker, within its owner's ceilings
	cpuLeft  time.Duration
	wall     time.Time           // the end of its wall-clock limit
	deadline *timers.Timer[*run] // set when it first waits for something
	cpu      time.Duration
	reported time.Duration // the part of cpu that was reported to dispatch

	replied       bool
	failure       *events.Failure // from js.CmdFail, kept until waitUntil has nothing left
	over          bool
	drained       bool        // JavaScript knows that the run is over
	cancelled     atomic.Bool // somebody cancels its event: it ends so, unless it has replied. Any goroutine sets it
	signalled     bool        // its handler was told of that
	body          *body       // body of its reply, in chunks; nil while there is none
	betweenEvents bool        // it stands for a persistent context between events, is not in running, and never ends

	timers map[float64]*timers.Timer[*run] // pending, by id; nil until the first
	calls  hostcalls.Calls                 // what its JavaScript has asked of Go
	logged int                             // bytes of output so far

	end lifecycle.End // how it ended, or what is known of that so far
}

// noTimer is the id, among a run's timers, of the one for its deadline.
const noTimer = -1

// waits reports whether anything is pending that could call into the run's JavaScript again. A response that waits for
// a reader cannot.
func (r *run) waits() bool { return len(r.timers) > 0 || r.calls.Wait() || r.body.waits() }

// canEnd reports whether the run can still end by itself. In a persistent context another event may cause that.
func (r *run) canEnd() bool {
	if l := r.context.life; l != nil {
		return r.context.loaded || r.waits() || l.betweenEvents.waits()
	}
	return r.waits()
}

// line returns a line of output for the run.
func (r *run) line(now time.Time, level, text string) events.LogLine {
	w := r.attempt.Worker
	l := events.LogLine{Time: now, Owner: w.Owner, Worker: w.Name, Version: w.Version, Level: level, Text: text}
	if e := r.attempt.Event; e != nil && len(r.attempt.Batch) < 2 {
		l.EventID, l.Attempt = e.ID, r.attempt.Number
	}
	if r.attempt.Trace != nil {
		l.SetTrace(r.attempt.Trace.Context())
	}
	return l
}

func (r *run) memoryFailure() *events.Failure {
	return events.Fail(events.ReasonMemory, "heap limit of %d MB (limits.heapMB)", r.limits.HeapMB)
}

func (r *run) codeFailure() *events.Failure {
	return events.Fail(events.ReasonMemory, "the process has no room for more machine code (%d MB), of which this isolate has %d MB",
		v8x.MaxCode>>20, r.context.isolate.v8.CodeBytes()>>20)
}

func (r *run) cpuFailure() *events.Failure {
	if r.begun {
		return events.Fail(events.ReasonCPU, "CPU time limit of %s (limits.cpuMs)", r.limits.CPU.Duration())
	}
	return events.Fail(events.ReasonCPU, "CPU time limit of %s, while the module was loaded", r.thread.pool.load.cpu)
}

func (r *run) wallFailure() *events.Failure {
	if r.begun {
		return events.Fail(events.ReasonTimeout, "wall-clock limit of %s (limits.wallMs)", r.limits.Wall.Duration())
	}
	return events.Fail(events.ReasonTimeout, "wall-clock limit of %s, while the module was loaded", r.wall.Sub(r.start))
}

// othersTookHeap reports whether a run that reached the heap limit had less than that limit for itself. Other contexts
// in its isolate, whose runs have begun since, took more than they may have at its beginning. The run is repeated, and
// in its own isolate if that happens again.
func (r *run) othersTookHeap() bool {
	return r.attempt.Event != nil && !r.betweenEvents && r.context.others() > r.context.isolate.othersLimit()
}

// queuedCall is a call into a run or a persistent context that waits: a timer that is due, or an answer that came.
type queuedCall struct {
	run   *run
	timer float64 // the JavaScript timer that is due, if do is nil
	do    func()  // makes the call
}

// queuedCalls are the waiting calls of a thread. Only the thread uses them.
type queuedCalls struct{ callqueue.Queue[queuedCall] }

func (c *queuedCalls) add(x queuedCall) { c.Add(x.run.attempt.Worker.Owner, x) }

// postpone keeps a queued call until its isolate is back. It returns false when the isolate is not away.
func (c queuedCall) postpone() bool {
	if c.run.context == nil || !c.run.context.isolate.away {
		return false
	}
	iso := c.run.context.isolate
	iso.later = append(iso.later, c)
	return true
}
