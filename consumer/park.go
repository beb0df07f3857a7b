package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// parkedLook is how often a process looks for owners with parked events; so it is how long
	// those of a process that died may wait for another.
	parkedLook = 3 * time.Second
	// parkedRoom is how many parked events an owner gets of which nobody has told its room.
	parkedRoom = 32
	// parkedInactive is how long the consumer of an owner without parked events stays.
	parkedInactive = time.Hour
)

// parking knows the owners that have parked events.
type parking struct {
	mu     sync.Mutex
	owners map[string]*parkedOwner
	look   chan struct{}
}

type parkedOwner struct {
	room int  // events the owner may take; what is asked for is taken off
	told bool // by dispatch
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
	if e.Overlaps() != events.OverlapAllow {
		// The schedule's next tick must find it, so it does not leave its stream.
		c.putOff(h, time.Now().Add(parkedLook))
		return
	}
	if h.from.stream == StreamParked {
		c.parking.use(e.Owner, func(int) int { return 0 })
		c.giveBack([]*held{h})
		return
	}
	h.tries = newRetrier(0)
	header := nats.Header(events.EncodeParked(e))
	header.Set(events.HeaderMsgID, events.ParkedID(e))
	c.publishParked(h, &nats.Msg{Subject: c.cfg.Prefix.Parked(e), Header: header, Data: e.Body})
}

func (c *Consumer) publishParked(h *held, m *nats.Msg) {
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		c.do(func() {
			if err != nil {
				c.log.Warn().Err(err).Str("owner", h.event.Owner).Msg("event could not be parked; trying again")
				c.after(h.tries, func() { c.publishParked(h, m) })
				return
			}
			h.tries = nil
			c.step(StepParkStored)
			c.ack(h)
			c.metrics.ended(h.event.Kind, events.Park)
			c.parking.mu.Lock()
			known := c.parking.owners[h.event.Owner] != nil
			c.parking.mu.Unlock()
			if !known {
				c.lookAgain()
			}
		})
	})
}

func (c *Consumer) lookAgain() {
	select {
	case c.parking.look <- struct{}{}:
	default:
	}
}

// parkLoop finds the owners that have parked events, and has the puller pull them.
func (c *Consumer) parkLoop(life context.Context) {
	tick := time.NewTicker(parkedLook)
	defer tick.Stop()
	for {
		if err := c.lookForParked(life); err != nil && life.Err() == nil {
			c.log.Warn().Err(err).Msg("parked events could not be looked up; trying again")
		}
		select {
		case <-life.Done():
			return
		case <-tick.C:
		case <-c.parking.look:
		}
	}
}

func (c *Consumer) lookForParked(ctx context.Context) error {
	if c.draining.Load() || !c.nc.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, parkedLook)
	defer cancel()
	stream, err := c.js.Stream(ctx, StreamParked)
	if err != nil {
		return err
	}
	if stream.CachedInfo().State.Msgs == 0 {
		c.forgetParked(nil)
		return nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(c.cfg.Prefix.AllParked()))
	if err != nil {
		return err
	}
	found := make(map[string]bool)
	for subject := range info.State.Subjects {
		if owner, ok := c.cfg.Prefix.ParseParked(subject); ok {
			found[owner] = true
		}
	}
	c.forgetParked(found)
	for owner := range found {
		if err := c.openParked(ctx, owner); err != nil {
			return err
		}
	}
	return nil
}

// forgetParked forgets the owners that have no parked events any more.
func (c *Consumer) forgetParked(found map[string]bool) {
	c.parking.mu.Lock()
	defer c.parking.mu.Unlock()
	for owner := range c.parking.owners {
		if !found[owner] {
			delete(c.parking.owners, owner)
		}
	}
}

// openParked makes the consumer of an owner's parked events and a lane for it.
func (c *Consumer) openParked(ctx context.Context, owner string) error {
	c.parking.mu.Lock()
	o := c.parking.owners[owner]
	if o != nil && o.room <= 0 { // a little at a time, should dispatch have nothing to tell of
		if o.room = 1; !o.told {
			o.room = parkedRoom
		}
	}
	c.parking.mu.Unlock()
	name := "parked-" + owner
	if o == nil {
		cfg := laneConsumer(c.cfg, 0)
		cfg.Durable, cfg.FilterSubject, cfg.InactiveThreshold = name, c.cfg.Prefix.ParkedOwner(owner), parkedInactive
		if _, err := c.js.CreateOrUpdateConsumer(ctx, StreamParked, cfg); err != nil {
			return err
		}
		c.parking.mu.Lock()
		c.parking.owners[owner] = &parkedOwner{room: parkedRoom}
		c.parking.mu.Unlock()
	}
	l := newLane(StreamParked, name, 0)
	l.owner = owner
	select {
	case c.puller.parkedLanes <- l:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
