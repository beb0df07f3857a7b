package workerlease

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Bucket is the KV bucket of the leases. The key is OWNER.WORKER, the value names a process, and only that process
// changes it.
const Bucket = "PINWHEEL_LEASES"

const (
	// defaultTTL is when a key goes that is not renewed: its process died, or cannot reach NATS.
	defaultTTL = 15 * time.Second
	// defaultTurn is how long a process keeps a lease, at least, when another one waits and it has events.
	defaultTurn = time.Second
	// maxBytes bounds the bucket, and JetStream reserves so much. A key with its value takes about 150 bytes.
	maxBytes = 4 << 20
	// ownerRate is how often in a second a process takes leases for the workers of one owner, and ownerBurst how many at
	// once. So the workers of one owner cannot keep JetStream busy.
	ownerRate, ownerBurst = 20, 40
)

// Runner starts the events of workers. It is a dispatch.Lessee.
type Runner interface {
	// Grant says that the process has the lease. It returns false when nothing needs it.
	Grant(owner, worker string, term uint64) bool
	// Withdraw starts no further event, unless idle is set and the worker has events. It returns true if none runs, and
	// none will. Otherwise GivenBack follows, unless idle is set.
	Withdraw(owner, worker string, term uint64, idle bool) (gone bool)
	// Lapse ends the runs: another process may get the lease.
	Lapse(owner, worker string, term uint64)
}

// Config configures the leases of a fleet.
type Config struct {
	Prefix   events.Subjects
	Replicas int
	TTL      time.Duration // 0 = 15 s. The same in all processes
	Turn     time.Duration // 0 = 1 s
}

func (c Config) withDefaults() Config {
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.Turn == 0 {
		c.Turn = defaultTurn
	}
	return c
}

func (c Config) bucket() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "Which process runs a worker whose concurrency is exact", History: 1, TTL: c.TTL, MaxBytes: maxBytes,
		MaxValueSize: 256,
		Storage:      jetstream.FileStorage, Replicas: max(1, c.Replicas),
	}
}

// Resources are all resources of this package in JetStream.
func Resources(c Config) []resources.Resource {
	cfg := c.withDefaults().bucket()
	return []resources.Resource{{Bucket: &cfg}}
}

// Leases takes, renews and gives back the leases of one process. Any goroutine may use it.
type Leases struct {
	kv      jetstream.KeyValue
	nc      *nats.Conn
	cfg     Config
	log     zerolog.Logger
	subject string
	self    string // names this process; it is never used again
	held    prometheus.Gauge
	lapsed  prometheus.Counter
	paces   perowner.Rates // of taking leases

	runner  Runner // set by Run
	running sync.WaitGroup

	mu       sync.Mutex
	start    func(*lease) // nil before Run
	draining bool
	all      map[key]*lease
}

// key names a worker.
type key struct{ owner, worker string }

func (k key) String() string { return k.owner + "." + k.worker }

// Open creates the bucket, or updates it to what it should be. Run comes next.
func Open(ctx context.Context, js jetstream.JetStream, c Config, log zerolog.Logger,
	reg prometheus.Registerer) (*Leases, error) {
	c = c.withDefaults()
	kv, err := (&resources.Reconciler{JS: js, Log: log}).Bucket(ctx, c.bucket())
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", Bucket, err)
	}
	l := &Leases{
		kv: kv, nc: js.Conn(), cfg: c, log: log, subject: string(c.Prefix) + ".control.leases", self: nats.NewInbox(),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pinwheel_worker_leases", Help: "Leases that this process has, of workers whose concurrency is exact.",
		}),
		lapsed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_worker_leases_lapsed_total", Help: "Leases that this process could not renew in time. The runs under them were ended.",
		}),
		all: map[key]*lease{}, paces: perowner.Rates{PerSecond: ownerRate, Burst: ownerBurst},
	}
	for _, m := range []prometheus.Collector{l.held, l.lapsed} {
		if err := reg.Register(m); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Run takes leases for the runner until ctx is done. Then it gives them back as their runs end. It returns when it has
// none any more, or when work is done.
func (l *Leases) Run(ctx, work context.Context, runner Runner) {
	if sub, err := l.nc.Subscribe(l.subject, l.hear); err == nil {
		defer func() { _ = sub.Unsubscribe() }()
	} else { // the connection is closed; without hints processes look every second
		l.log.Warn().Err(err).Msg("processes that wait for leases cannot be heard")
	}
	l.mu.Lock()
	l.runner = runner
	l.start = func(x *lease) { l.running.Go(func() { x.run(work) }) }
	for _, x := range l.all { // wanted before
		l.start(x)
	}
	l.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-work.Done():
	}
	l.mu.Lock()
	l.draining = true
	for _, x := range l.all {
		x.signal()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// Want takes the lease of a worker as soon as it is free. Grant follows.
func (l *Leases) Want(owner, worker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return
	}
	k := key{owner, worker}
	x := l.all[k]
	if x == nil {
		x = &lease{Leases: l, key: k, changed: make(chan struct{}, 1)}
		l.all[k] = x
		if l.start != nil {
			l.start(x)
		}
	}
	x.wanted = true
	x.signal()
}

// Idle is for a worker that has no event here at the moment. Then the lease goes to who asked for it.
func (l *Leases) Idle(owner, worker string, term uint64) {
	l.note(key{owner, worker}, term, func(*lease) {})
}

// GivenBack follows Withdraw, when the last run has ended.
func (l *Leases) GivenBack(owner, worker string, term uint64) {
	l.note(key{owner, worker}, term, func(x *lease) { x.back = true })
}

func (l *Leases) note(k key, term uint64, set func(*lease)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.all[k]
	if x == nil || x.term != term {
		return
	}
	set(x)
	if x.back || x.asked || x.draining {
		x.signal()
	}
}

// message is what processes tell each other: that one waits for a lease, or that it is free.
type message struct {
	Process string `json:"process"`
	Owner   string `json:"owner"`
	Worker  string `json:"worker"`
	Free    bool   `json:"free,omitempty"`
}

func (l *Leases) tell(k key, free bool) {
	text, err := json.Marshal(message{l.self, k.owner, k.worker, free})
	if err == nil {
		_ = l.nc.Publish(l.subject, text) // not connected: the other one looks again by itself
	}
}

// hear takes a message. It is only a hint: the bucket decides.
func (l *Leases) hear(m *nats.Msg) {
	var x message
	if json.Unmarshal(m.Data, &x) != nil || x.Process == l.self {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.all[key{x.Owner, x.Worker}]
	if of == nil {
		return
	}
	if x.Free {
		of.free = true
	} else {
		of.asked = true
	}
	of.signal()
}
