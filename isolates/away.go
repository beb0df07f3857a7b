package isolates

import (
	"bytes"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// longTurn returns the turn of t if it has taken long: its run, the CPU time that the run has used in all, and the
// turn's number. may reports whether the turn can go away. pressed reports whether something waits for the thread.
// Watchdog only.
func (w *watch) longTurn(t *thread, now time.Time) (r *run, cpu time.Duration, turn uint64, may, pressed bool) {
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
	return w.run, w.run.cpu + used, w.turn, may, may && t.hasOtherWork(now)
}

// hasOtherWork reports whether something other than new events waits for the thread. The thread is in V8, and stays
// there while its watch is locked.
func (t *thread) hasOtherWork(now time.Time) bool {
	at := t.timers.Next()
	return t.inbox.Full() || len(t.out.reports) > 0 || len(t.waiting) > 0 || t.queuedCalls.Wait() || !at.IsZero() &&
		!at.After(now)
}

// yield sends the turn of t away if the turn is long and others wait. Watchdog only.
func (p *Pool) yield(t *thread, now time.Time) {
	w := t.watch
	r, cpu, turn, may, pressed := w.longTurn(t, now)
	if r == nil || guard.CPUWhileRunning.Off() {
		return
	}
	others := p.source.Running(t.index, r.attempt, cpu)
	if may && (others || pressed) && len(p.away.list) < p.away.most && !p.closing() {
		p.sendAway(t, w, turn)
	}
}

// sendAway sends the turn away, unless it has just ended, and lets another OS thread continue as t.
func (p *Pool) sendAway(t *thread, w *watch, turn uint64) {
	w.mu.Lock()
	if w.isolate == nil || w.turn != turn || t.lost.Load() {
		w.mu.Unlock()
		return
	}
	// The thread is in V8. It checks whether its turn is away before it touches anything. So the watchdog owns all of
	// the thread's state now.
	r, tid := w.run, w.tid
	w.away = true
	iso := r.context.isolate
	iso.away = true
	if next := t.pending; next.run != nil {
		call := bytes.Clone(next.call) // the buffer of next.call belongs to the thread
		iso.later = append(iso.later, queuedCall{run: next.run, do: func() { t.turn(next.run, call, next.body) }})
	}
	t.pending = pending{}
	t.awayTurns++
	t.heaps.freed = true // waiting attempts may begin now
	t.watch = newWatch(p.cfg.Note)
	w.mu.Unlock()
	_ = unix.Setpriority(unix.PRIO_PROCESS, tid, niceOf(backgroundNice)) // never reset: the OS thread ends with its turn
	p.away.list = append(p.away.list, awayTurn{w, t, r})
	p.done.yielded.Add(1)
	p.source.Away(r.attempt, true)
	p.startThread(t)
}

// checkAway checks a turn that is away. It returns true when the turn needs no further checks. Watchdog only.
func (p *Pool) checkAway(a awayTurn, now time.Time, parked []int) (gone bool) {
	if slices.Contains(parked, a.pinned()) && a.lost.CompareAndSwap(false, true) {
		p.losses.parked.Add(1)
		loseAway(p, a, a.watch.parked())
		return true
	}
	if p.closing() || a.from.lost.Load() {
		a.kill(stopped)
	}
	a.check(now)
	switch a.stay(now, p.losses.lostAfter) {
	case stayLong:
		holdOwner(p, a.watch, a.of)
	case stayForever:
		if cause := a.watch.giveUp(&a.lost); cause != nil {
			p.losses.ranAway.Add(1)
			p.losses.runaways.add(a.watch, nil)
			loseAway(p, a, cause)
			return true
		}
	}
	if r, cpu, _, _, _ := a.longTurn(a.from, now); r != nil {
		p.source.Running(-1, r.attempt, cpu)
		return false
	}
	if a.ended() {
		releaseOwner(p, a.watch, a.of)
		return true
	}
	return false
}

// loseAway reports and gives up a turn that is away and that V8 does not end.
func loseAway(p *Pool, a awayTurn, cause *lossCause) {
	p.reportLost(cause) // first: its owner starts nothing before
	releaseOwner(p, a.watch, a.of)
	a.giveUp(cause)
}

// giveUp lets the thread continue without the turn, which V8 does not end, and without its isolate.
func (a awayTurn) giveUp(cause *lossCause) {
	r := a.of
	a.from.post(func(t *thread) {
		iso := r.context.isolate
		t.pool.forgetIsolate(iso)
		iso.lost = iso.away
		iso.away = false
		t.awayTurns--
		if r.attempt.Event != nil {
			t.pool.source.Away(r.attempt, false)
		}
		if cause.why.Reason == stopped {
			t.interrupt(iso)
			return
		}
		r.end.Lost = true
		t.kill(r, cause.why)
		t.flush()
	})
}

// resumeReturned continues after a turn that was away.
func (t *thread) resumeReturned(x returnedTurn) {
	r, iso := x.run, x.run.context.isolate
	iso.away = false
	switch {
	case iso.lost:
		t.pool.free(iso)
		return
	case x.lost: // the call that gives it up follows
		return
	}
	t.awayTurns--
	t.heaps.freed = true
	t.pool.source.Away(r.attempt, false)
	for _, c := range iso.later {
		t.queuedCalls.add(c)
	}
	iso.later = nil
	t.finishTurn(x.endedTurn)
	t.follow(r, x.step)
	for _, jc := range iso.contexts {
		if jc.life != nil {
			t.persistents.markChanged(jc)
		}
	}
}

// V8 cannot suspend a turn, but a thread can continue without it. A long turn goes away when others wait for its
// thread. Its OS thread runs the turn to its end, at a lower priority, and another OS thread takes over everything else
// of the thread. No thread enters the turn's isolate until the turn is back. So no event waits for another owner's
// event for longer than turnQuantum and a few ticks (docs/development/adr/0020).
const (
	// turnQuantum is the CPU time after which a turn goes away when others wait.
	turnQuantum = 20 * time.Millisecond
	// leastAway is how many turns of a process may be away at once (awayTurns.most). The bound is four for each thread
	// if that is more.
	leastAway = 16
)
