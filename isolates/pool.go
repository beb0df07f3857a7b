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
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Pool is the pinned threads of a process.
type Pool struct {
	cfg       Config
	source    Source
	host      Host
	checks    bool // the pool belongs to a Checker
	stacks    stacks
	egress    *egress.Client
	offload   *offload.Pool
	holdings  holdings
	metrics   *metrics
	dog       watchdog
	code      *codeCache
	prewarmed *prewarmed
	parked    atomic.Int32
	ranAway   atomic.Int32 // threads whose turn V8 did not end in time: runaways
	back      atomic.Int32 // runaways that have come back and ended
	live      atomic.Int64 // number of isolates
	lost      atomic.Int64 // bytes charged for isolates that were lost with their threads
	affinity  affinity
	budgets   budgets
	shared    sharedPool
	trimSet   atomic.Bool // a trim is due
	policies  policies
	charges   charges
	hungry    atomic.Uint64 // threads with attempts that wait for room, a bit each

	threads []atomic.Pointer[thread] // replaced when V8 parks one
	stop    chan struct{}            // closed when the threads must end
	running sync.WaitGroup
	dogStop chan struct{} // closed when the threads have ended: until then the watchdog ends what they run
	dogDone sync.WaitGroup

	patience      time.Duration // closeWithin, except in tests
	throttleAfter time.Duration // the constant throttleAfter, except in tests
	lostAfter     time.Duration // the constant lostAfter, except in tests
	loadWall      time.Duration // the constant loadWall, except in tests
	loadCPU       time.Duration // the constant loadCPU, except in tests
	onRunaway     func(*thread) // nil except in tests: called when a thread is lost and not yet replaced
	runaways      runaways
	rests         rests
	away          awayTurns // owned by the watchdog
}

// New makes a pool; Open starts it.
func New(cfg Config, source Source, host Host, reg prometheus.Registerer) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.OrDefault()
	p := &Pool{
		cfg: cfg, source: source, host: host, code: newCodeCache(cfg.CodeCacheBytes), prewarmed: newPrewarmed(cfg),
		egress: egress.New(cfg.AllowAddresses, cfg.AllowHosts),
		dog:    newWatchdog(cfg.Threads), threads: make([]atomic.Pointer[thread], cfg.Threads+cfg.Background),
		stop: make(chan struct{}), dogStop: make(chan struct{}),
		offload: offload.NewPool(cfg.Threads), patience: closeWithin, throttleAfter: throttleAfter, lostAfter: lostAfter,
		loadWall: loadWall,
		loadCPU:  loadCPU,
		charges:  chargesFor(cfg.HeapMB), away: awayTurns{most: max(leastAway, 4*cfg.Threads)},
		budgets: budgets{share: betweenShare}, runaways: runaways{nice: runawayNice},
		rests: rests{collect: collectAfter, flush: flushCodeAfter},
	}
	for i := range p.threads {
		p.threads[i].Store(newThread(p, i))
	}
	var err error
	if p.metrics, err = newMetrics(reg, p); err != nil {
		return nil, fmt.Errorf("isolates: %w", err)
	}
	return p, nil
}

// Open starts V8 and the threads.
func (p *Pool) Open() error {
	if err := startRuntime(); err != nil {
		return err
	}
	for i := range p.threads {
		p.start(p.threads[i].Load())
	}
	go p.prewarmed.run()
	p.dogDone.Go(func() { p.dog.run(p.dogStop, p.look) })
	return nil
}

func (p *Pool) start(t *thread) {
	p.running.Add(1)
	p.carry(t)
}

// carry lets a new goroutine, and so another OS thread, run as t from now on.
func (p *Pool) carry(t *thread) {
	go func() {
		t.loop(p.stop)
		if !t.lost.Load() {
			p.running.Done()
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
	close(p.stop)
	waitAtMost(p.running.Wait, p.patience)
	close(p.dogStop)
	waitAtMost(p.dogDone.Wait, p.patience)
	p.shared.close()
	p.prewarmed.close()
	waitAtMost(p.offload.Wait, p.patience)
	p.egress.Close()
	p.code.clear()
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
	if parked, runaways := p.parked.Load(), p.ranAway.Load()-p.back.Load(); int(parked+runaways) >= most {
		return fmt.Errorf("isolates: V8 has lost %d threads to fatal errors, and %d do not come back from it", parked, runaways)
	}
	return nil
}

// look is one round of the watchdog.
func (p *Pool) look(now time.Time) {
	parked := v8x.Parked()
	if p.prewarmed.parked(parked) {
		p.parked.Add(1)
	}
	closing := p.closing()
	for i := range p.threads {
		t := p.threads[i].Load()
		if slices.Contains(parked, t.watch.pinned()) && t.lost.CompareAndSwap(false, true) {
			guilty := t.watch.parked()
			p.parked.Add(1)
			p.reportLost(guilty)
			p.replace(t, guilty)
			continue
		}
		if closing {
			t.watch.kill(stopped)
		}
		t.watch.look(now)
		switch t.watch.stays(now, p.lostAfter) {
		case staysForGood:
			if lose(p, t) {
				continue
			}
		case overstays:
			if overstay(p, t) {
				continue
			}
		}
		p.yield(t, now)
	}
	p.away.list = slices.DeleteFunc(p.away.list, func(a awayTurn) bool { return p.lookAway(a, now, parked) })
	decide(p)
	p.runaways.throttle(now, p.throttleAfter)
}

// lose replaces a thread whose turn stays for good. It returns false when the turn has just ended. Watchdog only.
func lose(p *Pool, t *thread) bool {
	guilty := t.watch.giveUp(&t.lost)
	if guilty == nil {
		return false
	}
	p.ranAway.Add(1)
	p.runaways.add(t.watch, nil)
	if p.onRunaway != nil {
		p.onRunaway(t)
	}
	p.reportLost(guilty) // first: who gets the reply may send the next event at once
	p.replace(t, guilty)
	return true
}

// wakeHungry notifies the threads whose attempts wait for room.
func (p *Pool) wakeHungry() {
	if p.hungry.Load() == 0 {
		return
	}
	set := p.hungry.Swap(0)
	for i := range p.threads {
		if set&(1<<i) != 0 {
			p.threads[i].Load().post(func(t *thread) { t.heaps.freed = true })
		}
	}
}

func (p *Pool) closing() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// replace gives up a parked or runaway thread, and puts a new one in its place. The goroutine of t is in V8, so the
// watchdog may read the state of t. When that goroutine comes back, it waits until replace is done, and ends (abandon).
func (p *Pool) replace(t *thread, guilty *culprit) {
	defer close(t.replaced)
	reports := t.reports
	n := newThread(p, t.index)
	n.heaps.counters.inherit(&t.heaps.counters)
	p.live.Add(-int64(t.heaps.count))
	p.lost.Add(t.heaps.counters.charged.Load())
	for r := range maps.Keys(t.running) {
		if r.over {
			continue
		}
		e := lifecycle.End{Interrupted: true, Started: r.begun}
		if r == guilty.run && guilty.why.Reason != stopped {
			n.heaps.counters.kills.inc(string(guilty.why.Reason))
			e = lifecycle.End{Started: true, Failure: guilty.why, Lost: true}
			if r.replied { // the reply stands
				e.Failure, r.failure = nil, guilty.why
				if !r.body.waits() {
					p.metrics.waitUntilCut.Inc()
				}
			}
			r.logFailure(p.host, "failed", e.Failure)
		}
		if r.body.waits() {
			r.endBody(p, e)
			e.Broken = r.broken
		}
		if r.cancel != nil {
			r.cancel()
		}
		reports = append(reports, lifecycle.Report{Attempt: r.attempt, End: &e})
	}
	p.holdings.forgetThread(t)
	for _, jc := range t.persistents.of {
		if cancel := jc.life.betweenEvents.cancel; cancel != nil {
			cancel()
		}
	}
	for _, a := range append(t.waiting, t.inbox.refuse()...) {
		reports = append(reports, lifecycle.Report{Attempt: a, End: &lifecycle.End{Interrupted: true}})
	}
	p.threads[t.index].Store(n)
	p.source.Report(t.index, reports)
	p.start(n)
	n.inbox.nudge()
	p.running.Done() // t's
}

// reportLost reports to the Source which worker's code cost a thread.
func (p *Pool) reportLost(guilty *culprit) {
	r := guilty.run
	switch {
	case r == nil || guilty.why.Reason == stopped:
	case r.betweenEvents:
		p.source.Lost(r.attempt.Worker, guilty.turn)
	case r.attempt.Event != nil: // a Checker has no owner yet
		p.source.Lost(r.attempt.Worker, r.start)
	}
}

// parkedFailure is the failure of the attempt that made V8 give up a thread.
func parkedFailure() *events.Failure {
	return events.Fail(events.ReasonMemory, "V8 could not go on: a single value was too large")
}
