package fleet

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/env/services"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
	"github.com/pinwheel-run/pinwheel/internal/lib/repeats"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/process/telemetry"
	"github.com/pinwheel-run/pinwheel/internal/process/workerlease"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// Process is one process of the fleet: all rooms, connected.
type Process struct {
	cfg       config.Config     // with what the fleet has of its settings
	settings  map[string]string // as this process was started with them, by variable
	log       zerolog.Logger
	registry  *prometheus.Registry
	server    *natsd.Server // nil when NATS is not embedded
	nc        *nats.Conn
	store     *deploy.Store
	watcher   *deploy.Watcher
	policies  *deploy.Policies
	granting  policies // that are in effect here
	secrets   *deploy.Secrets
	values    *secretValues // of secrets
	gate      *secretGate
	audit     *audit.Log
	leases    *workerlease.Leases
	lessee    dispatch.Lessee // what leases tells dispatch
	sync      doctor.Sync     // what is known about when NATS writes to disk
	consumer  *consumer.Consumer
	dispatch  *dispatch.Dispatcher
	observers lifecycle.Observers // of events
	tails     *tail.Hub
	// telemetry sends to the collector; nil = nothing is sent.
	telemetry *telemetry.Telemetry
	host      *host // of workers
	pool      *isolates.Pool
	http      httpServer
	routes    *gateway.Routes
	files     *assetstore.Store
	// background is the number of pool threads with a lower priority.
	background int
	catalog    Catalog         // filled by the watcher
	members    *members        // of the fleet; nil before run
	control    *control.Server // nil when it cannot answer requests
	pulse      *pulse          // checks whether the NATS server answers
	lost       lostChecks      // threads of checks
	executable string          // checks modules of owners; "" = threads of this process do
	sick       func() error    // why the process should be replaced, or nil
	child      *Child          // nil when no supervisor replaces the process

	granted     chan struct{} // closed when all policies have come that were stored at the start
	grantedOnce sync.Once

	missing atomic.Pointer[error] // why the process takes no events yet; set if the bucket has lost workers

	readyOnce sync.Once
	up        chan struct{} // closed when the fleet takes events
}

// openTimeout limits the NATS requests while a process opens.
const openTimeout = 30 * time.Second

// Open connects to NATS and creates the rooms, and the gateway if one is configured. Call Run next.
func Open(cfg config.Config, log zerolog.Logger) (*Process, error) {
	p, err := open(cfg, log, nil)
	if err != nil {
		return nil, err
	}
	if err := openHTTP(p, nil); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// open does what Open does, without the gateway, also for a child of a supervisor.
func open(cfg config.Config, log zerolog.Logger, c *Child) (p *Process, err error) {
	p = &Process{cfg: cfg, child: c, log: log, registry: prometheus.NewRegistry(), up: make(chan struct{}),
		granted: make(chan struct{}), routes: gateway.NewRoutes(cfg.HTTPPaths)}
	if p.values, err = openSecretValues(cfg, log); err != nil {
		return nil, inventory.Fault(cfg, nil, err)
	}
	begun := p // p is nil when there is an error
	defer func() { err = notOpened(begun, err) }()
	if err := openTelemetry(p); err != nil {
		return nil, err
	}
	if err := p.connect(); err != nil {
		return nil, err
	}
	if err := checkServer(p.nc); err != nil {
		return nil, err
	}
	p.pulse = &pulse{nc: p.nc}
	js, err := jetstream.New(p.nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if cfg, err = adopt(ctx, p, js); err != nil {
		return nil, err
	}
	if err := openStores(ctx, p, js); err != nil {
		return nil, err
	}
	threads := cfg.Threads
	if threads == 0 {
		threads = min(runtime.GOMAXPROCS(0), config.MaxThreads)
	}
	p.background = backgroundThreads(cfg, threads)
	// Consumer, dispatcher and pool refer to each other in a circle. The dispatcher is created first and closed last.
	if p.dispatch, err = dispatch.New(p.dispatchConfig(threads), log, p.registry); err != nil {
		return nil, err
	}
	p.tails = openTails(p.nc, cfg, &p.observers)
	settling := c.introduce(inventory.Consumer(cfg), log)
	settling.Idempotent, settling.OnLog, settling.Observers = p.catalog.Idempotent, seeLines(p), &p.observers
	if p.consumer, err = consumer.New(settling, p.nc, p.dispatch, log, p.registry); err != nil {
		return nil, err
	}
	if err = openPool(p, js, threads); err != nil {
		return nil, err
	}
	p.sick = func() error { return cmp.Or(p.pool.Healthy(), p.lost.healthy()) }
	p.consumer.SetRunDelays(p.pool.RunDelays)
	p.dispatch.Wire(p.consumer, p.pool)
	p.lessee = p.dispatch.SetLeases(p.leases)
	p.gate = newSecretGate(installer{p.dispatch, p.pool, p.consumer, &p.catalog, p.routes}, p.values, log)
	p.watcher = p.store.Watcher(p.gate)
	p.values.renewed, p.values.changed, p.gate.ready = p.pool.Renew, p.gate.retry, p.watcher.Ready()
	return p, nil
}

// notOpened closes a process that could not open, and returns why. Without an error it does nothing.
func notOpened(p *Process, err error) error {
	if err == nil {
		return nil
	}
	defer p.close()
	return inventory.Fault(p.cfg, p.nc, err)
}

// adopt makes the settings of the fleet those of the process. It refuses the streams of another fleet.
func adopt(ctx context.Context, p *Process, js jetstream.JetStream) (config.Config, error) {
	p.settings = inventory.Settings(p.cfg)
	if err := consumer.CheckPrefix(ctx, js, events.Subjects(p.cfg.Prefix)); err != nil {
		return p.cfg, err
	}
	p.cfg = inventory.Adopted(ctx, js, p.cfg, p.log)
	return p.cfg, nil
}

// openPool opens what runs handlers, and what they use.
func openPool(p *Process, js jetstream.JetStream, threads int) (err error) {
	if p.host, err = openHost(p, js); err != nil {
		return err
	}
	called, err := services.New(p.dispatch, p.registry)
	if err != nil {
		return err
	}
	p.pool, err = isolates.New(p.isolatesConfig(threads, called), p.dispatch, p.host, p.registry)
	return err
}

// openStores opens what deploys and operators store.
func openStores(ctx context.Context, p *Process, js jetstream.JetStream) (err error) {
	cfg := inventory.Deploy(p.cfg)
	cfg.Log = p.log
	if p.policies, err = deploy.OpenPolicies(ctx, js, cfg); err != nil {
		return err
	}
	if p.secrets, err = deploy.OpenSecrets(ctx, js, cfg); err != nil {
		return err
	}
	if p.audit, err = audit.Open(ctx, js, inventory.Audit(p.cfg), p.log); err != nil {
		return err
	}
	files := inventory.Assets(p.cfg)
	files.Log = p.log
	p.files = assetstore.New(js, files)
	if err = p.files.Open(ctx); err != nil {
		return err
	}
	if p.leases, err = workerlease.Open(ctx, js, inventory.Leases(p.cfg), p.log, p.registry); err != nil {
		return err
	}
	cfg.Metrics = p.registry
	p.store, err = deploy.Open(ctx, js, cfg)
	return err
}

// installer installs workers: their versions in the dispatcher, what lives on between events in the pool, and their
// schedules in the consumer. A deployment counts as in effect when all three have it.
type installer struct {
	*dispatch.Dispatcher
	pool     *isolates.Pool
	consumer *consumer.Consumer
	catalog  *Catalog
	routes   *gateway.Routes
}

func (i installer) Install(in workers.Installation) {
	i.catalog.Begin(in)
	i.Dispatcher.Install(in)
	i.consumer.Install(in)
	i.catalog.Install(in)
	i.routes.Install(in)
}

func (i installer) Remove(owner, name string) {
	i.routes.Remove(owner, name)
	i.catalog.Remove(owner, name)
	i.Dispatcher.Remove(owner, name)
	i.pool.Retire(owner, name)
	i.consumer.Remove(owner, name)
}

// SetPolicy applies a policy to an owner from now on.
func (p *Process) SetPolicy(owner string, policy workers.Policy) {
	p.log.Info().Str("owner", owner).Interface("policy", policy).Msg("owner's policy")
	p.granting.set(owner, policy)
	p.dispatch.SetPolicy(owner, policy)
	p.consumer.SetPolicy(owner, policy)
	p.pool.SetPolicy(owner, policy)
	p.routes.SetPolicy(owner, policy)
	p.host.SetPolicy(owner, policy)
}

// connect connects to NATS, or starts one inside the process.
func (p *Process) connect() (err error) {
	often := repeats.New(p.log)
	opts := []nats.Option{
		nats.Name("pinwheel"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.RetryOnFailedConnect(false),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				p.log.Warn().Err(err).Msg("NATS is away")
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { p.log.Info().Msg("NATS is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			line := often.Warn(err, "NATS")
			if sub != nil { // it dropped messages, is not permitted, or a message has headers that nats.go cannot read
				line = line.Str("subject", sub.Subject)
			}
			line.Send()
		}),
	}
	if p.cfg.NatsURL == "" && p.cfg.NatsContext == "" {
		p.server, err = openEmbedded(p.cfg, p.log)
		if err != nil {
			return err
		}
		p.nc, err = nats.Connect("", append(opts, p.server.InProcess())...)
		return err
	}
	p.nc, err = config.Connect(p.cfg, opts...)
	return err
}

// URL is the address where clients connect.
func (p *Process) URL() string {
	if p.server != nil {
		return p.server.URL()
	}
	return p.nc.ConnectedUrl()
}

// Ready is closed when the process takes events.
func (p *Process) Ready() <-chan struct{} { return p.up }

// Run works until ctx is done or the process should be replaced, which is an error. Then it drains: it takes no new
// events, returns waiting events to the stream, and gives running ones DrainTimeout to finish. Then it closes
// everything.
func (p *Process) Run(ctx context.Context) error {
	defer p.close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := p.pool.Open(); err != nil {
		return err
	}
	work, stopWork := context.WithCancel(context.Background())
	defer stopWork()
	var running sync.WaitGroup
	running.Go(func() { p.dispatch.Run(work) })
	running.Go(func() {
		select {
		case <-p.values.ready: // so that no worker is found to lack what has only not come yet
			_ = p.watcher.Run(work) // it returns only the error of work
		case <-work.Done():
		}
	})
	running.Go(func() { p.policies.Watch(work, p.SetPolicy, func() { p.grantedOnce.Do(func() { close(p.granted) }) }) })
	running.Go(func() { p.secrets.Watch(work, p.values) })
	defer running.Wait()
	defer stopWork()
	var err error
	if p.members, err = p.openMembers(); err != nil {
		p.pool.Close()
		return err
	}
	running.Go(func() { p.members.run(work) })
	running.Go(func() { p.exchangeBans(work) })
	// Workers, secrets and policies come first: an event must not miss them because this process has just started.
	for _, there := range []<-chan struct{}{p.watcher.Ready(), p.values.ready, p.granted} {
		select {
		case <-there:
		case <-ctx.Done():
			p.pool.Close()
			return nil
		}
	}
	p.awaitWorkers(ctx)
	p.runParts(work, &running)
	running.Go(func() { p.watchHealth(work, end) })
	running.Go(func() { p.leases.Run(ctx, work, p.lessee) })
	if p.control, err = p.openControl(ctx, end); err != nil {
		p.log.Warn().Err(err).Msg("this process does not answer on $SRV")
	} else {
		defer p.control.Close()
	}
	drained := p.http.serve(ctx, work, p.up, func() { hearSuspects(p) }, p.log, &running)
	defer context.AfterFunc(ctx, func() {
		p.log.Info().Stringer("timeout", p.cfg.DrainTimeout).Msg("draining")
		p.dispatch.Drain()
		time.AfterFunc(p.cfg.DrainTimeout, stopWork)
	})()
	err = inventory.Fault(p.cfg, p.nc, p.consumer.Run(ctx, work))
	<-drained
	p.pool.Close()
	return cmp.Or(err, p.sick())
}

// announce closes up when the consumer is ready.
func (p *Process) announce(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.consumer.Ready() != nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	p.readyOnce.Do(func() { close(p.up) })
}

func (p *Process) close() {
	p.tails.Close()
	p.telemetry.Close()
	p.http.close()
	if p.nc != nil {
		p.nc.Close()
	}
	if p.server != nil {
		p.server.Close()
	}
}

// Config returns the configuration that the process was opened with.
func (p *Process) Config() config.Config { return p.cfg }

// Conn is the process's connection to NATS. It is open until Run returns.
func (p *Process) Conn() *nats.Conn { return p.nc }

// Embeds reports whether NATS runs in the process.
func (p *Process) Embeds() bool { return p.server != nil }

// Workers returns the store of workers.
func (p *Process) Workers() *deploy.Store { return p.store }
