package isolates

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/timers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// thread is a pinned thread. Only its own goroutine uses its fields, except those whose comment says otherwise.
type thread struct {
	index int
	pool  *Pool
	inbox inbox // any goroutine may put something into it
	// The watchdog shares watch, which has its own lock. The watchdog replaces it when a turn goes away.
	watch    *watch
	tid      atomic.Int32  // of the OS thread; 0 before it has started
	lost     atomic.Bool   // parked in V8 and replaced: the watchdog owns its state now
	replaced chan struct{} // closed when the new thread has taken its place

	out         outbox
	heaps       heaps
	persistents persistents

	beginning   *run // the run that begin is starting
	running     map[*run]struct{}
	callers     int                  // runs that have service calls under way: they take no slot
	waiting     []*lifecycle.Attempt // taken from the Source, but no isolate is free for them
	timers      timers.List[*run]
	lastID      uint64
	call        v8x.Call
	kept        v8x.Kept      // names and values of reply headers
	began       time.Time     // when the latest run began: about the present time
	aside       time.Duration // CPU time that the commands of the turn took outside V8, if it was measured
	turned      time.Duration // CPU time of all turns
	queuedCalls queuedCalls   // calls into runs that wait
	pending     pending       // the next turn, kept in case the current turn goes away
	awayTurns   int           // turns that are away
}

// outbox is what a thread has not reported yet.
type outbox struct {
	reports []lifecycle.Report
	flushed time.Time // when the thread last reported, as its field began had it
	bodies  []*run    // runs whose replies have begun in this turn
}

// flushAfter is how long reports may be collected before a flush.
const flushAfter = 500 * time.Microsecond

func newThread(p *Pool, index int) *thread {
	t := &thread{
		index: index, pool: p, inbox: inbox{wake: make(chan struct{}, 1)}, watch: newWatch(p.cfg.Note),
		replaced: make(chan struct{}), running: map[*run]struct{}{},
	}
	t.heaps.prepare(t)
	t.persistents = persistents{
		thread: t, heaps: &t.heaps, runs: t, pool: p, timers: &t.timers, queuedCalls: &t.queuedCalls,
		of: map[release]*jsContext{},
	}
	return t
}

// hasWaiting reports whether attempts wait for room.
func (t *thread) hasWaiting() bool { return len(t.waiting) > 0 }

// post gives the thread something to do. Any goroutine may call it.
func (t *thread) post(f func(*thread)) {
	t.put(queuedCall{do: func() { f(t) }})
}

// loop runs the thread. It ends when stop is closed. The remaining runs are then interrupted.
func (t *thread) loop(stop <-chan struct{}) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	t.pin()
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
		t.heaps.pendingCode.store(&t.heaps)
		t.heaps.sweep()
		if !busy && !t.queuedCalls.forgiveDebts() && !t.heaps.resting.collect() {
			t.sleep(stop)
		}
	}
}

// pin records the current OS thread.
func (t *thread) pin() {
	tid := unix.Gettid()
	t.tid.Store(int32(tid))
	t.watch.pin(tid)
}

// handleInbox handles what was posted.
func (t *thread) handleInbox() bool {
	calls, adopted, returned := t.inbox.take(&t.waiting)
	if adopted > 0 {
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
	return len(calls)+adopted+len(returned) > 0
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

// startMore starts attempts while there are slots. Attempts that wait come first, if there may be room for them. They
// start one at a time, since runs under way come first.
func (t *thread) startMore() bool {
	old, begun := len(t.waiting), 0
	asked := t.inbox.asked.Swap(false)
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

// abandon ends a runaway thread that came back. Another thread takes its place, reads its state and reports its
// attempts. Only its isolates are left to free.
func (t *thread) abandon() {
	t.pool.losses.runaways.remove(t.watch)
	<-t.replaced
	t.pool.memory.live.Add(int64(t.heaps.count)) // Pool.replace subtracted them
	t.pool.memory.lost.Add(-t.heaps.counters.charged.Load())
	t.heaps.dropAll()
	t.closeInbox()
	t.watch.slot.Free()
	t.pool.losses.back.Add(1)
	runtime.Goexit()
}

// closeInbox is the last thing that a thread does. Turns that come back later free their isolates themselves.
func (t *thread) closeInbox() {
	for _, x := range t.inbox.close() {
		x.run.context.isolate.free(t.pool)
	}
}

// flush reports what happened since the last flush.
func (t *thread) flush() {
	for _, w := range t.heaps.closed {
		t.out.reports = append(t.out.reports, lifecycle.Report{Closed: w})
	}
	clear(t.heaps.closed)
	t.heaps.closed = t.heaps.closed[:0]
	if len(t.out.reports) == 0 {
		return
	}
	t.pool.source.Report(t.index, t.out.reports)
	clear(t.out.reports)
	t.out.reports = t.out.reports[:0]
	t.out.flushed = t.began
}

// sleep waits for a wake-up or the next timer.
func (t *thread) sleep(stop <-chan struct{}) {
	t.pool.dog.asleep()
	defer t.pool.dog.awake()
	at := t.timers.Next()
	if at.IsZero() {
		select {
		case <-stop:
		case <-t.inbox.wake:
		}
		return
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-stop:
	case <-t.inbox.wake:
	case <-timer.C:
	}
}

// close interrupts the remaining runs and frees all isolates.
func (t *thread) close() {
	t.heaps.resting.stop()
	t.interruptAll()
	for _, a := range append(t.waiting, t.inbox.refuse()...) {
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

const (
	// threadNice is the priority of pinned threads when there are no background threads. When handlers keep all
	// processors busy, the goroutines that fetch, park and settle events run first. They need little CPU time, and
	// would otherwise wait for a time slice at each step.
	threadNice = 5
	// backgroundNice is the priority of background threads. They get a tenth of what others get on the same processor.
	// Pinned threads then have the same priority as everything else. A lower priority would be dangerous: a preempted
	// thread that holds a lock must continue.
	backgroundNice = 10
	// backgroundSlice is how long the system lets a background thread run if no other thread wakes. It is longer than
	// the slice of all other threads, so they do not wait for its end (Linux 6.12 and later; before that it makes no
	// difference).
	backgroundSlice = 20 * time.Millisecond
)

// setPriority sets the priority of the calling thread. If the system refuses, it stays as it is.
func (t *thread) setPriority() {
	cfg := &t.pool.cfg
	if cfg.Background == 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), threadNice)
	}
	if t.index < cfg.Threads {
		return
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), backgroundNice)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: backgroundNice, Runtime: uint64(backgroundSlice),
	}, 0)
}

// maxIsolatesOf returns how many isolates a thread may have. Background threads have few owners, and together an eighth
// of all isolates.
func (c Config) maxIsolatesOf(index int) int {
	all, background := c.MaxIsolates-c.prewarmed(), 0
	if c.Background > 0 {
		background = max(1, all/(8*c.Background))
	}
	if index >= c.Threads {
		return background
	}
	rest := all - c.Background*background
	n := rest / c.Threads
	if index < rest%c.Threads {
		n++
	}
	return max(1, n)
}
