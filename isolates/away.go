package isolates

import (
	"bytes"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// V8 cannot set a turn aside, but a thread can go on without it. A turn that takes long while others wait for its thread goes away: the system's
// thread on which it runs carries it to its end, at a lower priority, and another one takes over all else that the thread has. Its isolate is
// left alone until it is back. So nobody waits for an event of somebody else for longer than turnQuantum and a few ticks (docs/adr/0020).
const (
	// turnQuantum is the CPU time of a turn from which on it goes away when others wait.
	turnQuantum = 20 * time.Millisecond
	// leastAway is how many turns of a process may be away at once, or four for each thread where that is more.
	leastAway = 16
)

// step is what a turn is, which says what follows it.
type step uint8

const (
	stepCall   step = iota // of the entry function, for its run
	stepModule             // of the module's evaluation
	stepEnded              // of a persistent context, to tell it which runs are over: nothing follows
)

// left is a turn that has ended.
type left struct {
	run        *run
	step       step
	start, end time.Time
	result     v8x.Result
	cpu        time.Duration
	killed     events.Reason
}

// awayTurn is a turn that is away.
type awayTurn struct {
	*watch
	home *thread
	of   *run
}

// pending is a turn that comes after the one under way.
type pending struct {
	run        *run
	call, body []byte
}

// long is the turn of t if it has taken long: its run, what that has used in all, and the turn's number. may says that it can go away, and pressed that something waits for
// the thread. Watchdog only.
func (w *watch) long(t *thread, now time.Time) (r *run, cpu time.Duration, turn uint64, may, pressed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isolate == nil || !w.sampled {
		return nil, 0, 0, false, false
	}
	used := w.before + w.seen - w.cpuThen
	if used < turnQuantum {
		return nil, 0, 0, false, false
	}
	may = !w.fixed && !w.away
	return w.run, w.run.cpu + used, w.turn, may, may && t.pressed(now)
}

// pressed reports whether something waits for the thread beside new events. The thread is in V8, and stays there for as long as its watch is locked.
func (t *thread) pressed(now time.Time) bool {
	t.mu.Lock()
	posted := len(t.done) + len(t.adopted)
	t.mu.Unlock()
	at := t.alarms.next()
	return posted > 0 || len(t.reports) > 0 || len(t.waiting) > 0 || t.chores.wait() || !at.IsZero() && !at.After(now)
}

// yield has the turn of t go away if it takes long and others wait. Watchdog only.
func (p *Pool) yield(t *thread, now time.Time) {
	w := t.watch
	r, cpu, turn, may, pressed := w.long(t, now)
	if r == nil || guard.CPUWhileRunning.Off() {
		return
	}
	others := p.source.Running(t.index, r.attempt, cpu)
	if may && (others || pressed) && len(p.away) < max(leastAway, 4*p.cfg.Threads) && !p.closing() {
		p.part(t, w, turn)
	}
}

// part sends the turn away, unless it has just ended, and has another thread of the system go on with t.
func (p *Pool) part(t *thread, w *watch, turn uint64) {
	w.mu.Lock()
	if w.isolate == nil || w.turn != turn || t.lost.Load() {
		w.mu.Unlock()
		return
	}
	// The thread is in V8, and sees that its turn is away before it touches anything: all that it has is the watchdog's now.
	r, tid := w.run, w.tid
	w.away = true
	iso := r.guest.isolate
	iso.away = true
	if next := t.pending; next.run != nil {
		call := bytes.Clone(next.call) // its buffer is the thread's
		iso.later = append(iso.later, chore{run: next.run, do: func(t *thread) { t.turn(next.run, call, next.body) }})
	}
	t.pending = pending{}
	t.parted++
	t.freed = true // what waits may begin now
	t.watch = &watch{}
	w.mu.Unlock()
	_ = unix.Setpriority(unix.PRIO_PROCESS, tid, backgroundNice) // for good: it ends with its turn
	p.away = append(p.away, awayTurn{w, t, r})
	p.metrics.yielded.Inc()
	p.source.Away(r.attempt, true)
	p.carry(t)
}

// lookAway is the watchdog's look at a turn that is away. It is true when there is nothing to look at any more.
func (p *Pool) lookAway(a awayTurn, now time.Time, parked []int) (gone bool) {
	if slices.Contains(parked, a.pinned()) && a.lost.CompareAndSwap(false, true) {
		p.parked.Add(1)
		a.giveUp(a.watch.parked())
		return true
	}
	if p.closing() || a.home.lost.Load() {
		a.kill(stopped)
	}
	a.look(now)
	if guilty := a.strayed(now, &a.lost); guilty != nil {
		p.strayed.Add(1)
		p.strays.add(a.watch)
		a.giveUp(guilty)
		return true
	}
	if r, cpu, _, _, _ := a.long(a.home, now); r != nil {
		p.source.Running(-1, r.attempt, cpu)
		return false
	}
	return a.ended()
}

// ended reports whether the turn is over.
func (w *watch) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isolate == nil
}

// giveUp has the thread go on without a turn that V8 does not let go, and without its isolate.
func (a awayTurn) giveUp(guilty *culprit) {
	r := a.of
	a.home.post(func(t *thread) {
		iso := r.guest.isolate
		iso.lost = iso.away
		iso.away = false
		t.parted--
		if r.attempt.Event != nil {
			t.pool.source.Away(r.attempt, false)
		}
		if guilty.why.Reason == stopped {
			t.interrupt(iso)
			return
		}
		r.lost = true
		t.kill(r, guilty.why)
		t.flush()
		t.pool.tellLost(guilty)
	})
}

// comeBack gives a turn that was away back to the thread, and ends the system's thread that carried it.
func (t *thread) comeBack(w *watch, x left) {
	if w.lost.Load() {
		t.pool.strays.remove(w)
		t.pool.back.Add(1)
	}
	v8x.ForgetThread()
	lost := w.lost.Load()
	t.post(func(t *thread) { t.back(x, lost) })
	runtime.Goexit()
}

// back goes on where a turn that was away has ended. lost says that it was given up.
func (t *thread) back(x left, lost bool) {
	r, iso := x.run, x.run.guest.isolate
	iso.away = false
	switch {
	case iso.lost:
		iso.free()
		t.pool.lost.Add(-iso.heap)
		return
	case lost: // what gives it up is just coming
		return
	}
	t.parted--
	t.freed = true
	t.pool.source.Away(r.attempt, false)
	for _, c := range iso.later {
		t.chores.add(c)
	}
	iso.later = nil
	t.leave(x)
	t.follow(r, x.step)
	for _, g := range iso.guests {
		if g.life != nil {
			t.touch(g)
		}
	}
}

// free closes an isolate that was given up and whose turn has come back after all.
func (iso *isolate) free() {
	for _, c := range iso.dead {
		c.Close()
	}
	iso.dead = nil
	iso.v8.Close()
}

// hold puts a chore aside while its isolate is away, and is false when it is not.
func (c chore) hold() bool {
	if c.run.guest == nil || !c.run.guest.isolate.away {
		return false
	}
	iso := c.run.guest.isolate
	iso.later = append(iso.later, c)
	return true
}

// awaitAway waits until no turn of the thread is away: the pool closes, and the watchdog ends them or gives them up.
func (t *thread) awaitAway() {
	for t.takeUp(); t.parted > 0; t.takeUp() {
		<-t.wake
	}
}
