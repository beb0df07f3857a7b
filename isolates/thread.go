package isolates

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// thread is a pinned thread. All fields but the named ones are its own goroutine's only.
type thread struct {
	index    int
	pool     *Pool
	wake     chan struct{} // capacity 1; any goroutine may send
	watch    *watch        // shared with the watchdog, by its own lock; which replaces it when a turn goes away
	tid      atomic.Int32  // of the system's thread; 0 before it has started
	lost     atomic.Bool   // parked in V8: replaced by another, its state is the watchdog's now
	replaced chan struct{} // closed when the other has taken its place

	maxIsolates int
	isolates    map[string][]*isolate // by owner
	count       int                   // of isolates
	lives       map[release]*guest    // persistent contexts that take events
	bodies      []*run                // whose replies have begun in this turn
	touched     []*guest              // persistent contexts to be tended
	lent        []*isolate            // shared isolates that may be given back
	spent       []*isolate            // isolates of mode oneshot that are to be closed
	beginning   *run                  // the run that is being begun
	farewells   bool                  // onTerminate runs of what has to go at once
	freed       bool                  // there may be room for what waits
	grown       bool                  // a heap was found larger
	running     map[*run]struct{}
	waiting     []*events.Attempt // taken, but no isolate is free for them
	alarms      alarms
	lastID      uint64
	call        v8x.Call
	kept        v8x.Kept // names and values of replies' headers
	reports     []events.Report
	began       time.Time     // when the latest run began, which is about now
	flushed     time.Time     // the same, at the latest flush
	tally       tally         // anybody may read it
	aside       time.Duration // CPU time that the commands of the turn took outside of V8, where that was looked at
	turned      time.Duration // CPU time of all turns
	chores      chores        // what runs are to be told
	pending     pending       // what follows the turn under way, if that goes away
	parted      int           // turns that are away
	collecting  time.Duration // CPU time for garbage that was collected to begin the run
	unkept      []*guest      // whose code is to be kept

	mu   sync.Mutex
	done []chore // results of calls, to be taken up by the thread; without a run: what the thread itself is to do

	adopted []*events.Attempt // from other threads, of persistent workers at home here
	gone    bool              // adopts no more
}

// flushAfter is how long reports may be gathered.
const flushAfter = 500 * time.Microsecond

func newThread(p *Pool, index int) *thread {
	return &thread{
		index: index, pool: p, wake: make(chan struct{}, 1), watch: &watch{}, replaced: make(chan struct{}),
		maxIsolates: p.cfg.maxIsolatesOf(index),
		isolates:    map[string][]*isolate{}, running: map[*run]struct{}{}, lives: map[release]*guest{},
	}
}

// post hands the thread something to do, from any goroutine.
func (t *thread) post(f func(*thread)) {
	t.put(chore{do: f})
}

func (t *thread) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// loop is the thread's life. It ends when stop is closed, with every run that is left interrupted.
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
		busy := t.takeUp()
		busy = t.ring() || busy
		busy = t.doChores() || busy
		busy = t.startMore() || busy
		t.relieve()
		t.tend()
		t.giveBack()
		t.flush()
		t.keepCode()
		t.sweep()
		if !busy && !t.chores.forward() {
			t.sleep(stop)
		}
	}
}

// pin notes which thread of the system this is now.
func (t *thread) pin() {
	tid := unix.Gettid()
	t.tid.Store(int32(tid)) //nolint:gosec // at most 4 million
	t.watch.pin(tid)
}

// takeUp does what was posted.
func (t *thread) takeUp() bool {
	t.mu.Lock()
	done, adopted := t.done, t.adopted
	t.done, t.adopted = nil, nil
	t.waiting = append(t.waiting, adopted...) // with the lock held: Pool.replace looks at both
	t.mu.Unlock()
	if len(adopted) > 0 {
		t.freed = true
	}
	for _, c := range done {
		if c.run != nil {
			t.chores.add(c)
		} else {
			c.do(t)
		}
	}
	return len(done) > 0 || len(adopted) > 0
}

// ring handles the alarms that are due. Timers of JavaScript become chores: limits and the like go before all of them.
func (t *thread) ring() bool {
	if len(t.alarms.list) == 0 {
		return false
	}
	now := time.Now()
	rang := false
	for n := t.alarms.due(now); n != nil; n = t.alarms.due(now) {
		rang = true
		switch {
		case n.act != nil:
			n.act()
		case n.timer == noTimer:
			if c := (chore{run: n.run, do: func(t *thread) { t.timeout(n.run) }}); !c.hold() {
				t.timeout(n.run)
			}
		default:
			t.chores.add(chore{run: n.run, timer: n.timer})
		}
	}
	return rang
}

// startMore starts attempts while there are slots: first those that had to wait, one at a time since what is under way comes
// first, when there may be room for them.
func (t *thread) startMore() bool {
	old, begun := len(t.waiting), 0
	if t.freed && old > 0 {
		t.freed = false
		begun += t.beginWaiting(0, old, 1)
	}
	most := t.pool.cfg.Slots - len(t.running) - len(t.waiting)
	if most > 0 {
		// An attempt is in waiting until it is in running: Pool.replace gives back both.
		from := len(t.waiting)
		t.waiting = append(t.waiting, t.pool.source.Next(t.index, most)...)
		begun += t.beginWaiting(from, len(t.waiting), most)
	}
	if len(t.waiting) > 0 {
		t.pool.hungry.Or(1 << t.index)
	}
	return begun > 0
}

// beginWaiting tries those from index i to j that wait, and begins at most that many.
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
		// Others that wait may find room, too.
		t.freed = t.freed || i < j
		// Replies that are ready do not wait for a slow event behind them in the batch.
		if len(t.reports) > 0 && t.began.Sub(t.flushed) > flushAfter {
			t.flush()
		}
	}
	return begun
}

// abandon ends a thread that strayed and came back: another takes its place, which reads the state of this one and reports its attempts.
// What is left then is to free its isolates.
func (t *thread) abandon() {
	t.pool.strays.remove(t.watch)
	<-t.replaced
	t.pool.live.Add(int64(t.count)) // Pool.replace took them off
	t.pool.lost.Add(-t.tally.heap.Load())
	t.dropAll()
	t.pool.back.Add(1)
	runtime.Goexit()
}

func (t *thread) dropAll() {
	for owner := range t.isolates {
		for len(t.isolates[owner]) > 0 {
			t.dropIsolate(t.isolates[owner][0])
		}
	}
}

// flush reports what happened since the last flush.
func (t *thread) flush() {
	if len(t.reports) == 0 {
		return
	}
	t.pool.source.Report(t.index, t.reports)
	clear(t.reports)
	t.reports = t.reports[:0]
	t.flushed = t.began
}

// sleep waits for a wake-up or the next alarm.
func (t *thread) sleep(stop <-chan struct{}) {
	t.pool.dog.asleep()
	defer t.pool.dog.awake()
	at := t.alarms.next()
	if at.IsZero() {
		select {
		case <-stop:
		case <-t.wake:
		}
		return
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-stop:
	case <-t.wake:
	case <-timer.C:
	}
}

// close interrupts what is left and frees all isolates.
func (t *thread) close() {
	t.interruptAll()
	for _, a := range append(t.waiting, t.goAway()...) {
		t.reports = append(t.reports, events.Report{Attempt: a, End: &events.End{Interrupted: true}})
	}
	t.waiting = nil
	t.flush()
	t.awaitAway()
	t.interruptAll()
	t.flush()
	for _, g := range t.lives {
		t.farewell(g.isolate)
	}
	t.giveBack()
	t.dropAll()
}

// interruptAll ends all runs but those that nobody may touch now.
func (t *thread) interruptAll() {
	for r := range t.running {
		if r.guest == nil || !r.guest.isolate.away {
			t.end(r, events.End{Interrupted: true})
		}
	}
}
