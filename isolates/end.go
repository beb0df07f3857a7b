package isolates

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/isolates/owners"
)

// end closes a run and reports it. Its context is used again, unless the run failed.
func (t *thread) end(r *run, e lifecycle.End) {
	if r.over {
		return
	}
	if r.betweenEvents {
		t.persistents.invalidate(r.context, cmp.Or(discardReason(r, &e), discardReuses))
		return
	}
	if r.cancelled.Load() && !r.replied && !e.Interrupted {
		e.Failure = events.Cancelled()
	} else {
		r.logFailure(t.pool.host, "failed", e.Failure)
	}
	if r.body.waits() {
		r.endBody(t.pool, e)
	}
	r.startBody(t)
	r.stopListening()
	r.over = true
	r.end.Failure, r.end.Interrupted, r.end.Started = e.Failure, e.Interrupted, e.Started || r.begun
	r.end.CPU, r.end.Waited = r.cpu, r.deadline != nil
	t.out.reports = append(t.out.reports, lifecycle.Report{Attempt: r.attempt, End: &r.end})
	delete(t.running, r)
	if r.calls.WaitsForService() {
		t.callers--
	}
	t.cancelStarted(r)
	if r.context != nil {
		t.placer.release(r, discardReason(r, &r.end))
	}
}

// logFailure writes what failed, and why, to the output of the worker. The run's limit does not hold for these lines:
// there are two at most.
func (r *run) logFailure(host Host, what string, f *events.Failure) {
	if f == nil || r.attempt.Event == nil { // a Checker reports failures itself
		return
	}
	line := r.line(time.Now(), "error", what+": "+f.Error())
	line.Stack = f.Stack
	host.Log(line)
}

// discardReason is why the context of a run is not used again, or "" if the run gives no reason.
func discardReason(r *run, e *lifecycle.End) string {
	switch {
	case e.Failure != nil:
		return string(e.Failure.Reason)
	case r.failure != nil:
		return string(r.failure.Reason)
	case e.Interrupted:
		return discardInterrupted
	case r.context.secrets.Replaced():
		return discardSecrets
	case r.context.reset:
		return discardReset
	}
	return ""
}

// cancelStarted cancels everything that the run started. Nothing of it can reach a later event.
func (t *thread) cancelStarted(r *run) {
	t.timers.Clear(r.deadline)
	for _, n := range r.timers {
		t.timers.Clear(n)
	}
	r.timers = nil
	r.calls.End()
}

// fail ends a run with a failure that its own code caused.
func (r *run) fail(reason events.Reason, message, stack string) {
	r.thread.end(r, lifecycle.End{Failure: events.NewFailure(reason, message, stack)})
}

// finish ends a run whose waitUntil is drained.
func (r *run) finish() {
	r.thread.end(r, lifecycle.End{Failure: r.failure})
}

// stop ends a run that cannot continue, unless it is over. If it has replied, the event is handled, whatever waitUntil
// does.
func (t *thread) stop(r *run, reason events.Reason, message string) {
	if r.over { // a limit that passed while the isolate was away comes after the turn that ended all its runs
		return
	}
	if r.betweenEvents {
		r.log("error", fmt.Sprintf("between events: %s: %s: the context ends", reason, message), "")
		t.persistents.invalidate(r.context, string(reason))
		return
	}
	if !r.replied {
		if r.failure == nil {
			r.failure = events.NewFailure(reason, message, "")
		}
		t.end(r, lifecycle.End{Failure: r.failure})
		return
	}
	if !r.body.waits() || r.body.left { // otherwise its body breaks off, and end says so
		r.log("warn", fmt.Sprintf("waitUntil was cut short: %s: %s", reason, message), "")
		t.pool.done.waitUntilCut.Add(1)
	}
	r.failure = events.NewFailure(reason, message, "") // do not use the context again
	t.end(r, lifecycle.End{})
}

// timeout ends a run whose wall-clock limit passed while it waited.
func (r *run) timeout() {
	r.thread.stop(r, events.ReasonTimeout, r.wallFailure().Message)
}

// cut ends a run that the watchdog terminated, and closes its context. Other runs in it are interrupted. Those in other
// contexts of the isolate continue: one of them may wait for the result of this run.
func cut(t *thread, r *run, why *events.Failure) {
	jc, iso := r.context, r.context.isolate
	t.heaps.counters.kills.inc(string(why.Reason))
	t.stop(r, why.Reason, why.Message)
	for _, other := range slices.Clone(jc.runs) {
		t.end(other, lifecycle.End{Interrupted: true})
	}
	if !jc.closed {
		t.heaps.dropContext(jc)
	}
	if len(iso.contexts) == 0 {
		t.heaps.dropIsolate(iso)
	}
}

// kill ends a run that a limit of memory stopped in V8, and closes its isolate. Other runs in the isolate are
// interrupted: they run again.
func (t *thread) kill(r *run, why *events.Failure) {
	iso := r.context.isolate
	t.heaps.counters.kills.inc(string(why.Reason))
	t.stop(r, why.Reason, why.Message)
	t.interrupt(iso)
}

// interrupt closes an isolate and interrupts its runs.
func (t *thread) interrupt(iso *isolate) {
	for _, jc := range slices.Clone(iso.contexts) {
		for _, r := range slices.Clone(jc.runs) {
			t.end(r, lifecycle.End{Interrupted: true})
		}
	}
	t.heaps.dropIsolate(iso)
}

// log passes a line of output to the host, within the run's limit.
func (r *run) log(level, text, stack string) {
	limit := r.limits.LogBytes
	if r.logged > limit {
		return
	}
	r.logged += len(text) + len(stack)
	line := r.line(time.Now(), level, text)
	line.Stack = stack
	if r.logged > limit {
		line.Level, line.Text, line.Stack = "warn", fmt.Sprintf("output limit of %d bytes: what follows is dropped", limit), ""
	}
	r.thread.pool.host.Log(line)
}

// author maps a stack for a run. The CPU time is charged to the run.
func (r *run) author(stack string) string {
	if stack == "" {
		return ""
	}
	began := perowner.ThreadTime()
	stack = r.thread.pool.stacks.Author(r.attempt.Worker, stack)
	r.thread.aside += perowner.ThreadTime() - began
	return stack
}

// logStack returns the stack for a line of a run's output, or "" if the output has reached its limit.
func (r *run) logStack(stack string) string {
	if r.logged > r.limits.LogBytes {
		return ""
	}
	return r.author(stack)
}

// chargeStep is the unit in which CPU time is reported to dispatch before the end: of a run, or of a persistent
// context between events.
const chargeStep = time.Millisecond

// between accounts for CPU time that a persistent context took between events. Its owner is charged. If the owner's
// budget is used up, the context ends.
func (t *thread) between(r *run, cpu time.Duration) {
	if cpu <= 0 || guard.TimerBudget.Off() {
		return
	}
	owner, l := r.attempt.Worker.Owner, r.context.life
	if l.owed += cpu; l.owed >= chargeStep {
		t.pool.source.Charge(owner, l.owed)
		l.owed = 0
	}
	if !t.pool.budgets.Take(owner, cpu, time.Now(), t.pool.cfg.Threads) && l.phase != invalid {
		t.stop(r, events.ReasonCPU, fmt.Sprintf(
			"the persistent contexts of %s took more than a %dth of all threads and %s",
			owner, owners.BetweenShare, owners.BetweenAtOnce))
	}
}

// account reports the CPU time of a run so far to dispatch, in steps of chargeStep.
func (r *run) account() {
	if r.over || r.cpu-r.reported < chargeStep {
		return
	}
	r.reported = r.cpu
	r.thread.pool.source.Running(r.thread.index, r.attempt, r.cpu)
}

// terminateNow calls onTerminate for an isolate that must go at once. The hook has one turn.
func (t *thread) terminateNow(iso *isolate) {
	if len(iso.contexts) == 0 || iso.contexts[0].life == nil || iso.contexts[0].life.phase > retiring {
		return
	}
	jc := iso.contexts[0]
	jc.life.phase = leaving
	t.persistents.terminatesNow = true
	t.persistents.startHook(jc, hookTerminate)
	t.persistents.terminatesNow = false
	t.watch.attribute(t.beginning)
}
