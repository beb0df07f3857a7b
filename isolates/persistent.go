package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Bounds of what a persistent context does between events.
const (
	hookCPU  = time.Second // of one call of onIdle or onTerminate, and of each timer or answer between events, unless the worker's limit is less
	hookWall = 2 * time.Second
	// farewellCPU is the same of onTerminate when the context has to go at once: others wait for its place.
	farewellCPU = 20 * time.Millisecond
	// outdated is how long the context of an older version stays without an event, once there is one of a newer version.
	outdated = time.Minute
	// groundPeriod is the time in which a persistent context may, between events, make as many subrequests and sends and write as much as one event.
	groundPeriod = time.Second
	forever      = 100 * 365 * 24 * time.Hour
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
	retiring       // takes no event any more; ends when those it has are over
	leaving        // onTerminate runs
	doomed         // not to be entered again
)

// life is what a persistent context has beside a guest of other modes.
type life struct {
	of      release
	ground  *run // no event, but what the context does between events: timers of the module, hooks
	phase   phase
	why     string        // why it is discarded
	idle    *alarm        // set while nothing runs
	ttl     *alarm        // since it was made
	hook    int           // the hook that runs, 0 = none
	over    []float64     // runs that have ended and JavaScript does not know of
	owed    time.Duration // CPU time between events that the owner was not charged yet
	counted time.Time     // since when subrequests, sends and output between events are counted
	call    v8x.Call
}

// persistent is the context of w, which is new unless the thread has it.
func (t *thread) persistent(w *events.Worker) (*guest, error) {
	h := releaseOf(w)
	if g := t.lives[h]; g != nil {
		if !g.loaded || g.isolate.away {
			return nil, nil // the first event is loading it, or it is in a long turn
		}
		t.tally.warmHit(g)
		t.alarms.clear(g.life.idle)
		g.life.idle = nil
		return g, nil
	}
	g, err := t.fresh(w, events.Persistent)
	if g == nil {
		return nil, err
	}
	now := time.Now()
	ground := &run{attempt: &events.Attempt{Worker: w}, limits: t.pool.limits(w), guest: g, start: now, wall: now.Add(forever), begun: true, ground: true}
	g.life = &life{of: h, ground: ground}
	t.lives[h] = g
	if ttl := w.Lifetime.TTL.Duration(); ttl > 0 {
		g.life.ttl = t.alarms.call(now.Add(ttl), func() { t.retire(g, discardTTL) })
	}
	t.pool.homes.outdate(h)
	return g, nil
}

// retire lets a context take no further event. The next one makes another.
func (t *thread) retire(g *guest, why string) {
	l := g.life
	if l.phase != alive {
		return
	}
	l.phase, l.why = retiring, why
	t.moveOut(g)
	t.touch(g)
}

// doom has a context closed before anything enters it again; what runs in it is interrupted.
func (t *thread) doom(g *guest, why string) {
	if g.life.phase == doomed {
		return
	}
	g.life.phase, g.life.why = doomed, why
	t.moveOut(g)
	t.touch(g)
}

// moveOut makes place for another context of the worker.
func (t *thread) moveOut(g *guest) {
	if t.lives[g.life.of] == g {
		delete(t.lives, g.life.of)
		t.pool.homes.leave(g.life.of, t)
	}
	t.freed = true
}

// touch has tend look at a context, outside of all turns.
func (t *thread) touch(g *guest) { t.touched = append(t.touched, g) }

// tend sees to the persistent contexts of which something changed.
func (t *thread) tend() {
	for len(t.touched) > 0 {
		list := t.touched
		t.touched = nil
		for _, g := range list {
			if !g.closed {
				t.tendOne(g)
			}
		}
	}
}

func (t *thread) tendOne(g *guest) {
	l := g.life
	switch {
	case g.isolate.away: // it is looked at again when it is back
	case l.phase == doomed:
		t.discard(g)
	case len(g.runs) > 0 || l.hook != 0:
	case l.phase == retiring:
		if l.phase = leaving; g.handlers&hookTerminate == 0 || !g.loaded {
			t.discard(g)
			return
		}
		l.hook = hookTerminate // from now on
		t.chores.add(chore{run: l.ground, do: func(t *thread) {
			if !g.closed && l.phase == leaving {
				t.startHook(g, hookTerminate)
			}
		}})
	case l.phase == leaving:
		t.discard(g)
	case l.idle == nil:
		if idle := g.worker.Lifetime.Idle.Duration(); idle > 0 {
			t.goIdle(g, idle)
		}
	}
}

// goIdle ends a context that has no event for that long.
func (t *thread) goIdle(g *guest, after time.Duration) {
	g.life.idle = t.alarms.call(time.Now().Add(after), func() {
		t.chores.add(chore{run: g.life.ground, do: func(t *thread) { t.idle(g) }})
	})
}

func (t *thread) idle(g *guest) {
	if len(g.runs) > 0 || g.life.phase != alive || g.closed {
		return
	}
	t.startHook(g, hookIdle)
	// An event that comes while the hook runs finds the context alive, until the hook is over.
	if g.life.hook == 0 {
		t.retire(g, discardIdle)
	}
}

// startHook calls onIdle or onTerminate, and is false when the worker has none. When it is over, or has taken too long,
// the context is tended.
func (t *thread) startHook(g *guest, hook int) bool {
	if g.handlers&hook == 0 || !g.loaded {
		return false
	}
	l := g.life
	l.hook = hook
	late := t.alarms.call(time.Now().Add(hookWall), func() { t.hookOver(g, hook) })
	t.turn(l.ground, l.call.Reset(opHook).Number(float64(hook)).Bytes(), nil)
	if l.hook == 0 || g.closed {
		t.alarms.clear(late)
	}
	return true
}

func (t *thread) hookOver(g *guest, hook int) {
	l := g.life
	if l.hook != hook {
		return
	}
	l.hook = 0
	if hook == hookIdle && len(g.runs) == 0 {
		t.retire(g, discardIdle)
	}
	t.touch(g)
}

// farewell is onTerminate of what has to go at once: it has one turn.
func (t *thread) farewell(iso *isolate) {
	if len(iso.guests) == 0 || iso.guests[0].life == nil || iso.guests[0].life.phase > retiring {
		return
	}
	g := iso.guests[0]
	g.life.phase = leaving
	t.farewells = true
	t.startHook(g, hookTerminate)
	t.farewells = false
	t.watch.blame(t.beginning)
}

// discard closes a persistent context with its isolate, which it has to itself.
func (t *thread) discard(g *guest) {
	t.tally.discards.inc(g.life.why)
	t.interrupt(g.isolate)
}

// bury ends what a context does between events.
func (t *thread) bury(g *guest) {
	if g.life == nil {
		return
	}
	t.moveOut(g)
	t.alarms.clear(g.life.idle)
	t.alarms.clear(g.life.ttl)
	g.life.ground.over = true
	t.forget(g.life.ground)
}

// leftPersistent is what follows the end of a run in a persistent context: a failure of one event is not the others'.
func (t *thread) leftPersistent(g *guest, r *run) {
	if !g.loaded {
		t.doom(g, discardOther)
		return
	}
	if !r.drained {
		g.life.over = append(g.life.over, float64(r.id))
	}
	t.touch(g)
}

// countRequest counts an event of a persistent context.
func (t *thread) countRequest(g *guest) {
	if most := g.worker.Lifetime.Requests; most > 0 && g.uses >= most {
		t.retire(g, discardReuses)
	}
}

// freshen readies a persistent context for a turn: between events each has a limit of CPU time of its own, and each groundPeriod what one event
// may ask of the world. What has ended without the knowledge of JavaScript is told.
func (t *thread) freshen(g *guest, r *run) {
	l := g.life
	if r.ground {
		if now := time.Now(); now.Sub(l.counted) >= groundPeriod {
			l.counted, r.made, r.sent, r.logged = now, 0, 0, 0
		}
		r.cpuLeft = t.hookLimit(g)
	}
	if len(l.over) == 0 || !g.loaded {
		return
	}
	ended := l.call.Reset(opEnded).Numbers(l.over...).Bytes()
	l.over = l.over[:0]
	l.ground.cpuLeft = t.hookLimit(g)
	t.enter(l.ground, stepEnded, func() v8x.Result { return g.ctx.Call(ended, nil) })
}

// hookLimit is the CPU time that one turn of a persistent context may take between events.
func (t *thread) hookLimit(g *guest) time.Duration {
	limit := min(hookCPU, t.pool.limits(g.worker).CPU.Duration())
	if g.life.phase == leaving && t.farewells {
		limit = min(limit, farewellCPU)
	}
	return limit
}
