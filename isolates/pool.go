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
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Pool is the pinned threads of a process.
type Pool struct {
	cfg      Config
	source   Source
	host     Host
	checks   bool // it is a Checker's
	stacks   stacks
	fetcher  *fetcher
	offload  *offload
	holdings holdings
	metrics  *metrics
	dog      watchdog
	code     *codeCache
	spares   *spares
	parked   atomic.Int32
	strayed  atomic.Int32 // threads that V8 did not let go in time
	back     atomic.Int32 // of those, threads that came back since and ended
	live     atomic.Int64 // isolates there are
	lost     atomic.Int64 // bytes of heaps on threads that are lost
	homes    homes
	budgets  budgets
	commons  commons
	trimSet  atomic.Bool                              // a trim is due
	policies atomic.Pointer[map[string]events.Policy] // by owner; replaced as a whole
	policyMu sync.Mutex                               // taken to replace them
	hungry   atomic.Uint64                            // threads with attempts that wait for room, a bit each

	threads []atomic.Pointer[thread] // replaced when V8 parks one
	stop    chan struct{}            // closed when the threads shall end
	running sync.WaitGroup
	dogStop chan struct{} // closed when they have: until then the watchdog ends what they run
	dogDone sync.WaitGroup

	patience  time.Duration // closeWithin, but in tests
	holdAfter time.Duration // the constant, but in tests
	onStray   func(*thread) // nil but in tests: it is lost, and not yet replaced
	strays    strays
	away      []awayTurn // the watchdog's
}

// New makes a pool; Open starts it.
func New(cfg Config, source Source, host Host, reg prometheus.Registerer) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.OrDefault()
	p := &Pool{
		cfg: cfg, source: source, host: host, code: newCodeCache(cfg.CodeCacheBytes), spares: newSpares(cfg), fetcher: newFetcher(cfg.AllowAddresses, cfg.AllowHosts),
		dog: watchdog{wake: make(chan struct{}, 1)}, threads: make([]atomic.Pointer[thread], cfg.Threads+cfg.Background), stop: make(chan struct{}), dogStop: make(chan struct{}),
		offload: newOffload(cfg.Threads), patience: closeWithin, holdAfter: holdAfter,
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
	go p.spares.run()
	p.dogDone.Go(func() { p.dog.run(p.dogStop, p.look) })
	return nil
}

func (p *Pool) start(t *thread) {
	p.running.Add(1)
	p.carry(t)
}

// carry has a new goroutine, and so another thread of the system, be t from now on.
func (p *Pool) carry(t *thread) {
	go func() {
		t.loop(p.stop)
		if !t.lost.Load() {
			p.running.Done()
		}
	}()
}

// Wake makes a thread ask its Source for work soon. From any goroutine.
func (p *Pool) Wake(thread int) { p.threads[thread].Load().nudge() }

// Close stops the threads, with what they run reported as interrupted, and frees V8's memory. JavaScript that
// runs now is terminated.
func (p *Pool) Close() {
	close(p.stop)
	waitAtMost(&p.running, p.patience)
	close(p.dogStop)
	waitAtMost(&p.dogDone, p.patience)
	p.commons.close()
	p.spares.close()
	waitAtMost(&p.offload.running, p.patience)
	p.fetcher.close()
	p.code.clear()
}

// closeWithin is how long Close waits for its threads to end. One that V8 has parked keeps the locks that it held, and
// whatever needs them waits for ever: the process is about to end anyway.
const closeWithin = 10 * time.Second

func waitAtMost(g *sync.WaitGroup, d time.Duration) {
	done := make(chan struct{})
	go func() { g.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// mostLost bounds the threads that may be lost where there are many.
const mostLost = 16

// Healthy is nil unless V8 has lost so many threads that the process should be replaced: more than one owner can cost at once, when it has events on
// each and one of them was found out before the others began, or MaxParked if that is more.
func (p *Pool) Healthy() error {
	most := max(p.cfg.MaxParked, min(len(p.threads)+2, mostLost))
	if parked, stray := p.parked.Load(), p.strayed.Load()-p.back.Load(); int(parked+stray) >= most {
		return fmt.Errorf("isolates: V8 has lost %d threads to fatal errors, and %d do not come back from it", parked, stray)
	}
	return nil
}

// look is the watchdog's round.
func (p *Pool) look(now time.Time) {
	parked := v8x.Parked()
	if p.spares.parked(parked) {
		p.parked.Add(1)
	}
	closing := p.closing()
	for i := range p.threads {
		t := p.threads[i].Load()
		if slices.Contains(parked, t.watch.pinned()) && t.lost.CompareAndSwap(false, true) {
			p.parked.Add(1)
			p.replace(t, t.watch.parked())
			continue
		}
		if closing {
			t.watch.kill(stopped)
		}
		t.watch.look(now)
		if why := t.watch.strayed(now, &t.lost); why != nil {
			p.strayed.Add(1)
			p.strays.add(t.watch)
			if p.onStray != nil {
				p.onStray(t)
			}
			p.replace(t, why)
			continue
		}
		p.yield(t, now)
	}
	p.away = slices.DeleteFunc(p.away, func(a awayTurn) bool { return p.lookAway(a, now, parked) })
	p.strays.hold(now, p.holdAfter)
}

// wakeHungry tells the threads whose attempts wait for room that there may be some.
func (p *Pool) wakeHungry() {
	if p.hungry.Load() == 0 {
		return
	}
	set := p.hungry.Swap(0)
	for i := range p.threads {
		if set&(1<<i) != 0 {
			p.threads[i].Load().post(func(t *thread) { t.freed = true })
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

// replace gives up a thread that V8 has parked or does not let go, and puts a new one in its place. The goroutine
// is in V8, so the watchdog may read the thread's state in its stead; when it comes back it waits for this to be over, and ends (abandon).
func (p *Pool) replace(t *thread, guilty *culprit) {
	defer close(t.replaced)
	reports := t.reports
	n := newThread(p, t.index)
	n.tally.inherit(&t.tally)
	p.live.Add(-int64(t.count))
	p.lost.Add(t.tally.heap.Load())
	for r := range maps.Keys(t.running) {
		if r.over {
			continue
		}
		e := events.End{Interrupted: true, Started: r.begun}
		if r == guilty.run && guilty.why.Reason != stopped {
			n.tally.kills.inc(string(guilty.why.Reason))
			e = events.End{Started: true, Failure: guilty.why, Lost: true}
			if r.replied { // the reply stands
				e.Failure = nil
				p.metrics.waitUntilCut.Inc()
			}
			p.tellFailure(r, e.Failure)
		}
		if r.cancel != nil {
			r.cancel()
		}
		reports = append(reports, events.Report{Attempt: r.attempt, End: &e})
	}
	for _, g := range t.lives {
		if cancel := g.life.ground.cancel; cancel != nil {
			cancel()
		}
	}
	for _, a := range append(t.waiting, t.goAway()...) {
		reports = append(reports, events.Report{Attempt: a, End: &events.End{Interrupted: true}})
	}
	p.threads[t.index].Store(n)
	p.source.Report(t.index, reports)
	p.tellLost(guilty)
	p.start(n)
	n.nudge()
	p.running.Done() // t's
}

// tellLost tells the Source whose code a thread is lost to.
func (p *Pool) tellLost(guilty *culprit) {
	r := guilty.run
	switch {
	case r == nil || guilty.why.Reason == stopped:
	case r.ground:
		p.source.Lost(r.attempt.Worker, guilty.turn)
	case r.attempt.Event != nil: // a Checker's is nobody's yet
		p.source.Lost(r.attempt.Worker, r.start)
	}
}

// parkedFailure is what is told of the attempt that made V8 give up a thread.
func parkedFailure() *events.Failure {
	return events.Fail(events.ReasonMemory, "V8 could not go on: a single value was too large")
}
