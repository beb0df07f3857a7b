package isolates

import (
	"runtime"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"golang.org/x/sys/unix"
)

// loop runs the thread. It ends when stop is closed. The remaining runs are then interrupted.
func (t *thread) loop(stop <-chan struct{}) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	tid := unix.Gettid()
	t.tid.Store(int32(tid))
	t.watch.pin(tid)
	t.setPriority()
	t.pool.dog.awake()
	defer t.pool.dog.asleep()
	for {
		select {
		case <-stop:
			t.close()
			return
		default:
		}
		busy := t.handleInbox()
		busy = t.fireTimers() || busy
		busy = t.doQueuedCalls() || busy
		busy = t.startMore() || busy
		t.heaps.enforceBudget()
		t.persistents.checkChanged()
		t.heaps.giveBack()
		t.flush()
		t.placer.pendingCode.store(&t.heaps)
		t.heaps.sweep()
		if !busy && !t.queuedCalls.ForgiveDebts() && !t.placer.resting.collect() {
			t.sleep(stop)
		}
	}
}

// handleInbox handles what was posted.
func (t *thread) handleInbox() bool {
	calls, forwarded, returned := t.inbox.Take(&t.waiting)
	if forwarded > 0 {
		t.heaps.freed = true
	}
	for _, c := range calls {
		if c.run != nil {
			t.queuedCalls.add(c)
		} else {
			c.do()
		}
	}
	for _, x := range returned {
		t.resumeReturned(x)
	}
	return len(calls)+forwarded+len(returned) > 0
}

// fireTimers handles the timers that are due. Timers of JavaScript become queued calls. Limits and other internal
// timers are handled before all queued calls.
func (t *thread) fireTimers() bool {
	if t.timers.Empty() {
		return false
	}
	now := time.Now()
	rang := false
	for n := t.timers.Due(now); n != nil; n = t.timers.Due(now) {
		rang = true
		switch {
		case n.Act != nil:
			n.Act()
		case n.ID == noTimer:
			if c := (queuedCall{run: n.Of, do: func() { n.Of.timeout() }}); !c.postpone() {
				n.Of.timeout()
			}
		default:
			t.queuedCalls.add(queuedCall{run: n.Of, timer: n.ID})
		}
	}
	return rang
}

// callRound is the CPU time after which a round of queued calls is interrupted for new events. The next round continues
// with the next owner.
const callRound = 2 * time.Millisecond

// doQueuedCalls does one round: some queued calls of each owner that is not in debt. It returns false when it did none.
func (t *thread) doQueuedCalls() bool {
	c, began, did := &t.queuedCalls, t.turned, false
	for n := c.Len(); n > 0 && (t.turned-began < callRound || guard.TimerBudget.Off()); n-- {
		o := c.NextOwner()
		for o.MayCall() {
			did = true
			before := t.turned
			t.do(o.Pop())
			o.Charge(t.turned - before)
		}
		c.Served(o)
	}
	return did
}

func (t *thread) do(c queuedCall) {
	if c.postpone() {
		return
	}
	r := c.run
	if c.do != nil {
		c.do()
		return
	}
	if r.timers[c.timer] == nil {
		return // the timer was cleared, or the run is over
	}
	delete(r.timers, c.timer)
	t.call.Reset(js.OpTimers).Numbers(c.timer)
	t.turn(r, t.call.Bytes(), nil)
}

// startMore starts attempts while there are slots. Attempts that wait come first, if there may be room for them. They
// start one at a time, since runs under way come first.
func (t *thread) startMore() bool {
	old, begun := len(t.waiting), 0
	asked := t.inbox.Asked.Swap(false)
	if t.heaps.freed && old > 0 {
		t.heaps.freed = false
		begun += t.beginWaiting(0, old, 1)
	}
	most := t.pool.cfg.Slots - (len(t.running) - t.callers) - len(t.waiting)
	if most > 0 {
		// An attempt is in waiting until it is in running: Pool.replace returns both to the Source.
		from := len(t.waiting)
		t.waiting = append(t.waiting, t.pool.source.Next(t.index, most)...)
		begun += t.beginWaiting(from, len(t.waiting), most)
	} else if asked { // another thread has to take what waits
		t.pool.source.Next(t.index, 0)
	}
	if len(t.waiting) > 0 {
		t.pool.waitingThreads.Or(1 << t.index)
	}
	return begun > 0
}

// beginWaiting tries to begin the waiting attempts from index i to j. It begins at most most of them.
func (t *thread) beginWaiting(i, j, most int) (begun int) {
	for i < j && begun < most && !t.pool.closing() {
		a := t.waiting[i]
		t.waiting = slices.Delete(t.waiting, i, i+1)
		if !t.begin(a) {
			t.waiting = slices.Insert(t.waiting, i, a)
			i++
			continue
		}
		begun++
		j--
		// Other waiting attempts may find room, too.
		t.heaps.freed = t.heaps.freed || i < j
		// Ready replies do not wait for a slow event behind them in the batch.
		if len(t.out.reports) > 0 && t.began.Sub(t.out.flushed) > flushAfter {
			t.flush()
		}
	}
	return begun
}

// sleep waits for a wake-up or the next timer.
func (t *thread) sleep(stop <-chan struct{}) {
	t.pool.dog.asleep()
	defer t.pool.dog.awake()
	at := t.timers.Next()
	if at.IsZero() {
		select {
		case <-stop:
		case <-t.inbox.Wake:
		}
		return
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-stop:
	case <-t.inbox.Wake:
	case <-timer.C:
	}
}

// close interrupts the remaining runs and frees all isolates.
func (t *thread) close() {
	t.placer.resting.stop()
	t.interruptAll()
	for _, a := range append(t.waiting, t.inbox.Refuse()...) {
		t.out.reports = append(t.out.reports, lifecycle.Report{Attempt: a, End: &lifecycle.End{Interrupted: true}})
	}
	t.waiting = nil
	t.flush()
	t.awaitAway()
	t.interruptAll()
	t.flush()
	for _, jc := range t.persistents.of {
		t.terminateNow(jc.isolate)
	}
	t.heaps.giveBack()
	t.heaps.dropAll()
	t.closeInbox()
}

// interruptAll ends all runs except those whose isolate is away.
func (t *thread) interruptAll() {
	for r := range t.running {
		if r.context == nil || !r.context.isolate.away {
			t.end(r, lifecycle.End{Interrupted: true})
		}
	}
}

// awaitAway waits until no turn of the thread is away. The pool closes then: the watchdog ends those turns or gives
// them up.
func (t *thread) awaitAway() {
	for t.handleInbox(); t.awayTurns > 0; t.handleInbox() {
		<-t.inbox.Wake
	}
}

// setPriority sets the priority of the calling thread. If the system refuses, it stays as it is.
func (t *thread) setPriority() {
	cfg := &t.pool.cfg
	if cfg.Background == 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceOf(threadNice))
	}
	if t.index < cfg.Threads {
		return
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceOf(backgroundNice))
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size:    unix.SizeofSchedAttr,
		Policy:  unix.SCHED_BATCH,
		Nice:    int32(niceOf(backgroundNice)),
		Runtime: uint64(backgroundSlice),
	}, 0)
}

// processNice is what the process was started with: 0, unless somebody started it with nice. The first thread of the
// process may become a pinned thread, so it is read before.
var processNice = func() int {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - n // n is the value that the system call returns
}()

// niceOf returns the priority of a thread that is lower than that of the process by so much.
func niceOf(lower int) int { return min(processNice+lower, runawayNice) }

// startThread lets a new goroutine, and so another OS thread, run as t from now on.
func (p *Pool) startThread(t *thread) {
	go func() {
		t.loop(p.end.stop)
		if !t.lost.Load() {
			p.end.threads.Done()
		}
	}()
}

func (p *Pool) start(t *thread) {
	p.end.threads.Add(1)
	p.startThread(t)
}
