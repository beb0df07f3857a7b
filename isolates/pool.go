package isolates

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/codecache"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/owners"
)

// New makes a pool; Open starts it. Who wants its metrics registers a Collector.
func New(cfg Config, source Source, host Host) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.OrDefault()
	p := &Pool{
		source: source, host: host, code: codecache.New(cfg.CodeCacheBytes),
		dog: newWatchdog(cfg.Threads), threads: make([]atomic.Pointer[thread], cfg.Threads+cfg.Background),
		end:     poolEnd{stop: make(chan struct{}), stopDog: make(chan struct{}), patience: closeWithin},
		load:    loadLimits{loadWall, loadCPU},
		losses:  losses{lostAfter: lostAfter, runaways: runaways{nice: runawayNice, throttleAfter: throttleAfter}},
		away:    awayTurns{most: max(leastAway, 4*cfg.Threads)},
		budgets: owners.Budgets{Share: owners.BetweenShare},
		rests:   rests{collect: collectAfter, flush: flushCodeAfter},
	}
	p.open(cfg, func(i int) {
		p.threads[i].Load().post(func(t *thread) { t.heaps.freed = true })
	})
	for i := range p.threads {
		p.put(newThread(p, i))
	}
	p.calls = hostcalls.Process{
		Host: host, Egress: egress.New(cfg.AllowAddresses, cfg.AllowHosts), Offload: offload.NewPool(cfg.Threads),
		Files: cfg.Files, Services: cfg.Services,
		Piped: &p.done.piped, Offloaded: &p.done.offloaded, OffloadCPU: &p.done.offloadCPU,
	}
	p.calls.Egress.Dial, p.calls.Egress.Lookup, p.calls.Egress.Refuse = cfg.Dial, cfg.Lookup, cfg.RefuseAddress
	p.calls.Egress.Trust(cfg.RootCAs)
	return p, nil
}

// Open starts V8 and the threads.
func (p *Pool) Open() error {
	if err := p.cfg.startV8(); err != nil {
		return err
	}
	for i := range p.threads {
		p.start(p.threads[i].Load())
	}
	go p.prewarmed.Run()
	p.end.dog.Go(func() { p.dog.run(p.end.stopDog, p.look) })
	return nil
}

// Wake makes a thread ask its Source for work soon. Any goroutine may call it.
func (p *Pool) Wake(thread int) {
	t := p.threads[thread].Load()
	t.inbox.Asked.Store(true)
	t.inbox.Signal()
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
