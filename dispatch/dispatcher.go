package dispatch

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
)

// Settler carries out what was decided about events.
type Settler interface {
	// Settle must not block on the network. It is called from many goroutines, without the dispatcher's
	// lock, so it may call Submit. The slice is the Settler's to keep.
	Settle(batch []events.Settlement)
}

// Roomer is what a Settler may implement beside Settle to bring back what it parked.
type Roomer interface {
	// Room says that owner, of whom events were parked, has room for n of them now. What was said before no longer
	// counts. It may come before the Settle that parks is carried out. Like Settle it must not block.
	Room(owner string, n int)
}

// Threads are the pinned threads.
type Threads interface {
	// Wake makes a thread whose last Next returned nothing call Next soon. A Wake that comes
	// before the thread lies down must not be forgotten. It must not block, and not call the dispatcher.
	Wake(thread int)
}

// Dispatcher pairs events with workers and threads. See the package comment. All methods may be called
// from any goroutine, and none blocks.
type Dispatcher struct {
	cfg     Config
	log     zerolog.Logger
	metrics *metrics

	settler Settler
	roomer  Roomer // nil when the settler is none
	threads Threads

	deadlines chan struct{} // tells Run that soonest moved to an earlier time

	mu        sync.Mutex
	draining  bool
	owners    map[string]*owner
	policies  map[string]events.Policy
	parks     map[string]uint64 // events parked of each owner of whom not all are known to be through, so that word of the last one can be told from an older
	processes int               // of the fleet
	turns     [classes]turns
	of        [classes]threadSet // which threads run them
	shares    shares
	nap       nap

	quarantine quarantine
	bars       bars

	runnable [classes]int  // events that could start now, limits considered
	queued   int           // events in all queues
	running  int           // attempts that threads have
	onThread []int         // attempts that each thread has
	mean     time.Duration // expected CPU time of an event, over all workers
	soonest  time.Time     // no queued event has a deadline before this; zero = none has one
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
		cfg: cfg, log: log, metrics: &metrics{},
		deadlines: make(chan struct{}, 1),
		owners:    make(map[string]*owner),
		policies:  make(map[string]events.Policy),
		parks:     make(map[string]uint64),
		processes: 1,
		onThread:  make([]int, cfg.Threads+cfg.Background),
		of:        cfg.threadsOf(),
		shares:    shares{number: 2}, // owners begin with 0: neither this one nor the last
		mean:      unknownCost,

		quarantine: quarantine{most: firstSuspects},
	}
	if err := reg.Register(collector{d}); err != nil {
		return nil, err
	}
	return d, nil
}

// Wire says who settles events and who runs them. Both know the Dispatcher, so they can only be made after
// it. Call it once, before any other method.
func (d *Dispatcher) Wire(settler Settler, threads Threads) {
	d.settler, d.threads = settler, threads
	d.roomer, _ = settler.(Roomer)
}

// tell collects under the lock what others are told after it.
type tell struct {
	settle []events.Settlement
	wake   threadSet
	room   []room
}

type room struct {
	owner string
	n     int
}

// out tells it. The lock is not held.
func (d *Dispatcher) out(t *tell) {
	if len(t.settle) > 0 {
		d.settler.Settle(t.settle)
	}
	t.wake.each(d.threads.Wake)
	for _, r := range t.room {
		d.roomer.Room(r.owner, r.n)
	}
}

// Install makes w the active version of its worker, and keeps the ones before for events that ask for them
// by Worker-Version: the last ten beside the active one. Installing a version again activates it again.
func (d *Dispatcher) Install(w *events.Worker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.owners[w.Owner]
	if o == nil {
		o = &owner{name: w.Owner, routes: make(map[string]*route), seen: d.turns[light].round}
		d.applyPolicy(o)
		o.credit = o.quantum
		d.owners[w.Owner] = o
	}
	r := o.routes[w.Name]
	if r == nil {
		r = &route{}
		o.routes[w.Name] = r
	}
	r.install(w)
}

// Remove takes a worker with all its versions out. Attempts that run go on; queued events fail
// with no-worker when it is their turn.
func (d *Dispatcher) Remove(ownerName, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.owners[ownerName]
	if o == nil || o.routes[name] == nil {
		return
	}
	*o.routes[name] = route{}
	delete(o.routes, name)
	d.forget(o)
}

// forget frees an owner of whom nothing is left.
func (d *Dispatcher) forget(o *owner) {
	if len(o.routes) == 0 && o.queue.n == 0 && o.suspects == 0 && o.running == 0 {
		delete(d.owners, o.name)
		if o.class == heavy {
			d.lighten(o)
		}
	}
}

// Drain stops starting events: queued ones go back to the stream at once, and so does what is
// submitted later. Attempts that run go on.
func (d *Dispatcher) Drain() {
	var t tell
	d.mu.Lock()
	d.draining = true
	for _, o := range d.owners {
		for o.queue.n > 0 {
			it := o.queue.popFront()
			t.settle = append(t.settle, returned(it.event))
			d.queued--
		}
		d.changed(o)
		d.forget(o)
	}
	d.emptyQuarantine(&t)
	d.soonest = time.Time{}
	d.mu.Unlock()
	d.out(&t)
}

// rouse moves the quarantine on and wakes as many threads as what could start is worth. It must be called whenever something
// has changed that could let an event start.
func (d *Dispatcher) rouse(now time.Time, t *tell) {
	if !d.quarantine.idle() {
		d.step(now, t)
	}
	d.turnWindow(now)
	for c, n := range d.startable() {
		t.wake |= d.nap.wake(d.of[c], n, d.mean, &d.turns[c], now)
	}
	d.metrics.wakes += uint64(t.wake.len())
}

func returned(e *events.Event) events.Settlement {
	return events.Settlement{Event: e, Outcome: events.Outcome{Verdict: events.Return}}
}

// changed keeps the count of runnable events and the owner's place among the turns true after its
// queue or its running attempts changed. Only Next serves owners, and it tells turns by itself.
func (d *Dispatcher) changed(o *owner) {
	d.recount(o)
	switch {
	case o.counted > 0 && o.list == nil:
		d.turns[o.class].enter(o)
	case o.counted == 0 && o.list != nil:
		d.turns[o.class].leave(o)
	}
}

func (d *Dispatcher) recount(o *owner) {
	n := max(0, min(o.queue.n, o.maxRunning-o.running))
	if o.away >= d.cfg.Threads {
		n = 0
	}
	d.runnable[o.class] += n - o.counted
	o.counted = n
}

// makeRoom tells the settler of room for an owner of whom events were parked, every quarter of a
// queue that it got through and whenever nothing of it is left. Half of the queue is kept for events that come by themselves.
func (d *Dispatcher) makeRoom(o *owner, t *tell) {
	most := o.maxQueued
	waiting := o.queue.n + o.suspects
	if !o.parked || 2*waiting >= most || d.draining {
		return
	}
	if !o.full && waiting > 0 && 4*o.freed < most {
		return
	}
	o.full, o.freed = false, 0
	if d.roomer != nil {
		t.room = append(t.room, room{o.name, (most+1)/2 - waiting})
	}
}
