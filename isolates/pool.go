package isolates

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/codecache"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/owners"
	"github.com/pinwheel-run/pinwheel/isolates/prewarm"
	"github.com/pinwheel-run/pinwheel/isolates/stacks"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Pool is the pinned threads of a process.
type Pool struct {
	cfg            Config
	source         Source
	host           Host
	checks         bool // the pool belongs to a Checker
	stacks         stacks.Maps
	calls          hostcalls.Process
	holdings       holdings
	metrics        *metrics
	dog            watchdog
	code           *codecache.Cache
	prewarmed      *prewarm.Set
	affinity       affinity
	budgets        owners.Budgets
	memory         poolMemory
	shared         sharedPool
	policies       owners.Policies
	waitingThreads atomic.Uint64 // threads with attempts that wait for room, a bit each

	threads []atomic.Pointer[thread] // replaced when V8 parks one

	load   loadLimits
	losses losses
	end    poolEnd
	rests  rests
	away   awayTurns // owned by the watchdog
}

// poolMemory is what the isolates of all threads take.
type poolMemory struct {
	live    atomic.Int64 // number of isolates
	lost    atomic.Int64 // bytes charged for isolates that were lost with their threads
	charges charges
	trimSet atomic.Bool // a trim is due
}

// loadLimits are the limits of a module's evaluation.
type loadLimits struct {
	wall time.Duration // the constant loadWall, except in tests
	cpu  time.Duration // the constant loadCPU, except in tests
}

// poolEnd is how a pool ends: first its threads, then the watchdog, which until then ends what they run.
type poolEnd struct {
	stop     chan struct{} // closed when the threads must end
	threads  sync.WaitGroup
	stopDog  chan struct{} // closed when the threads have ended
	dog      sync.WaitGroup
	patience time.Duration // closeWithin, except in tests
}

// New makes a pool; Open starts it.
func New(cfg Config, source Source, host Host, reg prometheus.Registerer) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.OrDefault()
	p := &Pool{
		cfg: cfg, source: source, host: host, code: codecache.New(cfg.CodeCacheBytes),
		prewarmed: prewarm.New(cfg.prewarmed()),
		dog:       newWatchdog(cfg.Threads), threads: make([]atomic.Pointer[thread], cfg.Threads+cfg.Background),
		end:    poolEnd{stop: make(chan struct{}), stopDog: make(chan struct{}), patience: closeWithin},
		load:   loadLimits{loadWall, loadCPU},
		losses: losses{lostAfter: lostAfter, runaways: runaways{nice: runawayNice, throttleAfter: throttleAfter}},
		memory: poolMemory{charges: chargesFor(cfg.HeapMB)}, away: awayTurns{most: max(leastAway, 4*cfg.Threads)},
		budgets: owners.Budgets{Share: owners.BetweenShare},
		rests:   rests{collect: collectAfter, flush: flushCodeAfter},
	}
	for i := range p.threads {
		p.threads[i].Store(newThread(p, i))
	}
	var err error
	if p.metrics, err = newMetrics(reg, p); err != nil {
		return nil, fmt.Errorf("isolates: %w", err)
	}
	p.calls = hostcalls.Process{
		Host: host, Egress: egress.New(cfg.AllowAddresses, cfg.AllowHosts), Offload: offload.NewPool(cfg.Threads),
		Files: cfg.Files, Services: cfg.Services,
		Piped: p.metrics.piped, Offloaded: p.metrics.offloaded, OffloadCPU: p.metrics.offloadCPU,
	}
	return p, nil
}

// Open starts V8 and the threads.
func (p *Pool) Open() error {
	if err := js.Start(); err != nil {
		return err
	}
	for i := range p.threads {
		p.start(p.threads[i].Load())
	}
	go p.prewarmed.Run()
	p.end.dog.Go(func() { p.dog.run(p.end.stopDog, p.look) })
	return nil
}

func (p *Pool) start(t *thread) {
	p.end.threads.Add(1)
	p.startThread(t)
}

// startThread lets a new goroutine, and so another OS thread, run as t from now on.
func (p *Pool) startThread(t *thread) {
	go func() {
		t.loop(p.end.stop)
		if !t.lost.Load() {
			p.end.threads.Done()
		}
	}()
}

// Wake makes a thread ask its Source for work soon. Any goroutine may call it.
func (p *Pool) Wake(thread int) {
	t := p.threads[thread].Load()
	t.inbox.asked.Store(true)
	t.inbox.nudge()
}

// Close stops the threads and frees V8's memory. JavaScript that runs now is terminated. Unfinished runs are reported
// as interrupted.
func (p *Pool) Close() {
	close(p.end.stop)
	waitAtMost(p.end.threads.Wait, p.end.patience)
	close(p.end.stopDog)
	waitAtMost(p.end.dog.Wait, p.end.patience)
	p.shared.close()
	p.prewarmed.Close()
	waitAtMost(p.calls.Offload.Wait, p.end.patience)
	p.calls.Egress.Close()
	p.code.Clear()
}

// closeWithin is how long Close waits for its threads to end. A thread that V8 has parked keeps its locks, and
// everything that needs them waits forever. The process is about to end anyway.
const closeWithin = 10 * time.Second

func waitAtMost(wait func(), d time.Duration) {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// mostLost bounds the number of lost threads that one owner is assumed to cause, for processes with many threads.
const mostLost = 16

// Healthy returns an error when V8 has lost so many threads that the process should be replaced. That is more threads
// than one owner can cost at once: an owner with events on each thread, of which one was found out before the others
// began. It is MaxParked if that is more.
func (p *Pool) Healthy() error {
	most := max(p.cfg.MaxParked, min(len(p.threads)+2, mostLost))
	x := &p.losses
	if parked, runaways := x.parked.Load(), x.ranAway.Load()-x.back.Load(); int(parked+runaways) >= most {
		return fmt.Errorf("isolates: V8 has lost %d threads to fatal errors, and %d do not come back from it", parked, runaways)
	}
	return nil
}

// look is one round of the watchdog.
func (p *Pool) look(now time.Time) {
	parked := v8x.Parked()
	if p.prewarmed.Parked(parked) {
		p.losses.parked.Add(1)
	}
	closing := p.closing()
	for i := range p.threads {
		t := p.threads[i].Load()
		if slices.Contains(parked, t.watch.pinned()) && t.lost.CompareAndSwap(false, true) {
			cause := t.watch.parked()
			p.losses.parked.Add(1)
			p.reportLost(cause)
			p.replace(t, cause)
			continue
		}
		if closing {
			t.watch.kill(stopped)
		}
		t.watch.check(now)
		switch t.watch.stay(now, p.losses.lostAfter) {
		case stayForever:
			if replaceLost(p, t) {
				continue
			}
		case stayLong:
			if overstay(p, t) {
				continue
			}
		}
		p.yield(t, now)
	}
	p.away.list = slices.DeleteFunc(p.away.list, func(a awayTurn) bool { return p.checkAway(a, now, parked) })
	decideRunaways(p)
	p.losses.runaways.throttle(now)
}

// replaceLost replaces a thread whose turn stays in V8 forever. It returns false when the turn has just ended. Watchdog
// only.
func replaceLost(p *Pool, t *thread) bool {
	cause := t.watch.giveUp(&t.lost)
	if cause == nil {
		return false
	}
	p.losses.ranAway.Add(1)
	p.losses.runaways.add(t.watch, nil)
	if p.losses.onRunaway != nil {
		p.losses.onRunaway(t)
	}
	p.reportLost(cause) // first: the client that gets the reply may send the next event at once
	p.replace(t, cause)
	return true
}

// wakeWaiting notifies the threads whose attempts wait for room.
func (p *Pool) wakeWaiting() {
	if p.waitingThreads.Load() == 0 {
		return
	}
	set := p.waitingThreads.Swap(0)
	for i := range p.threads {
		if set&(1<<i) != 0 {
			p.threads[i].Load().post(func(t *thread) { t.heaps.freed = true })
		}
	}
}

func (p *Pool) closing() bool {
	select {
	case <-p.end.stop:
		return true
	default:
		return false
	}
}

// replace gives up a parked or runaway thread, and puts a new one in its place. The goroutine of t is in V8, so the
// watchdog may read the state of t. When that goroutine comes back, it waits until replace is done, and ends (abandon).
func (p *Pool) replace(t *thread, cause *lossCause) {
	defer close(t.replaced)
	reports := t.out.reports
	n := newThread(p, t.index)
	n.heaps.counters.inherit(&t.heaps.counters)
	p.memory.live.Add(-int64(t.heaps.count))
	p.memory.lost.Add(t.heaps.counters.charged.Load())
	for r := range maps.Keys(t.running) {
		if r.over {
			continue
		}
		e := lifecycle.End{Interrupted: true, Started: r.begun}
		if r == cause.run && cause.why.Reason != stopped {
			n.heaps.counters.kills.inc(string(cause.why.Reason))
			e = lifecycle.End{Started: true, Failure: cause.why, Lost: true}
			if r.replied { // the reply stands
				e.Failure, r.failure = nil, cause.why
				if !r.body.waits() {
					p.metrics.waitUntilCut.Inc()
				}
			}
			r.logFailure(p.host, "failed", e.Failure)
		}
		if r.body.waits() {
			r.endBody(p, e)
			e.Broken = r.end.Broken
		}
		r.calls.Cancel()
		reports = append(reports, lifecycle.Report{Attempt: r.attempt, End: &e})
	}
	p.holdings.forgetThread(t)
	for _, jc := range t.persistents.of {
		jc.life.betweenEvents.calls.Cancel()
	}
	for _, a := range append(t.waiting, t.inbox.refuse()...) {
		reports = append(reports, lifecycle.Report{Attempt: a, End: &lifecycle.End{Interrupted: true}})
	}
	p.threads[t.index].Store(n)
	p.source.Report(t.index, reports)
	p.start(n)
	n.inbox.nudge()
	p.end.threads.Done() // t's
}

// reportLost reports to the Source which worker's code cost a thread.
func (p *Pool) reportLost(cause *lossCause) {
	r := cause.run
	switch {
	case r == nil || cause.why.Reason == stopped:
	case r.betweenEvents:
		p.source.Lost(r.attempt.Worker, cause.turn)
	case r.attempt.Event != nil: // a Checker has no owner yet
		p.source.Lost(r.attempt.Worker, r.start)
	}
}

// parkedFailure is the failure of the attempt that made V8 give up a thread.
func parkedFailure() *events.Failure {
	return events.Fail(events.ReasonMemory, "V8 could not go on: a single value was too large")
}
