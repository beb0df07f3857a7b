package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

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
		t.inbox.Asked.Store(true)
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
