package isolates

import (
	"fmt"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// end closes a run and reports it. Its context goes back to be used again, unless it failed.
func (t *thread) end(r *run, e events.End) {
	if r.over {
		return
	}
	if r.ground {
		t.doom(r.guest, discardReason(r, e))
		return
	}
	t.pool.tellFailure(r, e.Failure)
	r.body.endBody(r, e)
	t.startBody(r)
	r.deafen()
	r.over = true
	e.Started = e.Started || r.begun
	e.NoRetry, e.Retry, e.RetryDelay = r.noRetry, r.retry, r.delay
	e.CPU, e.Warm, e.Waited, e.Lost = r.cpu, r.warm, r.deadline != nil, r.lost
	r.end = e
	t.reports = append(t.reports, events.Report{Attempt: r.attempt, End: &r.end})
	delete(t.running, r)
	t.forget(r)
	g := r.guest
	if g == nil {
		return
	}
	t.delist(g, r)
	iso := g.isolate
	iso.used = time.Now()
	clean := e.Failure == nil && !e.Interrupted && r.failure == nil && !t.worn(g)
	if clean {
		t.used(g)
	}
	switch {
	case iso.mode == events.Persistent:
		t.leftPersistent(g, r)
		t.look(iso, g, iso.used, heapEvery)
	case iso.mode == events.Oneshot:
		t.spent = append(t.spent, iso)
	case !clean:
		t.tally.discards.inc(discardReason(r, e))
		t.dropGuest(g)
	default:
		t.look(iso, g, iso.used, heapEvery)
	}
	if iso.mode == events.Shared && iso.busy == 0 && !iso.closed {
		t.lent = append(t.lent, iso)
	}
}

// tellFailure writes why a run failed to its worker's output, where its author looks.
func (p *Pool) tellFailure(r *run, f *events.Failure) {
	if f == nil || r.attempt.Event == nil { // a Checker tells by itself
		return
	}
	line := r.line(time.Now(), "error", "failed: "+f.Error())
	line.Stack = f.Stack
	p.host.Log(line)
}

// worn reports whether a context is to be made anew after ContextMaxReuses events. What V8 has learnt of its code goes with it,
// so one whose isolate is small stays.
func (t *thread) worn(g *guest) bool {
	cfg := &t.pool.cfg
	if g.life != nil || g.uses == 0 || g.uses%cfg.ContextMaxReuses != 0 {
		return false
	}
	t.look(g.isolate, g, time.Now(), 0)
	return g.isolate.heap > int64(cfg.ContextKeepMB)<<20
}

// discardReason is why the context of a run is not used again.
func discardReason(r *run, e events.End) string {
	switch {
	case e.Failure != nil:
		return string(e.Failure.Reason)
	case r.failure != nil:
		return string(r.failure.Reason)
	case e.Interrupted:
		return discardInterrupted
	}
	return discardReuses
}

// forget cancels everything the run started: nothing of it can reach a later event.
func (t *thread) forget(r *run) {
	t.alarms.clear(r.deadline)
	for _, n := range r.timers {
		t.alarms.clear(n)
	}
	r.timers, r.calls, r.queued = nil, nil, nil
	if r.cancel != nil {
		r.cancel()
	}
}

// fail ends a run with a failure that its own code caused.
func (t *thread) fail(r *run, reason events.Reason, message, stack string) {
	t.end(r, events.End{Failure: events.NewFailure(reason, message, stack)})
}

// finish ends a run whose waitUntil is drained.
func (t *thread) finish(r *run) {
	t.end(r, events.End{Failure: r.failure})
}

// stop ends a run that cannot go on. Once it has replied the event is handled, whatever waitUntil does.
func (t *thread) stop(r *run, reason events.Reason, message string) {
	if r.ground {
		t.log(r, "error", fmt.Sprintf("between events: %s: %s: the context ends", reason, message), "")
		t.doom(r.guest, string(reason))
		return
	}
	if !r.replied {
		if r.failure == nil {
			r.failure = events.NewFailure(reason, message, "")
		}
		t.end(r, events.End{Failure: r.failure})
		return
	}
	t.log(r, "warn", fmt.Sprintf("waitUntil was cut short: %s: %s", reason, message), "")
	t.pool.metrics.waitUntilCut.Inc()
	r.failure = events.NewFailure(reason, message, "") // the context is not to be used again
	t.end(r, events.End{})
}

// timeout ends a run whose wall-clock limit passed while it waited.
func (t *thread) timeout(r *run) {
	t.stop(r, events.ReasonTimeout, r.wallFailure().Message)
}

// kill ends a run that the watchdog or the heap limit stopped in V8, and its isolate with it. What else
// ran in the isolate is interrupted: it runs again.
func (t *thread) kill(r *run, why *events.Failure) {
	iso := r.guest.isolate
	t.tally.kills.inc(string(why.Reason))
	if !r.over {
		t.stop(r, why.Reason, why.Message)
	}
	t.interrupt(iso)
}

// interrupt closes an isolate. What runs in it is interrupted.
func (t *thread) interrupt(iso *isolate) {
	for _, g := range slices.Clone(iso.guests) {
		for _, r := range slices.Clone(g.runs) {
			t.end(r, events.End{Interrupted: true})
		}
	}
	t.dropIsolate(iso)
}

// log passes on a line of output, within the run's limit.
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
