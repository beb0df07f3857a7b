package sources

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Config is the configuration of Sources.
type Config struct {
	Prefix  events.Subjects
	Catalog *catalog.Catalog
	// Conns are the connections that have sources. Without "", which is the fleet's, there are no sources.
	Conns    Conns
	Replicas int
	// Grace is how long a consumer stays after its worker has lost the source. 0: DefaultGrace.
	Grace time.Duration
	// LookEvery is the time between two looks at the consumers. 0: half a minute.
	LookEvery time.Duration
	// Now is the time by the clock of NATS.
	Now func() time.Time
}

// DefaultGrace is for how long a worker can be removed, and deployed again, without a gap at its sources.
const DefaultGrace = 24 * time.Hour

const defaultLook = 30 * time.Second

// Sources brings the messages of sources to their workers. Make it with New, start it with Run.
type Sources struct {
	cfg     Config
	check   Checker
	stores  *jsapi.Requester // answers about stored events
	usage   *storage.Usage
	log     zerolog.Logger
	metrics *metrics
	changed chan struct{}

	pumps  map[string]*pump // by connection; run's
	begun  bool             // a record may be there; run's
	looked time.Time        // when the last look ended; run's

	mu    sync.Mutex
	feeds map[string]*feed // by key of the record, or of a core subject
	ill   map[string]Status
}

// New makes a Sources.
func New(cfg Config, nc *nats.Conn, usage *storage.Usage, log zerolog.Logger) *Sources {
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.LookEvery == 0 {
		cfg.LookEvery = defaultLook
	}
	s := &Sources{
		cfg: cfg, check: Checker{Conns: cfg.Conns, Prefix: cfg.Prefix}, stores: jsapi.NewRequester(nc),
		usage: usage, log: log,
		changed: make(chan struct{}, 1), pumps: map[string]*pump{}, feeds: map[string]*feed{}, ill: map[string]Status{},
	}
	s.metrics = newMetrics(s)
	return s
}

// Changed says that workers or policies have changed. It may be called from any goroutine and does not block.
func (s *Sources) Changed() { jsapi.Signal(s.changed) }

// Run brings messages until pull is done, and returns when the answers about those that came have come, or after
// storeWait.
func (s *Sources) Run(pull context.Context) {
	if s.cfg.Conns[""] == nil {
		return
	}
	if err := s.stores.Open(); err != nil {
		s.log.Error().Err(err).Msg("no sources are read")
		return
	}
	defer s.stores.Close()
	var running sync.WaitGroup
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for look := true; pull.Err() == nil; {
		if look {
			s.look(pull, &running)
		}
		look = false
		select {
		case <-pull.Done():
		case <-s.changed:
			look = true
		case now := <-tick.C:
			s.stores.Expire(now)
			look = now.Sub(s.looked) > s.cfg.LookEvery
		}
	}
	running.Wait()
	s.settle()
}

// settle waits until the events that came are stored, and ends all feeds.
func (s *Sources) settle() {
	tick := time.NewTicker(5 * time.Millisecond) // only while the process drains
	defer tick.Stop()
	for end := time.Now().Add(storeWait); s.inFlight() > 0 && time.Now().Before(end); {
		s.stores.Expire(<-tick.C)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		f.pump.drop(f)
	}
}

func (s *Sources) inFlight() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		f.mu.Lock()
		n += f.flight
		f.mu.Unlock()
	}
	return n
}

// look makes what the workers want what there is. A failure is logged, and the next look tries again.
func (s *Sources) look(ctx context.Context, running *sync.WaitGroup) {
	defer func() { s.looked = time.Now() }()
	wanted := s.wanted()
	if len(wanted) == 0 && !s.begun && len(s.feeds) == 0 {
		if _, err := s.cfg.Conns[""].JS.KeyValue(ctx, BucketSources); err != nil {
			return // no worker ever had a source
		}
	}
	s.begun = true
	k := &resources.Reconciler{JS: s.cfg.Conns[""].JS, Log: zerolog.Nop(), OnlyMissing: true}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	b, err := openRecords(limited, k, s.cfg.Replicas)
	if err == nil {
		l := &looking{s: s, b: b, ctx: limited, now: s.now(), running: running, life: ctx}
		err = l.all(wanted)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("sources could not be looked at; trying again")
	}
}

func (s *Sources) now() time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	return time.Now()
}

// pumpOf returns the pump of a connection.
func (s *Sources) pumpOf(life context.Context, connection string, running *sync.WaitGroup) (*pump, error) {
	if p := s.pumps[connection]; p != nil {
		return p, nil
	}
	p, err := openPump(s.cfg.Conns[connection])
	if err != nil {
		return nil, err
	}
	s.pumps[connection] = p
	running.Go(func() { p.run(life) })
	return p, nil
}

// Collectors are the metrics.
func (s *Sources) Collectors() []prometheus.Collector { return []prometheus.Collector{s.metrics} }
