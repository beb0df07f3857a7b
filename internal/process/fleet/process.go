package fleet

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/usage"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/internal/process/workerlease"
)

// Process is one process of the fleet: all rooms, connected.
type Process struct {
	cfg      config.Config     // with what the fleet has of its settings
	settings map[string]string // as this process was started with them, by variable
	log      zerolog.Logger
	registry *prometheus.Registry
	child    *Child         // nil when no supervisor replaces the process
	spawner  *spawn.Spawner // starts checks and cells
	probe    *cellProbe     // whether the system confines cells

	link      link // to NATS
	deployed  deployed
	secrets   secretKeeper
	policies  policies
	audit     *audit.Log
	rooms     rooms // what runs events
	checks    ownersChecks
	onlookers onlookers
	usage     *usage.Ledger
	http      httpServer
	members   *members  // of the fleet; nil before run
	census    *census   // whether workers are lost
	condition condition // whether the process should be replaced
	scale     scaling   // how busy the process is, and what the fleet has to do

	readyOnce sync.Once
	up        chan struct{} // closed when the fleet takes events
}

// openTimeout limits the NATS requests while a process opens. The first process of a cluster makes its buckets and
// streams, each on three servers, which may have to find leaders first.
const openTimeout = time.Minute

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
	p = &Process{cfg: cfg, child: c, log: log, registry: prometheus.NewRegistry(), up: make(chan struct{})}
	if err := p.openCells(c); err != nil {
		return nil, err
	}
	p.policies.ready, p.deployed.routes = make(chan struct{}), gateway.NewRoutes(cfg.HTTPPaths)
	if p.secrets.values, err = openSecretValues(cfg, log); err != nil {
		return nil, inventory.Fault(cfg, nil, err)
	}
	begun := p // p is nil when there is an error
	defer func() { err = notOpened(begun, err) }()
	if err := p.onlookers.openTelemetry(cfg, p.registry, log); err != nil {
		return nil, err
	}
	if err := p.link.open(cfg, log); err != nil {
		return nil, err
	}
	js := p.link.sources[""].JS
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
	p.rooms.background = backgroundThreads(cfg, threads)
	// Consumer, dispatcher and pool refer to each other in a circle. The dispatcher is created first and closed last.
	if err = openDispatch(p, threads); err != nil {
		return nil, err
	}
	p.onlookers.openTails(cfg.Prefix, p.link.publish)
	settling := c.introduce(inventory.Consumer(cfg))
	settling.Catalog, settling.OnLog = &p.deployed.catalog, p.onlookers.seeLine
	settling.Observers, settling.Sources = &p.onlookers.observers, p.link.sources
	if p.rooms.consumer, err = consumer.New(settling, p.link.nc, p.rooms.dispatch, log, p.registry); err != nil {
		return nil, err
	}
	if err = openPool(p, js, threads); err != nil {
		return nil, err
	}
	p.condition = condition{supervised: c != nil, log: log, sick: func() error {
		return cmp.Or(p.rooms.pool.Healthy(), p.checks.healthy())
	}}
	p.rooms.wire()
	p.rooms.follow(&p.deployed.catalog, p.deployed.routes)
	p.secrets.guard(&p.deployed.catalog, p.rooms.pool.Renew, log)
	p.deployed.watcher = p.deployed.store.Watcher(p.secrets.gate)
	p.secrets.gate.ready = p.deployed.watcher.Ready()
	p.census = newCensus(p.link.nc, cfg.Prefix, &p.deployed, log)
	return p, nil
}

// notOpened closes a process that could not open, and returns why. Without an error it does nothing.
func notOpened(p *Process, err error) error {
	if err == nil {
		return nil
	}
	defer p.close()
	return inventory.Fault(p.cfg, p.link.nc, err)
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

// openStores opens what deploys and operators store.
func openStores(ctx context.Context, p *Process, js jetstream.JetStream) (err error) {
	cfg := inventory.Deploy(p.cfg)
	cfg.Log = p.log
	if p.policies.bucket, err = deploy.OpenPolicies(ctx, js, cfg); err != nil {
		return err
	}
	if p.secrets.bucket, err = deploy.OpenSecrets(ctx, js, cfg); err != nil {
		return err
	}
	if p.audit, err = audit.Open(ctx, js, inventory.Audit(p.cfg), p.log); err != nil {
		return err
	}
	if err = openRuns(ctx, p, js); err != nil {
		return err
	}
	if err = openUsage(ctx, p, js); err != nil {
		return err
	}
	files := inventory.Assets(p.cfg)
	files.Log = p.log
	p.deployed.files = assetstore.New(js, files)
	if err = p.deployed.files.Open(ctx); err != nil {
		return err
	}
	if p.rooms.leases, err = workerlease.Open(ctx, js, inventory.Leases(p.cfg), p.log, p.registry); err != nil {
		return err
	}
	cfg.Metrics = p.registry
	cfg.CheckSources = sources.Checker{Conns: p.link.sources, Prefix: events.Subjects(p.cfg.Prefix)}.Check
	p.deployed.store, err = deploy.Open(ctx, js, cfg)
	return err
}

// URL is the address where clients connect.
func (p *Process) URL() string { return p.link.url() }

// Ready is closed when the process takes events.
func (p *Process) Ready() <-chan struct{} { return p.up }

// Run works until ctx is done or the process should be replaced, which is an error. Then it drains: it takes no new
// events, returns waiting events to the stream, and gives running ones DrainTimeout to finish. Then it closes
// everything.
func (p *Process) Run(ctx context.Context) error {
	defer p.close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := p.rooms.pool.Open(); err != nil {
		return err
	}
	work, stopWork := context.WithCancel(context.Background())
	defer stopWork()
	var running sync.WaitGroup
	running.Go(func() { p.rooms.dispatch.Run(work) })
	running.Go(func() { p.deployed.follow(work, p.secrets.values.ready) })
	running.Go(func() { p.policies.follow(work, p.SetPolicy) })
	running.Go(func() { p.secrets.follow(work) })
	running.Go(func() { p.probe.await(work, p.rooms.pool.Probed) })
	defer running.Wait()
	defer stopWork()
	var err error
	if p.members, err = p.openMembers(); err != nil {
		p.rooms.pool.Close()
		return err
	}
	running.Go(func() { p.members.run(work) })
	running.Go(func() { p.exchangeBans(work) })
	// Workers, secrets and policies come first: an event must not miss them because this process has just started.
	for _, there := range []<-chan struct{}{p.deployed.watcher.Ready(), p.secrets.values.ready, p.policies.ready} {
		select {
		case <-there:
		case <-ctx.Done():
			p.rooms.pool.Close()
			return nil
		}
	}
	p.census.await(ctx)
	defer p.runParts(work, &running)()
	running.Go(func() { p.condition.watch(work, end) })
	running.Go(func() { p.rooms.leases.Run(ctx, work, p.rooms.lessee) })
	if answers, err := p.openControl(ctx, end); err != nil {
		p.log.Warn().Err(err).Msg("this process does not answer on $SRV")
	} else {
		defer answers.Close()
		p.scale.answer(countsOf(p, answers))
	}
	drained := p.http.serve(ctx, work, p.up, func() { hearSuspects(p) }, p.log, &running)
	defer context.AfterFunc(ctx, func() {
		p.log.Info().Stringer("timeout", p.cfg.DrainTimeout).Msg("draining")
		p.rooms.dispatch.Drain()
		time.AfterFunc(p.cfg.DrainTimeout, stopWork)
	})()
	err = inventory.Fault(p.cfg, p.link.nc, p.rooms.consumer.Run(ctx, work))
	end() // a consumer that could not start ends the process
	<-drained
	p.rooms.pool.Close()
	return cmp.Or(err, p.condition.sick())
}

// announce closes up when the consumer is ready.
func (p *Process) announce(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.rooms.consumer.Ready() != nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	p.readyOnce.Do(func() { close(p.up) })
}

func (p *Process) close() {
	p.onlookers.close()
	p.http.close()
	p.spawner.Close()
	p.link.close()
}

// Config returns the configuration that the process was opened with.
func (p *Process) Config() config.Config { return p.cfg }

// Conn is the process's connection to NATS. It is open until Run returns.
func (p *Process) Conn() *nats.Conn { return p.link.nc }

// Embeds reports whether NATS runs in the process.
func (p *Process) Embeds() bool { return p.link.server != nil }

// Workers returns the store of workers.
func (p *Process) Workers() *deploy.Store { return p.deployed.store }
