package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
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

// Bits of cmdHandlers and arguments of opHook.
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
	why           string        // why the context is discarded
	idle          *timer        // set while nothing runs
	ttl           *timer        // runs from the creation of the context
	hook          int           // the hook that runs, 0 = none
	over          []float64     // ended runs that JavaScript does not know about yet
	owed          time.Duration // CPU time between events that is not yet charged to the owner
	accepted      int           // open WebSockets of clients
	counted       time.Time     // start of the period for which subrequests, sends and output between events are counted
	call          v8x.Call
}

// persistent returns the context of w. It makes one if the thread has none.
func (t *thread) persistent(w *events.Worker) (*jsContext, error) {
	h := releaseOf(w)
	if jc := t.persistents[h]; jc != nil && jc.secrets.Replaced() {
		// This thread stays the home of the worker. Otherwise another one could make a context too.
		jc.life.phase, jc.life.why = retiring, discardSecrets
		delete(t.persistents, h)
		t.touch(jc)
	}
	if jc := t.persistents[h]; jc != nil {
		if !jc.loaded || jc.isolate.away {
			return nil, nil // the first event still loads it, or it is in a long turn
		}
		t.counters.warmHit(jc)
		t.timers.clear(jc.life.idle)
		jc.life.idle = nil
		return jc, nil
	}
	jc, err := t.fresh(w, events.Persistent)
	if jc == nil {
		return nil, err
	}
	now := time.Now()
	between := &run{
		attempt: &lifecycle.Attempt{Worker: w}, tenant: t.pool.policies.tenant(w.Owner), limits: t.pool.limits(w), context: jc, start: now, wall: now.Add(forever),
		begun: true, betweenEvents: true,
	}
	jc.life = &life{of: h, betweenEvents: between}
	t.persistents[h] = jc
	if ttl := w.Lifetime.TTL.Duration(); ttl > 0 {
		jc.life.ttl = t.timers.call(now.Add(ttl), func() { t.retire(jc, discardTTL) })
	}
	t.pool.affinity.outdate(h)
	return jc, nil
}

// retire stops a context from taking further events. The next event makes another context.
func (t *thread) retire(jc *jsContext, why string) {
	l := jc.life
	if l.phase != alive {
		return
	}
	l.phase, l.why = retiring, why
	t.moveOut(jc)
	t.touch(jc)
}

// invalidate has a context closed before it is entered again. Its runs are interrupted.
func (t *thread) invalidate(jc *jsContext, why string) {
	if jc.life.phase == invalid {
		return
	}
	jc.life.phase, jc.life.why = invalid, why
	t.moveOut(jc)
	t.touch(jc)
}

// moveOut makes room for another context of the worker.
func (t *thread) moveOut(jc *jsContext) {
	if t.persistents[jc.life.of] == jc {
		delete(t.persistents, jc.life.of)
		t.pool.affinity.leave(jc.life.of, t)
	}
	t.freed = true
}

// touch has tend check a context, outside all turns.
func (t *thread) touch(jc *jsContext) { t.touched = append(t.touched, jc) }

// tend checks the persistent contexts in which something changed.
func (t *thread) tend() {
	for len(t.touched) > 0 {
		list := t.touched
		t.touched = nil
		for _, jc := range list {
			if !jc.closed {
				t.tendOne(jc)
			}
		}
	}
}

func (t *thread) tendOne(jc *jsContext) {
	l := jc.life
	switch {
	case jc.isolate.away: // checked again when it is back
	case l.phase == invalid:
		t.discard(jc)
	case len(jc.runs) > 0 || l.hook != 0:
	case l.phase == retiring:
		if l.phase = leaving; jc.handlers&hookTerminate == 0 || !jc.loaded {
			t.discard(jc)
			return
		}
		l.hook = hookTerminate // from now on
		t.queuedCalls.add(queuedCall{run: l.betweenEvents, do: func(t *thread) {
			if !jc.closed && l.phase == leaving {
				t.startHook(jc, hookTerminate)
			}
		}})
	case l.phase == leaving:
		t.discard(jc)
	case l.accepted > 0: // it is not idle
	case l.idle == nil:
		if idle := jc.worker.Lifetime.Idle.Duration(); idle > 0 {
			t.goIdle(jc, idle)
		}
	}
}

// goIdle ends a context after it has had no event for the given time.
func (t *thread) goIdle(jc *jsContext, after time.Duration) {
	jc.life.idle = t.timers.call(time.Now().Add(after), func() {
		t.queuedCalls.add(queuedCall{run: jc.life.betweenEvents, do: func(t *thread) { t.idle(jc) }})
	})
}

func (t *thread) idle(jc *jsContext) {
	if len(jc.runs) > 0 || jc.life.phase != alive || jc.closed {
		return
	}
	t.startHook(jc, hookIdle)
	// An event that comes while the hook runs finds the context alive. That holds until the hook is over.
	if jc.life.hook == 0 {
		t.retire(jc, discardIdle)
	}
}

// startHook calls onIdle or onTerminate. It returns false if the worker has no such hook. When the hook is over, or has
// taken too long, tend checks the context.
func (t *thread) startHook(jc *jsContext, hook int) bool {
	if jc.handlers&hook == 0 || !jc.loaded {
		return false
	}
	l := jc.life
	l.hook = hook
	late := t.timers.call(time.Now().Add(hookWall), func() { t.hookOver(jc, hook) })
	t.turn(l.betweenEvents, l.call.Reset(opHook).Number(float64(hook)).Bytes(), nil)
	if l.hook == 0 || jc.closed {
		t.timers.clear(late)
	}
	return true
}

func (t *thread) hookOver(jc *jsContext, hook int) {
	l := jc.life
	if l.hook != hook {
		return
	}
	l.hook = 0
	if hook == hookIdle && len(jc.runs) == 0 {
		t.retire(jc, discardIdle)
	}
	t.touch(jc)
}

// terminateNow calls onTerminate for an isolate that must go at once. The hook has one turn.
func (t *thread) terminateNow(iso *isolate) {
	if len(iso.contexts) == 0 || iso.contexts[0].life == nil || iso.contexts[0].life.phase > retiring {
		return
	}
	jc := iso.contexts[0]
	jc.life.phase = leaving
	t.terminatesNow = true
	t.startHook(jc, hookTerminate)
	t.terminatesNow = false
	t.watch.blame(t.beginning)
}

// discard closes a persistent context with its isolate, which has no other context.
func (t *thread) discard(jc *jsContext) {
	countDiscard(t, jc, jc.life.why)
	t.interrupt(jc.isolate)
}

// endBetween ends what a context does between events.
func (t *thread) endBetween(jc *jsContext) {
	if jc.life == nil {
		return
	}
	t.moveOut(jc)
	t.timers.clear(jc.life.idle)
	t.timers.clear(jc.life.ttl)
	jc.life.betweenEvents.over = true
	t.forget(jc.life.betweenEvents)
}

// leftPersistent is called after the end of a run in a persistent context. The failure of one event does not affect the
// others.
func (t *thread) leftPersistent(jc *jsContext, r *run) {
	if !jc.loaded {
		t.invalidate(jc, discardOther)
		return
	}
	if jc.secrets.Replaced() {
		t.retire(jc, discardSecrets)
	}
	if !r.drained {
		jc.life.over = append(jc.life.over, float64(r.id))
	}
	t.touch(jc)
}

// countRequest retires a persistent context that has had Lifetime.Requests events.
func (t *thread) countRequest(jc *jsContext) {
	if most := jc.worker.Lifetime.Requests; most > 0 && jc.uses >= most {
		t.retire(jc, discardReuses)
	}
}

// freshen prepares a persistent context for a turn. Between events each turn has its own limit of CPU time, and each
// betweenPeriod has the subrequests, sends and output of one event. It also reports runs to JavaScript that have ended
// without its knowledge.
func (t *thread) freshen(jc *jsContext, r *run) {
	l := jc.life
	if r.betweenEvents {
		if now := time.Now(); now.Sub(l.counted) >= betweenPeriod {
			l.counted, r.made, r.sent, r.logged, r.tree = now, 0, 0, 0, nil
		}
		r.cpuLeft = t.hookLimit(jc)
	}
	if len(l.over) == 0 || !jc.loaded {
		return
	}
	ended := l.call.Reset(opEnded).Numbers(l.over...).Bytes()
	l.over = l.over[:0]
	l.betweenEvents.cpuLeft = t.hookLimit(jc)
	t.enter(l.betweenEvents, stepEnded, func() v8x.Result { return jc.v8.Call(ended, nil) })
}

// hookLimit is the CPU time that one turn of a persistent context may take between events.
func (t *thread) hookLimit(jc *jsContext) time.Duration {
	limit := min(hookCPU, t.pool.limits(jc.worker).CPU.Duration())
	if jc.life.phase == leaving && t.terminatesNow {
		limit = min(limit, terminateNowCPU)
	}
	return limit
}
