package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/timers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
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
	forever       = 100 * 365 * 24 * time.Hour
)

// Bits of js.CmdHandlers and arguments of js.OpHook.
const (
	hookIdle      = 8
	hookTerminate = 16
)

// phase is how far the life of a persistent context has got.
type phase int

const (
	alive    phase = iota
	retiring       // takes no more events; ends when its runs are over
	leaving        // onTerminate runs
	invalid        // must not be entered again
)

// life is what a persistent context has in addition to contexts of other modes.
type life struct {
	of            release
	betweenEvents *run // stands for work between events, not for an event: timers of the module, hooks
	phase         phase
	why           string              // why the context is discarded
	idle          *timers.Timer[*run] // set while nothing runs
	ttl           *timers.Timer[*run] // runs from the creation of the context
	hook          int                 // the hook that runs, 0 = none
	over          []float64           // ended runs that JavaScript does not know about yet
	owed          time.Duration       // CPU time between events that is not yet charged to the owner
	counted       time.Time           // start of the period for which subrequests, sends and output between events are counted
	call          v8x.Call            // of a hook
	endedCall     v8x.Call            // of prepareTurn, before another call
}

// persistents are the persistent contexts of one thread. They decide when a context ends, and call its hooks. Only the
// thread uses them.
type persistents struct {
	thread      *thread // the home of these contexts, for Pool.affinity
	heaps       *heaps
	runs        runner
	pool        *Pool
	timers      *timers.List[*run]
	queuedCalls *queuedCalls

	of            map[release]*jsContext // contexts that take events
	changed       []*jsContext           // contexts that checkChanged must check
	terminatesNow bool                   // onTerminate runs for an isolate that must go at once
}

// acquire returns the context of w. It makes one if the thread has none.
func (p *persistents) acquire(w *workers.Worker) (*jsContext, error) {
	h := releaseOf(w)
	if jc := p.of[h]; jc != nil && jc.secrets.Replaced() {
		// This thread stays the home of the worker. Otherwise another one could make a context too.
		jc.life.phase, jc.life.why = retiring, discardSecrets
		delete(p.of, h)
		p.markChanged(jc)
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
	now := time.Now()
	between := &run{
		thread: p.thread, attempt: &lifecycle.Attempt{Worker: w},
		tenant: p.pool.policies.Tenant(w.Owner), limits: p.pool.limits(w),
		context: jc, start: now, wall: now.Add(forever),
		begun: true, betweenEvents: true,
	}
	between.calls.Init(caller{between}, &p.pool.calls)
	jc.life = &life{of: h, betweenEvents: between}
	p.of[h] = jc
	if ttl := w.Lifetime.TTL.Duration(); ttl > 0 {
		jc.life.ttl = p.timers.Call(now.Add(ttl), func() { p.retire(jc, discardTTL) })
	}
	p.pool.affinity.outdate(h)
	return jc, nil
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
		p.pool.affinity.leave(jc.life.of, p.thread)
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

// discard closes a persistent context with its isolate, which has no other context.
func (p *persistents) discard(jc *jsContext) {
	p.heaps.counters.discarded(jc, jc.life.why)
	p.runs.interrupt(jc.isolate)
}

// endBetween ends what a context does between events.
func (p *persistents) endBetween(jc *jsContext) {
	if jc.life == nil {
		return
	}
	p.unregister(jc)
	p.timers.Clear(jc.life.idle)
	p.timers.Clear(jc.life.ttl)
	jc.life.betweenEvents.over = true
	p.runs.cancelStarted(jc.life.betweenEvents)
}

// leftPersistent is called after the end of a run in a persistent context. The failure of one event does not affect the
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
	limit := min(hookCPU, p.pool.limits(jc.worker).CPU.Duration())
	if jc.life.phase == leaving && p.terminatesNow {
		limit = min(limit, terminateNowCPU)
	}
	return limit
}
