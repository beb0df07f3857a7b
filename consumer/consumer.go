package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
)

// Consumer takes events from JetStream and settles them. Make it with New, start it with Run.
type Consumer struct {
	cfg        Config
	nc         *nats.Conn
	js         jetstream.JetStream
	dispatcher Dispatcher
	decoder    events.Decoder
	log        zerolog.Logger
	seldom     zerolog.Logger // for what owners can bring about as often as they like
	metrics    *metrics

	table   table
	puller  *puller
	asker   asker
	inbox   inbox
	retries retries
	waits   waitingCounts
	parking parking
	pins    []*pin
	bodies  *bodies
	ticker  *ticker
	door    door
	storing storing
	words   lastWords
	lives   lives // of assetsLoop
	clock   clock
	usage   *usage
	claims  claims
	// residents are whose events may overtake where there are too many to look at.
	residents residents

	pace     parkPace  // of the settle goroutine
	replies  replier   // of the settle goroutine
	acking   []*source // scratch of the settle goroutine: sources with acks to send
	subjects []string  // scratch of the settle goroutine

	// absences counts how often leases may have ended because the process was paused or had no connection.
	absences   atomic.Uint64
	reconnects uint64 // of the connection, when the settle goroutine looked last; its own

	processes atomic.Int64 // of the fleet; 0 counts as 1

	lost      chan struct{} // assets may be missing
	suspect   chan struct{} // a stream may be another one
	recreated chan struct{} // they are there again
	renew     chan struct{}
	sweepNow  chan struct{}
	draining  atomic.Bool
	ready     atomic.Bool
}

// seldomLines is how many of them are written in a second.
const seldomLines = 5

// New makes a Consumer that will hand events to d. It starts nothing. reg may be nil.
// The connection stays the caller's: it must outlive Run, and should reconnect for ever.
func New(cfg Config, nc *nats.Conn, d Dispatcher, log zerolog.Logger, reg prometheus.Registerer) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	c := &Consumer{
		cfg: cfg, nc: nc, js: js, dispatcher: d, decoder: cfg.decoder(), log: log, seldom: log.Sample(&zerolog.BurstSampler{Burst: seldomLines, Period: time.Second}),
		asker: asker{nc: nc}, inbox: inbox{wake: make(chan struct{}, 1)}, retries: retries{wake: make(chan struct{}, 1), of: make(map[string]int)},
		parking: newParking(), pins: newPins(cfg), lives: make(lives), usage: newUsage(cfg),
		lost: make(chan struct{}, 1), suspect: make(chan struct{}, 1), recreated: make(chan struct{}, 1), renew: make(chan struct{}, 1), sweepNow: make(chan struct{}, 1),
	}
	c.puller = newPuller(c)
	c.bodies = newBodies(c)
	c.ticker = newTicker(tickStore{nc, cfg.Prefix}, cfg.Node, c.clock.now, log)
	c.ticker.full = c.ticksFull
	c.table.left = func(int) { c.puller.freed() }
	c.table.replaced = func(h *held) { c.do(func() { c.lapse([]*held{h}) }) }
	c.table.unspent = c.parking.unspent
	if c.metrics, err = newMetrics(reg, c); err != nil {
		return nil, fmt.Errorf("consumer: metrics: %w", err)
	}
	return c, nil
}

// Run creates what is missing in JetStream and then takes events until pull is done. Then it gives
// back what waits for a retry, and waits until all held events are settled, or until
// work is done: what is still held then is given back too, and counts as not run.
// It returns when all its goroutines have, with the error that kept it from starting, or nil.
func (c *Consumer) Run(pull, work context.Context) error {
	if err := c.createAssets(pull, false); err != nil {
		if pull.Err() != nil {
			return nil
		}
		return err
	}
	if err := c.asker.open(); err != nil {
		return err
	}
	defer c.bodies.close()
	if err := c.bodies.run(); err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, loop := range []func(context.Context){c.settleLoop, c.leaseLoop, c.retryLoop, c.assetsLoop, c.parkLoop, c.sweepLoop, c.pinLoop, c.overtakeLoop, c.storedLoop} {
		running.Go(func() { loop(life) })
	}
	running.Go(func() { c.ticker.run(pull) })
	bridge, err := c.openCalls()
	cancels, err2 := c.openUnschedule()
	newer, err3 := c.openSupersede()
	parts, err4 := c.openParts()
	if err = errors.Join(err, err2, err3, err4); err == nil {
		c.puller.expect(c.meanSize(pull))
		c.ready.Store(true)
		c.puller.run(pull)
		c.ready.Store(false)
		bridge.close()
		parts.close()
		cancels.close()
		c.drain(work)
		_ = newer.Unsubscribe()
	}
	end()
	running.Wait()
	c.asker.close()
	return err
}

// meanSize is how many bytes an event that waits has on average; 0 when that is not known.
func (c *Consumer) meanSize(ctx context.Context) int {
	stream, err := c.js.Stream(ctx, StreamEvents)
	if err != nil {
		return 0
	}
	state := stream.CachedInfo().State
	return int(state.Bytes / max(1, state.Msgs)) //nolint:gosec // a message is smaller than 64 MB
}

// goodbye is how long the last messages may take after work is done.
const goodbye = 2 * time.Second

// drain waits for held events to end.
func (c *Consumer) drain(work context.Context) {
	c.draining.Store(true)
	c.do(func() {
		for _, h := range c.retries.takeAll() {
			c.nakWaiting(h)
		}
	})
	c.untilEmpty(work)
	late, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if left := c.table.in(running); len(left) > 0 {
		c.log.Warn().Int("events", len(left)).Msg("drain time is over; giving back what still runs")
		c.do(func() {
			c.bodies.breakOff(events.Fail(events.ReasonUnavailable, "the process that made the body has ended"))
			for _, h := range left {
				c.giveBackRunning([]*events.Event{h.event})
			}
		})
	}
	c.untilEmpty(late)
	_ = c.nc.FlushWithContext(late) // the last naks; without them leases end by themselves
}

// untilEmpty waits until nothing is held or ctx is done.
func (c *Consumer) untilEmpty(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond) // only while draining
	defer tick.Stop()
	for c.table.len() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-c.puller.wake: // events left
		case <-tick.C:
		}
	}
}

// createAssets insists until the assets are there or ctx is done: at start NATS may be away.
func (c *Consumer) createAssets(ctx context.Context, onlyMissing bool) error {
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := c.noteLives(limit); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) { // before others have events of what is there now
		c.log.Debug().Err(err).Msg("it could not be looked up since when streams are there")
	}
	if err := createAssets(limit, &assets.Keeper{JS: c.js, OnlyMissing: onlyMissing, Log: c.log}, c.cfg, c.nc.MaxPayload()); err != nil {
		return err
	}
	return c.livesKnown(limit)
}

// recreate asks assetsLoop to make sure that the assets are there.
func (c *Consumer) recreate() {
	signal(c.lost)
}

// afterDeletion is how long assetsLoop waits before it makes things again.
const afterDeletion = 200 * time.Millisecond

// assetsLoop makes lost streams and consumers again, and sees when others have.
func (c *Consumer) assetsLoop(life context.Context) {
	tick := time.NewTicker(c.cfg.AckWait / 3)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
			if !c.looksGone(life) {
				continue
			}
		case <-c.suspect:
			if !c.looksGone(life) {
				continue
			}
		case <-c.lost:
		}
		select { // what is being deleted should be gone before it is made again
		case <-life.Done():
			return
		case <-time.After(afterDeletion):
		}
		tries := newRetrier(0)
		for life.Err() == nil {
			err := c.createAssets(life, true)
			if err == nil {
				break
			}
			c.log.Warn().Err(err).Msg("streams and consumers could not be checked; trying again")
			select {
			case <-life.Done():
			case <-time.After(tries.policy.NextBackOff()):
			}
		}
		signal(c.recreated)
	}
}

// reconnected is called by the puller.
func (c *Consumer) reconnected() {
	signal(c.usage.now) // it may be another server, or one that was started again
	for _, loop := range []chan struct{}{c.renew, c.sweepNow} {
		signal(loop)
	}
	// What the old connection was asked is not answered any more.
	c.do(func() { c.asker.expire(time.Now().Add(time.Hour)) })
}

// Ready says why the process cannot take events, or nil: what /readyz answers.
func (c *Consumer) Ready() error {
	switch {
	case !c.nc.IsConnected():
		return fmt.Errorf("NATS is %s", c.nc.Status())
	case !c.ready.Load():
		return fmt.Errorf("not pulling events")
	}
	return nil
}

// Stats is a snapshot of the room, for people and control endpoints.
type Stats struct {
	Window   int `json:"window"`
	Held     int `json:"held"`     // events held
	Waiting  int `json:"waiting"`  // of these, waiting to be run again
	Settling int `json:"settling"` // of these, being settled
	Credits  int `json:"credits"`  // asked for and not delivered
	// ParkedLanes are owners whose parked events are pulled here.
	ParkedLanes int   `json:"parkedLanes"`
	Stalls      int64 `json:"stalls"` // times JetStream was silent
	Ready       bool  `json:"ready"`
	// Storage is why something cannot be stored; "" when all can.
	Storage string `json:"storage,omitempty"`
}

// Stats may be called at any time from any goroutine.
func (c *Consumer) Stats() Stats {
	storage := ""
	if err := c.Storage(); err != nil {
		storage = err.Error()
	}
	return Stats{
		Storage: storage,
		Window:  c.cfg.Window, Held: c.table.len(), Waiting: len(c.table.in(waiting)), Settling: len(c.table.in(settling)),
		Credits: int(c.puller.credits.Load()), Stalls: c.puller.stalls.Load(), ParkedLanes: int(c.puller.parking.Load()), Ready: c.Ready() == nil,
	}
}

// signal tells whoever receives from wake, which has room for one.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
