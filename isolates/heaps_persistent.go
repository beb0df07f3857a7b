package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/affinity"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/timers"
)

// Bounds of what a persistent context may do between events.
const (
	// hookCPU bounds one call of onIdle or onTerminate, and each timer or answer between events, unless the worker's
	// limit is less.
	hookCPU  = time.Second
	hookWall = 2 * time.Second
	// terminateNowCPU bounds onTerminate when the context must go at once because others wait for its place.
	terminateNowCPU = 20 * time.Millisecond
	// betweenPeriod is a period between events. In each period a persistent context may make as many subrequests and
	// sends, and write as much output, as one event.
	betweenPeriod = time.Second
)

// Bits of js.CmdHandlers and arguments of js.OpHook.
const (
	hookIdle      = 8
	hookTerminate = 16
)

// persistents are the persistent contexts of one thread. They decide when a context ends, and call its hooks. Only the
// thread uses them.
//
// A context is in of while it takes events. For as long, affinity assigns it to its thread: all its events come here. A
// context that left of may still have runs, until checkChanged closes it.
type persistents struct {
	heaps       *heaps
	runs        hookRunner
	affinity    *affinity.Threads[*persistents]
	inbox       *threadInbox // of the thread
	timers      *timers.List[*run]
	queuedCalls *queuedCalls

	of            map[affinity.Release]*jsContext // contexts that take events
	changed       []*jsContext                    // contexts that checkChanged must check
	terminatesNow bool                            // onTerminate runs for an isolate that must go at once
}

// hookRunner is what persistent contexts need of their thread, apart from what heaps need.
type hookRunner interface {
	// newRun makes the run of an attempt.
	newRun(a *lifecycle.Attempt, now time.Time) *run
	// turn calls the entry function on behalf of a run. It does not return if the turn goes away.
	turn(r *run, call, body []byte)
	// cancelStarted cancels everything that a run started.
	cancelStarted(r *run)
}

// acquire returns the context of w. It makes one if the thread has none.
func (p *persistents) acquire(w *workers.Worker) (*jsContext, error) {
	h := affinity.Of(w)
	if jc := p.of[h]; jc != nil {
		if why := p.outdated(jc); why != "" {
			// The worker stays assigned to this thread. Otherwise another one could make a context too.
			jc.life.phase, jc.life.why = retiring, why
			delete(p.of, h)
			p.markChanged(jc)
		}
	}
	if jc := p.of[h]; jc != nil {
		if !jc.loaded || jc.isolate.away {
			return nil, nil // the first event still loads it, or it is in a long turn
		}
		p.heaps.counters.warmHit(jc)
		p.timers.Clear(jc.life.idle)
		jc.life.idle = nil
		return jc, nil
	}
	jc, err := p.heaps.newInOwnIsolate(w, workers.Persistent)
	if jc == nil {
		return nil, err
	}
	jc.life = &life{of: h, betweenEvents: p.runBetween(w, jc)}
	p.of[h] = jc
	if ttl := w.Lifetime.TTL.Duration(); ttl > 0 {
		jc.life.ttl = p.timers.Call(time.Now().Add(ttl), func() { p.retire(jc, discardTTL) })
	}
	p.outdateOthers(w, h)
	return jc, nil
}

// outdated is why a context gets no further event, or "". What ends it otherwise may come later than the next event.
func (p *persistents) outdated(jc *jsContext) string {
	switch {
	case jc.secrets.Replaced():
		return discardSecrets
	case jc.isolate.tenant != p.heaps.pool.policies.Tenant(jc.worker.Owner):
		return discardOther
	}
	return ""
}

// runBetween makes the run that stands for what a persistent context does between events. It never ends by itself: each
// of its turns has a limit of CPU time (prepareTurn).
func (p *persistents) runBetween(w *workers.Worker, jc *jsContext) *run {
	const forever = 100 * 365 * 24 * time.Hour
	r := p.runs.newRun(&lifecycle.Attempt{Worker: w}, time.Now())
	r.context, r.begun, r.betweenEvents = jc, true, true
	r.wall, r.cpuLeft = r.start.Add(forever), 0
	return r
}

// handOver gives an attempt of a persistent worker to the thread that has its context. It returns false when that is
// this thread.
func (p *persistents) handOver(a *lifecycle.Attempt) bool {
	release := affinity.Of(a.Worker)
	for {
		assigned := p.affinity.Assign(release, p)
		if assigned == p {
			return false
		}
		if assigned.inbox.Forward(a) {
			return true
		}
		p.affinity.Reassign(release, assigned, p) // the other thread is lost, or the pool closes
	}
}

// outdateOthers closes contexts of other versions of the worker after they have had no event for OldVersionIdle.
func (p *persistents) outdateOthers(w *workers.Worker, latest affinity.Release) {
	eachPersistent(p.affinity, w.Owner, w.Name, func(p *persistents, jc *jsContext) {
		if jc.life.of == latest || jc.worker.Lifetime.Idle != 0 || len(jc.runs) > 0 || jc.life.idle != nil {
			return
		}
		p.goIdle(jc, p.heaps.pool.cfg.OldVersionIdle)
	})
}

// eachPersistent calls f, on their threads, for the persistent contexts of a worker, or of all the owner's workers if
// name is "". Any goroutine may call it; it does not wait for the threads.
func eachPersistent(in *affinity.Threads[*persistents], owner, name string, f func(*persistents, *jsContext)) {
	in.Each(owner, name, func(h affinity.Release, p *persistents) {
		p.inbox.Put(queuedCall{do: func() {
			if jc := p.of[h]; jc != nil && jc.loaded {
				f(p, jc)
			}
		}})
	})
}

// callsBetween returns the calls of what a context does between events, or nil if it is not persistent.
func (p *persistents) callsBetween(jc *jsContext) *hostcalls.Calls {
	if jc.life == nil {
		return nil
	}
	return &jc.life.betweenEvents.calls
}

// retire stops a context from taking further events. The next event makes another context.
func (p *persistents) retire(jc *jsContext, why string) {
	l := jc.life
	if l.phase != alive {
		return
	}
	l.phase, l.why = retiring, why
	p.unregister(jc)
	p.markChanged(jc)
}

// invalidate has a context closed before it is entered again. Its runs are interrupted.
func (p *persistents) invalidate(jc *jsContext, why string) {
	if jc.life.phase == invalid {
		return
	}
	jc.life.phase, jc.life.why = invalid, why
	p.unregister(jc)
	p.markChanged(jc)
}

// unregister takes a context out of those that take events. The worker's next event makes another one, on any thread.
func (p *persistents) unregister(jc *jsContext) {
	if p.of[jc.life.of] == jc {
		delete(p.of, jc.life.of)
		p.affinity.Unassign(jc.life.of, p)
	}
	p.heaps.freed = true
}

// markChanged has checkChanged check a context, outside all turns.
func (p *persistents) markChanged(jc *jsContext) { p.changed = append(p.changed, jc) }

// checkChanged carries on with the contexts in which something changed: it ends those that must end, and starts the
// idle time of others. It runs outside all turns because it may close an isolate.
func (p *persistents) checkChanged() {
	for len(p.changed) > 0 {
		list := p.changed
		p.changed = nil
		for _, jc := range list {
			if !jc.closed {
				p.check(jc)
			}
		}
	}
}

func (p *persistents) check(jc *jsContext) {
	l := jc.life
	switch {
	case jc.isolate.away: // checked again when it is back
	case l.phase == invalid:
		p.discard(jc)
	case len(jc.runs) > 0 || l.hook != 0:
	case l.phase == retiring:
		if l.phase = leaving; jc.handlers&hookTerminate == 0 || !jc.loaded {
			p.discard(jc)
			return
		}
		l.hook = hookTerminate // from now on
		p.queuedCalls.add(queuedCall{run: l.betweenEvents, do: func() {
			if !jc.closed && l.phase == leaving {
				p.startHook(jc, hookTerminate)
			}
		}})
	case l.phase == leaving:
		p.discard(jc)
	case l.betweenEvents.calls.Accepted() > 0: // it is not idle
	case l.idle == nil:
		if idle := jc.worker.Lifetime.Idle.Duration(); idle > 0 {
			p.goIdle(jc, idle)
		}
	}
}

// goIdle ends a context after it has had no event for the given time.
func (p *persistents) goIdle(jc *jsContext, after time.Duration) {
	jc.life.idle = p.timers.Call(time.Now().Add(after), func() {
		p.queuedCalls.add(queuedCall{run: jc.life.betweenEvents, do: func() { p.idle(jc) }})
	})
}

func (p *persistents) idle(jc *jsContext) {
	if len(jc.runs) > 0 || jc.life.phase != alive || jc.closed {
		return
	}
	p.startHook(jc, hookIdle)
	// An event that comes while the hook runs finds the context alive. That holds until the hook is over.
	if jc.life.hook == 0 {
		p.retire(jc, discardIdle)
	}
}

// startHook calls onIdle or onTerminate. It returns false if the worker has no such hook. When the hook is over, or has
// taken too long, checkChanged checks the context.
func (p *persistents) startHook(jc *jsContext, hook int) bool {
	if jc.handlers&hook == 0 || !jc.loaded {
		return false
	}
	l := jc.life
	l.hook = hook
	late := p.timers.Call(time.Now().Add(hookWall), func() { p.hookOver(jc, hook) })
	p.runs.turn(l.betweenEvents, l.call.Reset(js.OpHook).Number(float64(hook)).Bytes(), nil)
	if l.hook == 0 || jc.closed {
		p.timers.Clear(late)
	}
	return true
}

func (p *persistents) hookOver(jc *jsContext, hook int) {
	l := jc.life
	if l.hook != hook {
		return
	}
	l.hook = 0
	if hook == hookIdle && len(jc.runs) == 0 {
		p.retire(jc, discardIdle)
	}
	p.markChanged(jc)
}

// discard closes a persistent context with its isolate, which has no other context.
func (p *persistents) discard(jc *jsContext) {
	p.heaps.counters.discarded(jc, jc.life.why)
	p.heaps.runs.interrupt(jc.isolate)
}

// endBetween ends what a context does between events.
func (p *persistents) endBetween(jc *jsContext) {
	p.unregister(jc)
	p.timers.Clear(jc.life.idle)
	p.timers.Clear(jc.life.ttl)
	jc.life.betweenEvents.over = true
	p.runs.cancelStarted(jc.life.betweenEvents)
}

// runEnded is called after the end of a run in a persistent context. The failure of one event does not affect the
// others.
func (p *persistents) runEnded(jc *jsContext, r *run) {
	if !jc.loaded {
		p.invalidate(jc, discardOther)
		return
	}
	if jc.secrets.Replaced() {
		p.retire(jc, discardSecrets)
	}
	if !r.drained {
		jc.life.over = append(jc.life.over, float64(r.id))
	}
	p.markChanged(jc)
}

// countRequest retires a persistent context that has had Lifetime.Requests events.
func (p *persistents) countRequest(jc *jsContext) {
	if most := jc.worker.Lifetime.Requests; most > 0 && jc.uses >= most {
		p.retire(jc, discardReuses)
	}
}

// prepareTurn prepares a persistent context for a turn. Between events each turn has its own limit of CPU time, and
// each betweenPeriod has the subrequests, sends and output of one event. It returns the call that reports runs to
// JavaScript that have ended without its knowledge, or nil if there are none.
func (p *persistents) prepareTurn(jc *jsContext, r *run) (ended []byte) {
	l := jc.life
	if r.betweenEvents {
		if now := time.Now(); now.Sub(l.counted) >= betweenPeriod {
			l.counted, r.logged = now, 0
			r.calls.Renew()
		}
		r.cpuLeft = p.hookLimit(jc)
	}
	if len(l.over) == 0 || !jc.loaded {
		return nil
	}
	ended = l.endedCall.Reset(js.OpEnded).Numbers(l.over...).Bytes()
	l.over = l.over[:0]
	l.betweenEvents.cpuLeft = p.hookLimit(jc)
	return ended
}

// hookLimit is the CPU time that one turn of a persistent context may take between events.
func (p *persistents) hookLimit(jc *jsContext) time.Duration {
	limit := min(hookCPU, p.heaps.pool.limits(jc.worker).CPU.Duration())
	if jc.life.phase == leaving && p.terminatesNow {
		limit = min(limit, terminateNowCPU)
	}
	return limit
}
