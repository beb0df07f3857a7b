package isolates

import (
	"maps"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// overstay frees the thread of a turn that overstays. It returns true when the thread was replaced. Watchdog only.
func overstay(p *Pool, t *thread) (replaced bool) {
	w := t.watch
	w.mu.Lock()
	turn, fixed := w.turn, w.fixed
	w.mu.Unlock()
	if !fixed {
		p.sendAway(t, w, turn)
		return false
	}
	// The thread is in the middle of something else, for which the turn has to end. Whether it is lost is decided
	// later.
	cause := w.giveUp(&t.lost)
	if cause == nil {
		return false
	}
	holdOwner(p, w, cause.run)
	p.losses.ranAway.Add(1)
	p.losses.runaways.add(w, cause)
	p.replace(t, cause)
	return true
}

// holdOwner notifies the source, once for a turn, that a turn of r overstays.
func holdOwner(p *Pool, w *watch, r *run) {
	if r == nil || w.ownerHeld || guard.CrashSuspects.Off() {
		return
	}
	w.ownerHeld = true
	p.source.Overstays(r.attempt.Worker, true)
}

// releaseOwner notifies the source that a turn of r that overstayed is over, or that its thread is lost.
func releaseOwner(p *Pool, w *watch, r *run) {
	if w.ownerHeld {
		w.ownerHeld = false
		p.source.Overstays(r.attempt.Worker, false)
	}
}

// decideRunaways is called each round about threads that were replaced while their turns overstayed: they are back, or
// they are lost. Watchdog only.
func decideRunaways(p *Pool) {
	for _, x := range p.losses.runaways.undecided(p.losses.lostAfter - overstaysAfter) {
		if !x.came {
			p.reportLost(x.cause)
		}
		releaseOwner(p, x.watch, x.cause.run)
	}
}

// look is one round of the watchdog.
func (p *Pool) look(now time.Time) {
	parked := v8x.Parked()
	if p.prewarmed.Parked(parked) {
		p.losses.parked.Add(1)
	}
	closing := p.closing()
	for i := range p.threads {
		t := p.threads[i].Load()
		if slices.Contains(parked, t.watch.pinned()) && t.lost.CompareAndSwap(false, true) {
			cause := t.watch.parked()
			p.losses.parked.Add(1)
			p.reportLost(cause)
			p.replace(t, cause)
			continue
		}
		if closing {
			t.watch.kill(stopped)
		}
		t.watch.check(now)
		switch t.watch.stay(now, p.losses.lostAfter) {
		case stayForever:
			if replaceLost(p, t) {
				continue
			}
		case stayLong:
			if overstay(p, t) {
				continue
			}
		}
		p.yield(t, now)
	}
	p.away.list = slices.DeleteFunc(p.away.list, func(a awayTurn) bool { return p.checkAway(a, now, parked) })
	decideRunaways(p)
	p.losses.runaways.throttle(now)
}

// replaceLost replaces a thread whose turn stays in V8 forever. It returns false when the turn has just ended. Watchdog
// only.
func replaceLost(p *Pool, t *thread) bool {
	cause := t.watch.giveUp(&t.lost)
	if cause == nil {
		return false
	}
	p.losses.ranAway.Add(1)
	p.losses.runaways.add(t.watch, nil)
	if p.losses.onRunaway != nil {
		p.losses.onRunaway(t)
	}
	p.reportLost(cause) // first: the client that gets the reply may send the next event at once
	p.replace(t, cause)
	return true
}

// replace gives up a parked or runaway thread, and puts a new one in its place. The goroutine of t is in V8, so the
// watchdog may read the state of t. When that goroutine comes back, it waits until replace is done, and ends (abandon).
func (p *Pool) replace(t *thread, cause *lossCause) {
	defer close(t.replaced)
	reports := t.out.reports
	n := newThread(p, t.index)
	n.heaps.counters.inherit(&t.heaps.counters)
	p.memory.live.Add(-int64(t.heaps.count))
	p.memory.lost.Add(t.heaps.counters.charged.Load())
	for r := range maps.Keys(t.running) {
		if r.over {
			continue
		}
		e := lifecycle.End{Interrupted: true, Started: r.begun}
		if r == cause.run && cause.why.Reason != stopped {
			n.heaps.counters.kills.inc(string(cause.why.Reason))
			e = lifecycle.End{Started: true, Failure: cause.why, Lost: true}
			if r.replied { // the reply stands
				e.Failure, r.failure = nil, cause.why
				if !r.body.waits() {
					p.done.waitUntilCut.Add(1)
				}
			}
			r.logFailure(p.host, "failed", e.Failure)
		}
		if r.body.waits() {
			r.endBody(p, e)
			e.Broken = r.end.Broken
		}
		r.calls.Cancel()
		reports = append(reports, lifecycle.Report{Attempt: r.attempt, End: &e})
	}
	p.forgetThread(t)
	for _, jc := range t.persistents.of {
		jc.life.betweenEvents.calls.Cancel()
	}
	for _, a := range append(t.waiting, t.inbox.Refuse()...) {
		reports = append(reports, lifecycle.Report{Attempt: a, End: &lifecycle.End{Interrupted: true}})
	}
	p.put(n)
	p.source.Report(t.index, reports)
	p.start(n)
	n.inbox.Signal()
	p.end.threads.Done() // t's
}

// forgetThread uncounts what the runs of a lost thread hold.
func (p *Pool) forgetThread(t *thread) {
	for _, list := range t.heaps.isolates {
		for _, iso := range list {
			p.forgetIsolate(iso)
		}
	}
	t.queuedCalls.All(func(c queuedCall) { p.forgetCalls(c) })
	p.forgetCalls(t.inbox.Lost()...)
}

// reportLost reports to the Source which worker's code cost a thread.
func (p *Pool) reportLost(cause *lossCause) {
	r := cause.run
	switch {
	case r == nil || cause.why.Reason == stopped:
	case r.betweenEvents:
		p.source.Lost(r.attempt.Worker, cause.turn)
	case r.attempt.Event != nil: // a Checker has no owner yet
		p.source.Lost(r.attempt.Worker, r.start)
	}
}
