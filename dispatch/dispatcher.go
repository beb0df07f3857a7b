package dispatch

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Settler carries out the decisions about events. Its methods are called from many goroutines, without the dispatcher's
// lock, so they may call Submit. They must not block on the network.
type Settler interface {
	// Settle carries out what was decided. The Settler may keep the slice.
	Settle(batch []lifecycle.Settlement)
	// Room reports that an owner with parked events has room for n of them now. It replaces earlier reports. It may be
	// called before the Settle that parks is carried out.
	Room(owner string, n int)
}

// Threads are the threads of all pools, by the numbers of ThreadOf.
type Threads interface {
	// Wake makes a thread whose last Next returned nothing call Next soon. A Wake before the
	// thread sleeps must not be lost. The process of the thread's pool may have to be started for it. It must not block,
	// and must not call the dispatcher.
	Wake(thread int)
	// CloseContexts makes a thread close its contexts of that version of a worker, soon and only where nothing runs. The
	// thread then reports Closed. It must not block, and must not call the dispatcher.
	CloseContexts(thread int, w *workers.Worker)
	// Cancel ends the run of an event, if a thread of any pool has one that is of this event only: its handler gets a
	// signal, and a moment to end by itself. The run then ends with events.ReasonCancelled, unless it has replied. It must
	// not block, and must not call the dispatcher.
	Cancel(e *lifecycle.Delivery)
}

// Dispatcher pairs events with workers and threads. See the package comment. All methods may be called
// from any goroutine, and none blocks.
type Dispatcher struct {
	log zerolog.Logger

	observed observed
	settler  Settler
	threads  Threads
	leases   Leases // nil = no limit is exact

	mu       sync.Mutex
	effects  effects // of locked: they are a field because a variable of it would be allocated for each call
	backlog          // owners, their events and runs
	gatherer gatherer
	placer   // which threads of a pool run the events
	reports  reports
}

// New makes a Dispatcher that has no workers yet. Wire must be called before anything else.
func New(cfg Config, log zerolog.Logger, reg prometheus.Registerer) (*Dispatcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.OrDefault()
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	d := &Dispatcher{
		log:      log,
		observed: observed{cfg.Observers},
		backlog:  newBacklog(cfg),
	}
	d.placer = newPlacer(cfg, &d.backlog)
	d.gatherer.b = &d.backlog
	d.reports = reports{log: log, b: &d.backlog, placer: &d.placer, gatherer: &d.gatherer}
	d.gates.crashes.b, d.gates.crashes.most = &d.backlog, firstSuspects
	if err := reg.Register(collector{d.Figures()}); err != nil {
		return nil, err
	}
	return d, nil
}

// Wire sets what settles events and what runs them. Both know the Dispatcher, so they can only be made after
// it. Call it once, before any other method.
func (d *Dispatcher) Wire(settler Settler, threads Threads) {
	d.settler, d.threads = settler, threads
}

// locked changes the state of d: it calls f with the lock held, then does what follows from any change, and carries out
// the effects without the lock. f must not keep fx.
func (d *Dispatcher) locked(f func(now time.Time, fx *effects)) { d.lockedAt(time.Now(), f) }

// lockedAt is locked at a time that tests choose.
func (d *Dispatcher) lockedAt(now time.Time, f func(now time.Time, fx *effects)) {
	d.mu.Lock()
	f(now, &d.effects)
	d.wakeThreads(now, &d.effects)
	fx := d.effects
	d.effects = effects{}
	d.mu.Unlock()
	d.apply(&fx)
}

// apply carries out the effects. The lock must not be held.
func (d *Dispatcher) apply(fx *effects) {
	d.observed.settled(fx.settle)
	if stored := answerDirect(fx.settle); len(stored) > 0 {
		d.settler.Settle(stored)
	}
	if fx.wake.first.set != 0 {
		fx.wake.each(d.threads.Wake)
	}
	for _, c := range fx.close {
		d.threads.CloseContexts(c.thread, c.worker)
	}
	for _, e := range fx.cancel {
		d.threads.Cancel(e)
	}
	for _, r := range fx.room {
		d.settler.Room(r.owner, r.n)
	}
	for _, c := range fx.leases {
		c.call(d.leases)
	}
}

// Install sets the versions of a worker and how its events are divided among them. It replaces what was installed
// before. Queued events go to the versions that have them from now on.
func (d *Dispatcher) Install(in workers.Installation) {
	d.locked(func(_ time.Time, fx *effects) {
		o := d.owners[in.Owner]
		if o == nil {
			o = &owner{name: in.Owner, routes: make(map[string]*route), home: home{pool: d.pools.poolOf(in.Owner)}}
			d.gates.owners.apply(o)
			o.account.open(o.pool.queues[light].round)
			d.know(o)
		}
		r := o.route(in.Name)
		if r == nil {
			r = &route{owner: o, name: in.Name}
		}
		if o.routes[in.Name] == nil {
			o.routes[in.Name] = r
			delete(o.removed, in.Name)
		}
		r.install(in)
		d.gatherer.regather(o, r, false, fx)
		d.gates.workers.limit(r, fx)
		d.changed(o)
	})
}

// Outcomes returns how the runs of a worker's split have ended here since its rollout began, and the number of that
// rollout. The number is 0 when there is no such worker.
func (d *Dispatcher) Outcomes(ownerName, name string) (rollout int, outcomes workers.Outcomes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.owners[ownerName]
	if o == nil || o.routes[name] == nil {
		return 0, workers.Outcomes{}
	}
	r := o.routes[name]
	return rolloutOf(r.deployment), r.outcomes
}

// Remove removes a worker with all its versions. Attempts that run continue. Queued events fail
// with no-worker when they would start.
func (d *Dispatcher) Remove(ownerName, name string) {
	d.locked(func(_ time.Time, fx *effects) {
		if o := d.owners[ownerName]; o != nil && o.routes[name] != nil {
			delete(d.gates.workers.limited, o.routes[name])
			d.metrics.unlabel(&o.routes[name].done, ownerName)
			d.gatherer.regather(o, o.routes[name], true, fx)
			o.remove(o.routes[name])
			d.changed(o)
			d.forget(o)
		}
	})
}

// Drain stops starting events of the stream. Those in queues and those submitted later go back to the stream at once.
// Attempts that run continue. Direct events, which cannot go back, still run: whoever submits them stops first.
func (d *Dispatcher) Drain() {
	d.locked(func(now time.Time, fx *effects) {
		d.draining = true
		for _, o := range d.owners {
			d.filter(o, func(it item) bool {
				if !it.event.Direct() {
					fx.settle = append(fx.settle, returned(it.event))
				}
				return it.event.Direct()
			}, fx)
		}
		d.gates.crashes.drain(now, fx)
	})
}

// wakeThreads advances the quarantine and wakes as many threads of each pool as its startable events are worth. It
// looks at pools in which something changed. d.mu must be held.
func (d *Dispatcher) wakeThreads(now time.Time, fx *effects) {
	c := &d.gates.crashes
	if !c.idle() {
		c.step(now, fx)
	}
	d.turnWindow(now)
	for _, p := range d.pools.takeDirty() {
		startable, queued := c.startable(p)
		woken := d.placer.wake(p, startable, queued, now)
		fx.wake.add(p.number, woken)
		d.metrics.wakes += uint64(woken.len())
	}
}
