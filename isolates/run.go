package isolates

import (
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/timers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// run is one attempt on its thread, from Next to the Report with its End.
type run struct {
	thread  *thread
	attempt *lifecycle.Attempt
	context *jsContext // the context it runs in
	id      uint64     // of the run in JavaScript; never used twice on a thread
	start   time.Time
	begun   bool // its handler was called

	tenant   string         // of its owner when it began
	limits   workers.Limits // of its worker, within its owner's ceilings
	cpuLeft  time.Duration
	wall     time.Time           // the end of its wall-clock limit
	deadline *timers.Timer[*run] // set when it first waits for something
	cpu      time.Duration
	reported time.Duration // the part of cpu that was reported to dispatch

	replied       bool
	failure       *events.Failure // from js.CmdFail, kept until waitUntil has nothing left
	over          bool
	drained       bool  // JavaScript knows that the run is over
	body          *body // body of its reply, in chunks; nil while there is none
	betweenEvents bool  // it stands for what a persistent context does between events

	timers map[float64]*timers.Timer[*run] // pending, by id; nil until the first
	calls  hostcalls.Calls                 // what its JavaScript has asked of Go
	logged int                             // bytes of output so far

	held      atomic.Int64 // bytes that Go holds for it (Pool.hold)
	forgotten bool         // nothing more is counted for it; guarded by holdings.mu

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

// caller is a run as the hostcalls.Run of its calls.
type caller struct{ *run }

// ID implements hostcalls.Run.
func (r caller) ID() uint64 { return r.id }

// Attempt implements hostcalls.Run.
func (r caller) Attempt() *lifecycle.Attempt { return r.attempt }

// Limits implements hostcalls.Run.
func (r caller) Limits() *workers.Limits { return &r.limits }

// Deadline implements hostcalls.Run.
func (r caller) Deadline() time.Time { return r.wall }

// Hold implements hostcalls.Run.
func (r caller) Hold(n int) error { return r.thread.pool.hold(r.run, n) }

// Drop implements hostcalls.Run.
func (r caller) Drop(n int) { r.thread.pool.drop(r.run, n) }

// ChargeOwner implements hostcalls.Run.
func (r caller) ChargeOwner(cpu time.Duration) {
	r.thread.pool.source.Charge(r.attempt.Worker.Owner, cpu)
}

// Later gives the thread a queued call of the run. Queued calls of other owners may come first. Any goroutine may call
// it.
func (r *run) Later(f func()) { r.thread.put(queuedCall{run: r, do: f}) }

// Pause implements hostcalls.Run.
func (r caller) Pause() time.Duration {
	p := r.thread.pool
	return p.budgets.Pause(r.attempt.Worker.Owner, time.Now(), p.cfg.Threads)
}

// Follow implements hostcalls.Run.
func (r caller) Follow(f func()) { r.thread.queuedCalls.add(queuedCall{run: r.run, do: f}) }

// Call implements hostcalls.Run.
func (r caller) Call() *v8x.Call { return &r.thread.call }

// Turn implements hostcalls.Run.
func (r caller) Turn(call, body []byte) { r.thread.turn(r.run, call, body) }

// Stop implements hostcalls.Run.
func (r caller) Stop(reason events.Reason, message string) { r.thread.stop(r.run, reason, message) }

// Charge implements hostcalls.Run.
func (r caller) Charge(cpu time.Duration) { r.charge(cpu) }

// CPULeft implements hostcalls.Run.
func (r caller) CPULeft() time.Duration { return r.cpuLeft }

// Closed implements hostcalls.Run.
func (r caller) Closed() bool { return r.context.closed }

// CanEnd implements hostcalls.Run.
func (r caller) CanEnd() bool { return r.canEnd() }

// BetweenEvents implements hostcalls.Run.
func (r caller) BetweenEvents() bool { return r.betweenEvents }

// Log implements hostcalls.Run.
func (r caller) Log(level, text string) { r.log(level, text, "") }

// Calling implements hostcalls.Run. A run that waits for a service takes no slot of its thread.
func (r caller) Calling(is, edge bool) {
	t := r.thread
	t.pool.source.Calling(r.attempt, is)
	if is {
		t.inbox.asked.Store(true)
	}
	switch {
	case !edge || r.betweenEvents: // it has no slot
	case is:
		t.callers++
	default:
		t.callers--
	}
}

// SocketGone implements hostcalls.Run. The context may be idle now.
func (r caller) SocketGone() { r.thread.persistents.markChanged(r.context) }
