package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/bodies"
	"github.com/pinwheel-run/pinwheel/consumer/bridge"
	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/janitor"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/limit"
	"github.com/pinwheel-run/pinwheel/consumer/parking"
	"github.com/pinwheel-run/pinwheel/consumer/results"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/repeats"
)

// Consumer takes events from JetStream and settles them. Make it with New, start it with Run.
type Consumer struct {
	stores
	cfg        Config
	nc         *nats.Conn
	js         jetstream.JetStream
	dispatcher Dispatcher
	decoder    events.Decoder
	log        zerolog.Logger
	metrics    *metrics

	api         *jsapi.Client
	clock       jsapi.Clock
	inflight    inflight
	retries     *retries
	puller      *puller
	settler     *settler
	leases      *leases
	maintenance *maintenance
	janitor     *janitor.Janitor
	usage       *storage.Usage
	pending     limit.Pending
	bridge      *bridge.Bridge
	unschedules *schedule.Cancels
	ticker      *schedule.Ticker
	overtaker   *parking.Overtaker

	draining atomic.Bool
	ready    atomic.Bool
}

// New makes a Consumer that passes events to d. It starts nothing. reg may be nil. The caller owns the connection,
// which must outlive Run and should reconnect forever.
func New(cfg Config, nc *nats.Conn, d Dispatcher, log zerolog.Logger, reg prometheus.Registerer) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	if cfg.Catalog == nil {
		cfg.Catalog = &catalog.Catalog{}
	}
	c := &Consumer{
		cfg: cfg, nc: nc, js: js, dispatcher: d, decoder: cfg.decoder(), log: log,
		retries: newRetries(),
	}
	c.metrics = newMetrics(cfg, log, &c.inflight, func() int64 { return c.puller.credits.Load() })
	c.api = &jsapi.Client{Requester: jsapi.NewRequester(nc), Loop: jsapi.NewLoop(), NC: nc, JS: js, Wait: cfg.answerWait(),
		Missing: func() { c.maintenance.recreate() }, Repeats: repeats.New(log)}
	c.usage = storage.New(storage.Config{Prefix: cfg.Prefix, Node: cfg.Node, MaxBytes: cfg.MaxBytes,
		Replicas: cfg.Replicas, RunHistory: cfg.RunHistory}, nc, js, log)
	c.puller = newPuller(c)
	c.wire()
	c.leases = &leases{nc: nc, cfg: cfg, log: log, inflight: &c.inflight, now: make(chan struct{}, 1),
		renewals: c.metrics.renewals}
	c.settler = c.newSettler()
	c.maintenance = newMaintenance(c)
	c.inflight.left = func(int) { c.puller.demand.left() }
	c.inflight.replaced = func(h *entry) { c.api.Do(func() { c.settler.orphan([]*entry{h}) }) }
	c.inflight.unspent = c.parked.Unspent
	if err := registerAll(reg, c.collectors()); err != nil {
		return nil, fmt.Errorf("consumer: metrics: %w", err)
	}
	return c, nil
}

// wire makes what the packages under consumer provide.
func (c *Consumer) wire() {
	cfg, prefix := c.cfg, c.cfg.Prefix
	c.attempts = attempts.NewStore(c.api, c.usage, c.log)
	c.claims = deadletter.NewClaims(c.api, c.usage, c.log)
	c.letters = deadletter.NewWriter(c.api, c.usage, prefix)
	c.letterRounds = jsapi.NewRounds(c.api)
	c.notifier = deadletter.NewNotifier(c.api, c.decoder)
	c.results = results.NewStore(c.api, c.usage, prefix)
	c.waiting = schedule.NewWaiting(c.api, c.usage, prefix, cfg.OwnerMaxWaiting, int(cfg.MaxBytes), c.log)
	c.delays = schedule.NewDelays(c.api, c.usage, c.waiting, c.decoder, c.log)
	c.replacer = schedule.NewReplacer(c.api, prefix)
	c.unschedules = schedule.NewCancels(c.js, c.decoder)
	c.cancels = &cancel.Notes{}
	c.ticker = schedule.NewTicker(c.nc, prefix, cfg.Node, c.clock.Now, c.waiting.Full, cfg.skipsTicks, c.log)
	c.parked = parking.New(parking.Config{
		Prefix: prefix, Catalog: cfg.Catalog, Consumer: laneConsumer(cfg, 0), Pull: c.puller.pullParked,
		Freed:    c.puller.demand.freed,
		Draining: c.draining.Load, Through: c.dispatcher.Through,
	}, c.js, c.log)
	c.parker = parking.NewParker(c.parked, c.api, c.usage, c.log)
	c.overtaker = parking.NewOvertaker(c.puller.overtakeConfig(), c.parked, c.js, c.log)
	c.parts = bodies.NewParts(bodies.Config{Prefix: prefix, Decoder: c.decoder, Patience: cfg.PartPatience}, c.api,
		&c.pending, c.log)
	c.chunks = bodies.NewChunks(c.api, prefix, c.log, c.inflight.hangUp)
	c.janitor = janitor.New(janitor.Config{Anchors: c.puller.anchors, Lanes: sweptLanes(c.puller.lanes),
		Replicas: cfg.Replicas}, c.js, c.log)
	c.sources = sources.New(sources.Config{Prefix: prefix, Catalog: cfg.Catalog, Conns: cfg.Sources,
		Replicas: cfg.Replicas, Now: c.clock.Now}, c.nc, c.usage, c.log)
	c.bridge = bridge.New(bridge.Config{
		Prefix: prefix, Decoder: c.decoder, Catalog: cfg.Catalog, Calls: cfg.Calls,
		Replies: c.metrics.replies, PubAck: c.metrics.pubAckDropped,
	}, c.api, c.usage, &c.pending, c.log, c.metrics.seldom)
}

func (c *Consumer) newSettler() *settler {
	s := &settler{
		dispatcher: c.dispatcher, retries: c.retries, draining: &c.draining, recorder: recorder{c.attempts, c.cfg.AckWait,
			c.cfg.Instance},
		finisher: finisher{
			stores: c.stores, cfg: c.cfg, api: c.api, log: c.log, metrics: c.metrics, inflight: &c.inflight, clock: &c.clock,
			replies: replier{nc: c.nc, chunks: c.chunks, metrics: c.metrics}, output: workerLog{nc: c.nc, prefix: c.cfg.Prefix,
				log: c.log, see: c.cfg.OnLog},
			absences: &c.leases.absences,
		},
	}
	s.overdue = overdue{settler: s, catalog: c.cfg.Catalog, count: c.metrics.setAside}
	s.acks = &acks{
		api: c.api, requests: jsapi.NewRequester(c.nc), waits: c.puller.demand.waits, inflight: &c.inflight,
		metrics: c.metrics, cfg: c.cfg, attempts: c.attempts, parts: c.parts,
		republishReply: s.replyAgain, lost: s.leaseLost, step: s.step,
	}
	return s
}

// collectors returns the metrics of all packages under consumer.
func (c *Consumer) collectors() []prometheus.Collector {
	return slices.Concat(c.metrics.all, []prometheus.Collector{c.usage}, c.bridge.Collectors(), c.janitor.Collectors(),
		c.letters.Collectors(), c.notifier.Collectors(),
		c.chunks.Collectors(), c.unschedules.Collectors(), c.delays.Collectors(), c.ticker.Collectors(),
		c.overtaker.Collectors(), c.sources.Collectors())
}

// Run creates what is missing in JetStream and then takes events until pull is done. Then it gives back the events that
// wait for a retry, and waits until all events in flight are settled or work is done. Events that are then still in
// flight are given back too, and count as not run. Run returns when all its goroutines have ended, with the error that
// kept it from starting, or nil.
func (c *Consumer) Run(pull, work context.Context) error {
	if err := c.maintenance.create(pull, false); err != nil {
		if pull.Err() != nil {
			return nil
		}
		return err
	}
	if err := errors.Join(c.api.Open(), c.settler.acks.open(c.cfg.Window+c.cfg.mostOutside())); err != nil {
		return err
	}
	defer c.chunks.Close()
	if err := c.chunks.Open(); err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){
		c.settler.run, c.leases.run, c.maintenance.run, c.parked.Run, c.janitor.Sweep, c.janitor.KeepAnchors, c.overtaker.Run,
		c.usage.Run,
	} {
		loops.Go(func() { loop(life) })
	}
	loops.Go(func() { c.retries.run(life, func(due []*entry) { c.api.Do(func() { c.settler.resubmit(due) }) }) })
	loops.Go(func() { c.ticker.Run(pull) })
	loops.Go(func() { c.sources.Run(pull) })
	err := errors.Join(c.bridge.Open(), c.unschedules.Open(), c.replacer.Open(c.settler.replace), c.parts.Open())
	if err == nil {
		c.recordEnded(pull)
		c.puller.expect(c.meanSize(pull))
		c.ready.Store(true)
		c.puller.run(pull)
		c.ready.Store(false)
		c.bridge.Close()
		c.parts.Close()
		c.unschedules.Close()
		c.drain(work)
		c.replacer.Close()
	}
	end()
	loops.Wait()
	c.api.Close()
	c.settler.acks.requests.Close()
	return err
}

// lastMessages is the maximum time for the last messages after work is done.
const lastMessages = 2 * time.Second

// drain waits for the events in flight to end.
func (c *Consumer) drain(work context.Context) {
	c.draining.Store(true)
	c.api.Do(func() {
		for _, h := range c.retries.takeAll() {
			c.settler.giveBackWaiting(h)
		}
	})
	c.untilEmpty(work)
	late, cancel := context.WithTimeout(context.Background(), lastMessages)
	defer cancel()
	if left := c.inflight.in(running); len(left) > 0 {
		c.log.Warn().Int("events", len(left)).Msg("drain time is over; giving back what still runs")
		c.api.Do(func() {
			c.chunks.BreakOff(events.Fail(events.ReasonUnavailable, "the process that made the body has ended"))
			for _, h := range left {
				c.settler.giveBackRunning(h)
			}
		})
	}
	c.untilEmpty(late)
	_ = c.nc.FlushWithContext(late) // sends the last naks; without them the leases end by themselves
}

// untilEmpty waits until nothing is in flight or ctx is done.
func (c *Consumer) untilEmpty(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond) // only while draining
	defer tick.Stop()
	for c.inflight.len() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-c.puller.demand.wake: // events left
		case <-tick.C:
		}
	}
}

// reconnected is called by the puller.
func (c *Consumer) reconnected() {
	c.usage.LookNow() // it may be another server, or the same one restarted
	jsapi.Signal(c.leases.now)
	c.janitor.SweepSoon()
	// Requests of the old connection are no longer answered.
	c.api.Do(func() {
		late := time.Now().Add(time.Hour)
		c.api.Expire(late)
		c.settler.acks.expire(late)
	})
}

// Ready returns why the process cannot take events, or nil. /readyz answers with it.
func (c *Consumer) Ready() error {
	switch {
	case !c.nc.IsConnected():
		return fmt.Errorf("NATS is %s", c.nc.Status())
	case !c.ready.Load():
		return fmt.Errorf("not pulling events")
	}
	return nil
}

// Settle carries out settlements: it publishes replies, then carries out the outcomes. It may be called from any
// goroutine, copies the batch, and does not access the network. It keeps the order within a batch.
func (c *Consumer) Settle(batch []lifecycle.Settlement) { c.settler.add(batch) }

// Room sets how many more events the owner can take. For owners without parked events it does nothing, so it may be
// called often. It may be called from any goroutine and does not block.
func (c *Consumer) Room(owner string, n int) { c.parked.Room(owner, n) }

// Now is the time by the clock of NATS. It may be called from any goroutine.
func (c *Consumer) Now() time.Time { return c.clock.Now() }

// Install starts the schedules and the sources of a worker's active version in this process, and ends those of the
// version before. It may be called from any goroutine and does not block.
func (c *Consumer) Install(in workers.Installation) {
	c.ticker.Install(in)
	c.sources.Changed()
}

// Remove ends the schedules and the sources of a worker. It may be called from any goroutine and does not block.
func (c *Consumer) Remove(owner, worker string) {
	c.ticker.Remove(owner, worker)
	c.sources.Changed()
}

// PolicySet applies what the policy of an owner says of pauses and sources now, after dispatch has. It may be called
// from any goroutine and does not block.
func (c *Consumer) PolicySet(owner string) {
	c.parked.PolicySet(owner)
	c.sources.Changed()
}

// Sources are those that the process reads.
func (c *Consumer) Sources() *sources.Sources { return c.sources }

// OnTick sets f, which is called for every tick that this process makes from now on. f must not block.
func (c *Consumer) OnTick(f func(owner, worker, schedule string, tick time.Time)) { c.ticker.OnTick(f) }

// SetProcesses sets how many processes the fleet has. Calls are spread evenly over them. It may be called from any
// goroutine.
func (c *Consumer) SetProcesses(n int) {
	c.usage.SetProcesses(n)
	c.bridge.SetProcesses(n)
}

// AdmitSend returns why count tasks, of size bytes together, that a worker of owner sends must not be stored, or nil.
// It may be called from any goroutine.
func (c *Consumer) AdmitSend(owner string, count, size int) *events.Failure {
	return c.bridge.AdmitSend(owner, count, size)
}

// AdmitCall returns why an event of size bytes that the gateway stores for owner must not be stored, or nil. It counts
// as a call. It may be called from any goroutine.
func (c *Consumer) AdmitCall(owner string, size int) *events.Failure {
	return c.bridge.AdmitCall(owner, size)
}

// AdmitLetter returns why a dead letter of size bytes must not be imported for owner, or nil. It counts as a call. It
// may be called from any goroutine.
func (c *Consumer) AdmitLetter(owner string, size int) *events.Failure {
	return c.bridge.AdmitLetter(owner, size)
}

// Published notes whether the stream of events took a message that the process published itself: err is that of the
// publish. It may be called from any goroutine.
func (c *Consumer) Published(err error) { c.usage.Published(events.StreamEvents, err) }

// GrewRunHistory notes that the process stored size bytes of records of the run history.
func (c *Consumer) GrewRunHistory(size int) { c.usage.Grew(events.StreamRuns, size) }

// SetServerLimit sets how many bytes a NATS server may store; 0 = unknown. It may be called from any goroutine.
func (c *Consumer) SetServerLimit(bytes int64) { c.usage.Reserved.SetServerLimit(bytes) }

// Storage returns why something of the fleet cannot be stored now, or nil. It may be called from any goroutine.
func (c *Consumer) Storage() error { return c.usage.Err() }

// Unstored returns why JetStream does not acknowledge events that are published now, or nil. Owners may read it. It may
// be called from any goroutine.
func (c *Consumer) Unstored() error { return c.usage.Silent(events.StreamEvents, events.StreamBodies) }

// Stats is a snapshot of a Consumer, for people and control endpoints.
type Stats struct {
	Window   int `json:"window"`
	Held     int `json:"held"`     // events held
	Waiting  int `json:"waiting"`  // of held, waiting to be run again
	Settling int `json:"settling"` // of held, being settled
	Credits  int `json:"credits"`  // asked for and not delivered
	// ParkedLanes are owners whose parked events are pulled here.
	ParkedLanes int   `json:"parkedLanes"`
	Stalls      int64 `json:"stalls"` // times JetStream was silent
	Ready       bool  `json:"ready"`
	// SetAside is how many events were given back for a while because they could not be settled, if the last one was in
	// the last hour.
	SetAside int64 `json:"setAside,omitempty"`
	// Storage is why something cannot be stored; "" when everything can.
	Storage string `json:"storage,omitempty"`
}

// Stats may be called at any time from any goroutine.
func (c *Consumer) Stats() Stats {
	full := ""
	if err := c.Storage(); err != nil {
		full = err.Error()
	}
	return Stats{
		Storage: full, SetAside: c.settler.overdue.Lately(),
		Window: c.cfg.Window, Held: c.inflight.len(), Waiting: len(c.inflight.in(waiting)),
		Settling: len(c.inflight.filter(func(h *entry) bool { return h.is(replying) || h.is(storing) || h.is(acking) })),
		Credits:  int(c.puller.credits.Load()), Stalls: c.puller.stalls.Load(), ParkedLanes: int(c.puller.parking.Load()),
		Ready: c.Ready() == nil,
	}
}

// SetRunDelays sets how to read how long each pinned thread has waited for a processor so far, always in the same
// order. Call it before Start. With it, a process that other programs keep from running events does not count the
// owners as slow, and so does not park their events.
func (c *Consumer) SetRunDelays(read func(into []time.Duration) []time.Duration) {
	c.puller.active.delays = read
}
