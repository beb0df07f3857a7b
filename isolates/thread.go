package isolates

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/affinity"
	"github.com/pinwheel-run/pinwheel/isolates/codecache"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/owners"
	"github.com/pinwheel-run/pinwheel/isolates/timers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// thread is a pinned thread. Only its own goroutine uses its fields, except those whose comment says otherwise. When a
// turn goes away, another goroutine becomes the thread's own; when the thread is lost, the watchdog owns all of it.
//
// An attempt is in waiting until it has a context, and in running from then to its end. So Pool.replace can give back
// everything that the thread was lent. Reports are in out.reports, in the order in which things happened, until flush.
// running has callers runs that take no slot; awayTurns of its runs are on other OS threads.
type thread struct {
	index int
	pool  *Pool
	inbox threadInbox // any goroutine may put something into it
	// The watchdog shares watch, which has its own lock. The watchdog replaces it when a turn goes away.
	watch    *watch
	tid      atomic.Int32  // of the OS thread; 0 before it has started
	lost     atomic.Bool   // parked in V8 and replaced: the watchdog owns its state now
	replaced chan struct{} // closed when the new thread has taken its place

	out         outbox
	heaps       heaps
	persistents persistents
	placer      placer // of attempts in heaps and persistents

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

// outbox is what a thread has not reported yet. The head of a body in bodies is in no report yet: startBodies puts it
// there after the turn, when it is known whether the body is complete.
type outbox struct {
	reports []lifecycle.Report
	flushed time.Time // when the thread last reported, as its field began had it
	bodies  []*run    // runs whose replies have begun in this turn
}

// flushAfter is how long reports may be collected before a flush.
const flushAfter = 500 * time.Microsecond

func newThread(p *Pool, index int) *thread {
	t := &thread{
		index: index, pool: p, inbox: threadInbox{Wake: make(chan struct{}, 1)}, watch: newWatch(p.cfg.Note),
		replaced: make(chan struct{}), running: map[*run]struct{}{},
	}
	t.heaps.prepare(&p.poolHeaps, index, t, t.persistents.endBetween)
	t.persistents = persistents{
		heaps: &t.heaps, runs: t, affinity: &p.affinity, inbox: &t.inbox, timers: &t.timers, queuedCalls: &t.queuedCalls,
		of: map[affinity.Release]*jsContext{},
	}
	t.placer = placer{
		heaps: &t.heaps, persistents: &t.persistents, pendingCode: pendingCode{cache: p.code},
		resting: resting{heaps: &t.heaps, rests: &p.rests, wake: t.inbox.Signal},
	}
	return t
}

// hasWaiting reports whether attempts wait for room.
func (t *thread) hasWaiting() bool { return len(t.waiting) > 0 }

// post gives the thread something to do. Any goroutine may call it.
func (t *thread) post(f func(*thread)) {
	t.put(queuedCall{do: func() { f(t) }})
}

// closeInbox is the last thing that a thread does. Turns that come back later free their isolates themselves.
func (t *thread) closeInbox() {
	for _, x := range t.inbox.Close() {
		t.pool.free(x.run.context.isolate)
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

// Later gives the thread a queued call of the run. Queued calls of other owners may come first. Any goroutine may call
// it.
func (r *run) Later(f func()) { r.thread.put(queuedCall{run: r, do: f}) }

func (t *thread) put(c queuedCall) {
	t.inbox.Put(c)
	if t.lost.Load() { // it does no more calls, and Pool.replace may not have seen this one
		t.pool.forgetCalls(c)
	}
}

// pending is a turn that comes after the one under way.
type pending struct {
	run        *run
	call, body []byte
}

// Pool is the pinned threads of a process. It outlives its threads: a thread that V8 parks is replaced in threads.
type Pool struct {
	poolHeaps
	source   Source
	host     Host
	calls    hostcalls.Process
	done     done
	dog      watchdog
	code     *codecache.Cache
	affinity affinity.Threads[*persistents] // of persistent contexts
	budgets  owners.Budgets
	rests    rests

	threads []atomic.Pointer[thread] // replaced when V8 parks one

	load   loadLimits
	losses losses
	end    poolEnd
	away   awayTurns // owned by the watchdog
}

// put makes t the thread of its number.
func (p *Pool) put(t *thread) {
	p.threads[t.index].Store(t)
	p.counters[t.index].Store(&t.heaps.counters)
}

// loadLimits are the limits of a module's evaluation.
type loadLimits struct {
	wall time.Duration // the constant loadWall, except in tests
	cpu  time.Duration // the constant loadCPU, except in tests
}

func (p *Pool) closing() bool {
	select {
	case <-p.end.stop:
		return true
	default:
		return false
	}
}

// poolEnd is how a pool ends: first its threads, then the watchdog, which until then ends what they run.
type poolEnd struct {
	stop     chan struct{} // closed when the threads must end
	threads  sync.WaitGroup
	stopDog  chan struct{} // closed when the threads have ended
	dog      sync.WaitGroup
	patience time.Duration // closeWithin, except in tests
}

const (
	// threadNice is how much lower the priority of pinned threads is without background threads. When handlers keep
	// all processors busy, the goroutines that fetch, park and settle events run first. They need little CPU time, and
	// would otherwise wait for a time slice at each step.
	threadNice = 5
	// backgroundNice is how much lower the priority of background threads is. They get a tenth of what others get on
	// the same processor. Pinned threads then have the same priority as everything else. A lower priority would be
	// dangerous: a preempted thread that holds a lock must continue.
	backgroundNice = 10
	// backgroundSlice is how long the system lets a background thread run if no other thread wakes. It is longer than
	// the slice of all other threads, so they do not wait for its end (Linux 6.12 and later; before that it makes no
	// difference).
	backgroundSlice = 20 * time.Millisecond
)
