package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// parkedLook is how often a process looks for owners with parked events; so it is how long
	// those of a process that died may wait for another.
	parkedLook = 3 * time.Second
	// parkedRoom is how many parked events an owner gets of which nobody has told its room.
	parkedRoom = 32
	// parkedPause is the least time between two looks.
	parkedPause = 200 * time.Millisecond
	// parkedInactive is how long the consumer of an owner stays that nobody asks and of whose events none is unacked. It is short, because
	// there is one for each of many owners; one that is needed again is made again.
	parkedInactive = 3 * time.Second
)

// parking knows the owners that have parked events.
type parking struct {
	mu      sync.Mutex
	owners  map[string]*parkedOwner // those whose events are pulled, at most parkedLanes
	waiting []string                // those that wait for a place
	after   string                  // the last one that got one
	counts  map[string]uint64       // of parked events, by owner, at the last look
	own     map[string]*ownParks
	lives   uint64     // of entries of own, so far
	telling sync.Mutex // held while dispatch is told that an owner's events are through; taken before mu
	look    chan struct{}
	place   chan struct{} // one is free, and somebody waits for it
	opens   *rate.Limiter // of consumers of owners
}

func newParking() parking {
	return parking{
		owners: make(map[string]*parkedOwner), own: make(map[string]*ownParks), look: make(chan struct{}, 1), place: make(chan struct{}, 1),
		opens: rate.NewLimiter(rate.Every(parkedInactive/parkedConsumers), parkedLanes),
	}
}

type parkedOwner struct {
	room  int  // events the owner may take; what is asked for is taken off
	told  bool // by dispatch
	since time.Time
}

// Room tells that the owner can take n more events. Of owners without parked events it does nothing,
// so it may be called often. It may be called from any goroutine and does not block.
func (c *Consumer) Room(owner string, n int) {
	c.parking.mu.Lock()
	o := c.parking.owners[owner]
	if o != nil {
		o.room, o.told = n, true
	}
	c.parking.mu.Unlock()
	if o != nil && n > 0 {
		c.puller.freed()
	}
}

// use changes the owner's room, if the owner has parked events.
func (p *parking) use(owner string, change func(room int) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.owners[owner]; o != nil {
		o.room = change(o.room)
	}
}

// park sets an event aside: it is stored in the stream of parked events, and then acked. A crash in
// between parks it again, which its message id makes no difference. It runs on the settle goroutine.
func (c *Consumer) park(h *held) {
	e := h.event
	if h.from.stream == StreamParked {
		c.parking.use(e.Owner, func(int) int { return 0 })
		c.giveBack([]*held{h})
		return
	}
	c.parking.opened(e)
	if e.Overlaps() != events.OverlapAllow {
		// The schedule's next tick must find it, so it does not leave its stream.
		c.parking.closed(e, 0)
		c.putOff(h, c.clock.now().Add(parkedLook))
		return
	}
	if h.tries == nil { // else it was refused before
		h.tries = newRetrier(0)
	}
	c.parkInTurn(parkable{h, c.parkedMsg(e), true})
}

// parkedMsg is e as it waits among the parked events.
func (c *Consumer) parkedMsg(e *events.Event) *nats.Msg {
	header := c.asideHeader(e, 0)
	header.Set(events.HeaderMsgID, events.ParkedID(e))
	return &nats.Msg{Subject: c.cfg.Prefix.Parked(e), Header: header, Data: e.Body}
}

// publishParked stores p. When it is certain that it is not stored, a refusal lets dispatch decide anew, after a while: the stream may be
// full of events that find no room in the window because of those that wait here to be parked.
func (c *Consumer) publishParked(p parkable, round uint64) {
	h := p.h
	c.asker.ask(p.m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		seq, err := storedAt(answer, err)
		c.do(func() {
			now := time.Now()
			c.pace.answered(round, now)
			c.parkRound(now)
			if err != nil {
				c.noRoom(StreamParked, err)
				c.log.Warn().Err(err).Str("owner", h.event.Owner).Msg("event could not be parked; trying again")
				_, _, answered := refusal(err)
				absent := p.absent && (answered || isRefused(err))
				c.after(h.tries, func() {
					if !absent {
						c.parkInTurn(parkable{h, p.m, false})
					} else if c.table.move(h, running, settling) {
						c.parking.closed(h.event, 0)
						h.event.Parked = true // it need not go behind those that are: they may wait for its place
						c.dispatcher.Submit([]*events.Event{h.event})
					}
				})
				return
			}
			h.tries = nil
			c.grew(c.usage.parked, len(p.m.Data))
			c.step(StepParkStored)
			c.ack(h)
			c.metrics.ended(h.event.Kind, events.Park)
			c.parking.closed(h.event, seq)
			if c.parking.wants(h.event.Owner) {
				c.lookAgain()
			}
		})
	})
}

func (c *Consumer) lookAgain() { signal(c.parking.look) }

// parkLoop finds the owners that have parked events, and has the puller pull them.
func (c *Consumer) parkLoop(life context.Context) {
	tick := time.NewTicker(parkedLook)
	defer tick.Stop()
	work := c.lookForParked
	for {
		if err := c.withinLook(life, work); err != nil && !errors.Is(err, context.DeadlineExceeded) && life.Err() == nil {
			c.log.Warn().Err(err).Msg("parked events could not be looked up; trying again")
		}
		work = c.lookForParked
		select {
		case <-life.Done():
			return
		case <-tick.C:
			continue
		case <-c.parking.place:
			work = c.openWaiting
			continue
		case <-c.parking.look:
		}
		select { // what happens at once is looked at once
		case <-life.Done():
			return
		case <-time.After(parkedPause):
		}
	}
}

// withinLook does something about parked events, unless the process or its connection is not fit for it. What is not done when it is time
// for the next look is left to that.
func (c *Consumer) withinLook(ctx context.Context, work func(context.Context) error) error {
	if c.draining.Load() || !c.nc.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, parkedLook)
	defer cancel()
	return work(ctx)
}

func (c *Consumer) lookForParked(ctx context.Context) error {
	parks := c.parking.settledParks() // before the stream is asked
	counts, err := c.parkedOwners(ctx)
	if err != nil {
		return err
	}
	for owner, was := range parks {
		if counts[owner] == 0 {
			c.through(owner, was)
		}
	}
	c.parking.found(slices.Sorted(maps.Keys(counts)), counts, time.Now())
	for _, owner := range c.parking.pulled() {
		c.parking.refill(owner)
		if err := c.pullParked(ctx, owner); err != nil {
			return err
		}
	}
	return c.openWaiting(ctx)
}

// openWaiting gives the free places to owners that wait for one.
func (c *Consumer) openWaiting(ctx context.Context) error {
	for owners := c.parking.next(); len(owners) > 0; owners = c.parking.next() {
		errs := make([]error, len(owners))
		var all sync.WaitGroup
		for i, owner := range owners {
			all.Go(func() { errs[i] = c.openParked(ctx, owner) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err // the next look goes on with the next owners
		}
	}
	return nil
}

// parkedOwners counts the parked events of each owner that has any.
func (c *Consumer) parkedOwners(ctx context.Context) (map[string]uint64, error) {
	stream, err := c.js.Stream(ctx, StreamParked)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(c.cfg.Prefix.AllParked()))
	if err != nil {
		return nil, err
	}
	counts := make(map[string]uint64)
	for subject, n := range info.State.Subjects {
		if owner, ok := c.cfg.Prefix.ParseParked(subject); ok {
			counts[owner] += n
		}
	}
	return counts, nil
}

// refill gives an owner without room a little at a time, should dispatch have nothing to tell of.
func (p *parking) refill(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.owners[owner]; o != nil && o.room <= 0 {
		if o.room = 1; !o.told {
			o.room = parkedRoom
		}
	}
}

func parkedConsumer(owner string) string { return "parked-" + owner }

// openParked makes the consumer of an owner's parked events, and has it pulled.
func (c *Consumer) openParked(ctx context.Context, owner string) error {
	if err := c.parking.opens.Wait(ctx); err != nil {
		return err
	}
	cfg := laneConsumer(c.cfg, 0)
	cfg.Durable, cfg.FilterSubject, cfg.InactiveThreshold = parkedConsumer(owner), c.cfg.Prefix.ParkedOwner(owner), parkedInactive
	if _, err := c.js.CreateOrUpdateConsumer(ctx, StreamParked, cfg); err != nil {
		return err
	}
	c.parking.mu.Lock()
	c.parking.owners[owner] = &parkedOwner{room: parkedRoom, since: time.Now()}
	c.parking.mu.Unlock()
	return c.pullParked(ctx, owner)
}

// pullParked sees that the puller has a lane for the owner.
func (c *Consumer) pullParked(ctx context.Context, owner string) error {
	l := newLane(StreamParked, parkedConsumer(owner), 0)
	l.owner, l.src.owner, l.first, l.pin = owner, owner, c.parking.ask(owner), pinOf(c.pins, StreamParked)
	select {
	case c.puller.parkedLanes <- l:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
