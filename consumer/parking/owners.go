package parking

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
)

const (
	// LookEvery is how often a process looks for owners with parked events. So the parked events of a process that died
	// may wait this long for another process.
	LookEvery = 3 * time.Second
	// parkedRoom is how many parked events an owner gets before dispatch has reported its room.
	parkedRoom = 32
	// parkedPause is the least time between two looks.
	parkedPause = 200 * time.Millisecond
	// parkedInactive is how long an owner's consumer stays when no process asks it and it has no unacked events. It is
	// short, because many owners have a consumer each. A consumer that is needed again is created again.
	parkedInactive = 3 * time.Second
)

// Config is what Owners need from other packages.
type Config struct {
	Prefix events.Subjects
	// Catalog says what is paused.
	Catalog *catalog.Catalog
	// Consumer is the configuration of the consumer of an owner's parked events, except its name, filter and
	// InactiveThreshold.
	Consumer jetstream.ConsumerConfig
	// Pull starts pulling the parked events of a name, the first of them with the first request. It blocks until the
	// puller has accepted that, or ctx is done.
	Pull func(ctx context.Context, name string, first int) error
	// Freed is called when an owner has room for events that are pulled.
	Freed func()
	// Draining reports whether the process takes no more events.
	Draining func() bool
	// Through notifies dispatch that all parked events of owner were submitted, after parks of its settlements with
	// Park were carried out. It returns whether these are all such settlements: then both sides count from 0 again.
	Through func(owner string, parks uint64) bool
}

// Owners knows the owners with parked events, and gives them places. Events are pulled by their name: that of the
// owner, or OWNER=WORKER for those of a worker that was paused, after it is resumed. Make it with New, start it with
// Run. Its exported methods may be called from any goroutine.
type Owners struct {
	cfg    Config
	js     jetstream.JetStream
	log    zerolog.Logger
	places places
	look   chan struct{}
	opens  *rate.Limiter // of creating consumers of owners
}

// New makes Owners.
func New(cfg Config, js jetstream.JetStream, log zerolog.Logger) *Owners {
	return &Owners{
		cfg: cfg, js: js, log: log, places: newPlaces(), look: make(chan struct{}, 1),
		opens: rate.NewLimiter(rate.Every(parkedInactive/parkedConsumers), parkedLanes),
	}
}

// Room sets how many more events the owner can take. For owners without parked events it does nothing,
// so it may be called often. It does not block.
func (l *Owners) Room(owner string, n int) {
	if l.places.set(owner, n) && n > 0 {
		l.cfg.Freed()
	}
}

// Use changes the room for parked events of that name.
func (l *Owners) Use(name string, change func(room int) int) { l.places.use(name, change) }

// Unspent gives back the room of an event that dispatch never saw, or that was not queued there.
func (l *Owners) Unspent(name string) { l.places.use(name, func(room int) int { return room + 1 }) }

// Pulled reports whether the parked events of that name are pulled.
func (l *Owners) Pulled(name string) bool { return l.places.has(name) }

// Forget takes a place away because its consumer is gone. The name gets another place if it needs one.
func (l *Owners) Forget(name string) {
	l.places.forget(name)
	l.LookAgain()
}

// NotParked counts an event that was to be parked and will not be, because dispatch has counted it.
func (l *Owners) NotParked(e *lifecycle.Delivery) {
	l.places.opened(e)
	l.places.closed(e, 0)
}

// LookAgain makes Run look for owners soon.
func (l *Owners) LookAgain() { jsapi.Signal(l.look) }

// Emptied notes that a parked event with that name and sequence was submitted, and that the stream had none after it.
func (l *Owners) Emptied(name string, seq uint64) {
	p := &l.places
	if p.passOn(name) {
		l.LookAgain()
	}
	owner, _, _ := SplitName(name)
	p.notifying.Lock()
	defer p.notifying.Unlock()
	p.mu.Lock()
	o, parks := p.own[owner], uint64(0)
	if o != nil {
		parks = o.done
	}
	if over := o == nil || o.open == 0 && seq >= o.last; !over {
		p.mu.Unlock()
		return
	}
	if len(p.waiting) > 0 { // another owner's turn
		delete(p.owners, name)
		jsapi.Signal(p.free)
	}
	p.mu.Unlock()
	l.notifyThrough(owner, parks)
}

// through notes that the stream had no more events of owner. was is what unconfirmedParks returned before that.
func (l *Owners) through(owner string, was ownParks) {
	p := &l.places
	p.notifying.Lock()
	defer p.notifying.Unlock()
	p.mu.Lock()
	o := p.own[owner]
	same := o != nil && o.counting == was.counting
	p.mu.Unlock()
	if same {
		l.notifyThrough(owner, was.done)
	}
}

// notifyThrough notifies dispatch that all parked events of owner were submitted, and forgets their count. The caller
// holds notifying, so that a number means the same to both sides.
func (l *Owners) notifyThrough(owner string, parks uint64) {
	all := l.cfg.Through(owner, parks)
	p := &l.places
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.own[owner]
	switch {
	case o == nil:
	case !all:
		o.reported = parks
	case o.done == parks && o.open == 0:
		delete(p.own, owner)
	default: // more was parked since dispatch was asked
		p.countings++
		o.done, o.reported, o.counting = o.done-parks, 0, p.countings
	}
}

// Run finds the owners that have parked events, and makes the puller pull these events.
func (l *Owners) Run(life context.Context) {
	tick := time.NewTicker(LookEvery)
	defer tick.Stop()
	work := l.lookForParked
	for {
		if err := l.withinLook(life, work); err != nil && !errors.Is(err, context.DeadlineExceeded) && life.Err() == nil {
			l.log.Warn().Err(err).Msg("parked events could not be looked up; trying again")
		}
		work = l.lookForParked
		select {
		case <-life.Done():
			return
		case <-tick.C:
			continue
		case <-l.places.free:
			work = l.openWaiting
			continue
		case <-l.look:
		}
		select { // one look is enough for what happens at the same time
		case <-life.Done():
			return
		case <-time.After(parkedPause):
		}
	}
}

// withinLook calls work, unless the process is draining or has no connection. Work that is not done by the time of the
// next look is left to that look.
func (l *Owners) withinLook(ctx context.Context, work func(context.Context) error) error {
	if l.cfg.Draining() || !l.js.Conn().IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, LookEvery)
	defer cancel()
	return work(ctx)
}

func (l *Owners) lookForParked(ctx context.Context) error {
	parks := l.places.unconfirmedParks() // before the stream is asked
	c, err := l.countParked(ctx)
	if err != nil {
		return err
	}
	for owner, was := range parks {
		if !c.left[owner] {
			l.through(owner, was)
		}
	}
	now := time.Now()
	l.places.found(l.places.takeTurns(slices.Sorted(maps.Keys(c.counts)), now), c.counts, now)
	for _, owner := range l.places.pulled() {
		l.places.refill(owner)
		if err := l.cfg.Pull(ctx, owner, l.places.ask(owner)); err != nil {
			return err
		}
	}
	return l.openWaiting(ctx)
}

// openWaiting gives the free places to owners that wait for one.
func (l *Owners) openWaiting(ctx context.Context) error {
	for owners := l.places.next(); len(owners) > 0; owners = l.places.next() {
		errs := make([]error, len(owners))
		var all sync.WaitGroup
		for i, owner := range owners {
			all.Go(func() { errs[i] = l.openParked(ctx, owner) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err // the next look continues with the next owners
		}
	}
	return nil
}

// parkedCounts are what is parked and does not wait for a worker to be resumed.
type parkedCounts struct {
	counts map[string]uint64 // by name, of owners that are not paused
	left   map[string]bool   // owners that have any
}

// countParked counts the parked events.
func (l *Owners) countParked(ctx context.Context) (c parkedCounts, err error) {
	stream, err := l.js.Stream(ctx, events.StreamParked)
	if err != nil {
		return c, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(l.cfg.Prefix.AllParked()))
	if err != nil {
		return c, err
	}
	c = parkedCounts{counts: map[string]uint64{}, left: map[string]bool{}}
	for subject, n := range info.State.Subjects {
		owner, worker, held, ok := l.cfg.Prefix.ParseParked(subject)
		if !ok || held && l.waits(owner, worker) {
			continue
		}
		c.left[owner] = true
		if !l.cfg.Catalog.Policy(owner).AllPaused() {
			c.counts[nameOf(owner, worker, held)] += n
		}
	}
	return c, nil
}

// waits reports whether held events of a worker wait until it is resumed. Those of a worker that was removed do not:
// nothing else would end them.
func (l *Owners) waits(owner, worker string) bool {
	_, there := l.cfg.Catalog.Installed(owner, worker)
	return there && l.cfg.Catalog.Policy(owner).WorkerPaused(worker)
}

// PolicySet applies what the policy of an owner says of pauses now. It may be called from any goroutine and does not
// block.
func (l *Owners) PolicySet(owner string) {
	policy := l.cfg.Catalog.Policy(owner)
	for _, name := range l.places.namesOf(owner) {
		if _, worker, held := SplitName(name); policy.AllPaused() || held && l.waits(owner, worker) {
			l.places.forget(name)
		}
	}
	l.LookAgain()
}

// ofWorker stands in a name between an owner and a worker. It is in no name of an owner.
const ofWorker = "="

// nameOf is the name under which parked events are pulled: the owner, or OWNER=WORKER for those that are held. A worker
// that is resumed has a consumer of its own until they are through: a consumer whose filters change does not go back to
// messages before its position, and two of one work queue must have filters that do not overlap.
func nameOf(owner, worker string, held bool) string {
	if held {
		return owner + ofWorker + worker
	}
	return owner
}

// SplitName is the reverse of nameOf.
func SplitName(name string) (owner, worker string, held bool) { return strings.Cut(name, ofWorker) }

// ConsumerName is the name of the consumer of parked events, by their name.
func ConsumerName(name string) string { return "parked-" + name }

// openParked creates the consumer of an owner's parked events, or of held ones of a worker, and starts pulling from it.
func (l *Owners) openParked(ctx context.Context, name string) error {
	if err := l.opens.Wait(ctx); err != nil {
		return err
	}
	cfg := l.cfg.Consumer
	cfg.Durable, cfg.FilterSubject, cfg.InactiveThreshold =
		ConsumerName(name), l.cfg.Prefix.ParkedFor(name, "*"), parkedInactive
	if owner, worker, held := SplitName(name); held {
		cfg.FilterSubject = events.Held(l.cfg.Prefix.ParkedFor(owner, worker))
	}
	if _, err := l.js.CreateOrUpdateConsumer(ctx, events.StreamParked, cfg); err != nil {
		return err
	}
	l.places.add(name)
	return l.cfg.Pull(ctx, name, l.places.ask(name))
}
