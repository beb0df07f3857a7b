package isolates

import (
	"fmt"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// end closes a run and reports it. Its context is used again, unless the run failed.
func (t *thread) end(r *run, e lifecycle.End) {
	if r.over {
		return
	}
	if r.betweenEvents {
		t.persistents.invalidate(r.context, discardReason(r, &e))
		return
	}
	r.logFailure(t.pool.host, "failed", e.Failure)
	if r.body.waits() {
		r.endBody(t.pool, e)
	}
	r.startBody(t)
	r.deafen()
	r.over = true
	e.Started = e.Started || r.begun
	e.NoRetry, e.Retry, e.RetryDelay = r.noRetry, r.retry, r.delay
	e.CPU, e.Warm, e.Waited, e.Lost = r.cpu, r.warm, r.deadline != nil, r.lost
	e.Items, e.Broken = r.items, r.broken
	r.end = e
	t.reports = append(t.reports, lifecycle.Report{Attempt: r.attempt, End: &r.end})
	delete(t.running, r)
	if r.services.calling > 0 {
		t.callers--
	}
	t.forget(r)
	if r.context != nil {
		t.heaps.release(r)
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

// discardReason is why the context of a run is not used again.
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
	return discardReuses
}

// forget cancels everything that the run started. Nothing of it can reach a later event.
func (t *thread) forget(r *run) {
	t.timers.clear(r.deadline)
	for _, n := range r.timers {
		t.timers.clear(n)
	}
	for _, c := range r.calls {
		if c.gone != nil {
			c.gone()
		}
	}
	r.timers, r.calls, r.fetches.queued = nil, nil, nil
	for id := range r.piped.kept {
		r.release(t.pool, id)
	}
	if r.cancel != nil {
		r.cancel()
	}
}

// fail ends a run with a failure that its own code caused.
func (t *thread) fail(r *run, reason events.Reason, message, stack string) {
	t.end(r, lifecycle.End{Failure: events.NewFailure(reason, message, stack)})
}

// finish ends a run whose waitUntil is drained.
func (t *thread) finish(r *run) {
	t.end(r, lifecycle.End{Failure: r.failure})
}

// stop ends a run that cannot continue, unless it is over. If it has replied, the event is handled, whatever waitUntil
// does.
func (t *thread) stop(r *run, reason events.Reason, message string) {
	if r.over { // a limit that passed while the isolate was away comes after the turn that ended all its runs
		return
	}
	if r.betweenEvents {
		t.log(r, "error", fmt.Sprintf("between events: %s: %s: the context ends", reason, message), "")
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
		t.log(r, "warn", fmt.Sprintf("waitUntil was cut short: %s: %s", reason, message), "")
		t.pool.metrics.waitUntilCut.Inc()
	}
	r.failure = events.NewFailure(reason, message, "") // do not use the context again
	t.end(r, lifecycle.End{})
}

// timeout ends a run whose wall-clock limit passed while it waited.
func (t *thread) timeout(r *run) {
	t.stop(r, events.ReasonTimeout, r.wallFailure().Message)
}

// cut ends a run that the watchdog terminated, and closes its context. Other runs in it are interrupted. Those in other
// contexts of the isolate go on: one of them may wait for the result of this run.
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
func (t *thread) log(r *run, level, text, stack string) {
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
	t.pool.host.Log(line)
}
