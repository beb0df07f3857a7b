package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/doctor"
	"github.com/pinwheel-run/pinwheel/internal/natsd"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// fleet is one process of the fleet: every room, wired.
type fleet struct {
	cfg      Config
	log      zerolog.Logger
	registry *prometheus.Registry

	server   *natsd.Server // nil when NATS is elsewhere
	nc       *nats.Conn
	store    *deploy.Store
	watcher  *deploy.Watcher
	policies *deploy.Policies
	sync     doctor.Sync // what is known of when NATS writes to disk
	consumer *consumer.Consumer
	dispatch *dispatch.Dispatcher
	reports  *watchedSource // of dispatch, for the pool
	pool     *isolates.Pool
	// background is how many threads of a lower priority the pool has.
	background int
	// idempotent is told by the watcher and asked by the consumer.
	idempotent idempotent
	actives    actives      // told by the watcher
	members    *members     // of the fleet; nil before run
	control    *control     // nil when it cannot answer
	pulse      *pulse       // of the NATS server
	sick       func() error // why the process should be replaced, or nil
	supervised bool         // a supervisor sees to that

	missing atomic.Pointer[error] // why the process takes no events yet, if the bucket has lost workers

	readyOnce sync.Once
	up        chan struct{} // closed when the fleet takes events
}

// openTimeout bounds what opening a fleet asks of NATS.
const openTimeout = 30 * time.Second

// openFleet builds the house back to front: NATS, then who settles, who judges, who runs.
func openFleet(cfg Config, log zerolog.Logger) (f *fleet, err error) {
	f = &fleet{cfg: cfg, log: log, registry: prometheus.NewRegistry(), up: make(chan struct{})}
	begun := f // f is nil when there is an error
	defer func() {
		if err != nil {
			begun.close()
		}
	}()
	f.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := f.connect(); err != nil {
		return nil, err
	}
	if err := checkServer(f.nc); err != nil {
		return nil, err
	}
	f.pulse = &pulse{nc: f.nc}
	js, err := jetstream.New(f.nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if err := consumer.CheckPrefix(ctx, js, events.Subjects(cfg.Prefix)); err != nil {
		return nil, err
	}
	if f.store, err = deploy.Open(ctx, js, deploy.Config{Replicas: cfg.Replicas, Log: log, Metrics: f.registry}); err != nil {
		return nil, err
	}
	if f.policies, err = deploy.OpenPolicies(ctx, js, deploy.Config{Replicas: cfg.Replicas, Log: log}); err != nil {
		return nil, err
	}
	threads := cfg.Threads
	if threads == 0 {
		threads = min(runtime.GOMAXPROCS(0), maxThreads)
	}
	f.background = backgroundThreads(cfg, threads)
	// Consumer, dispatcher and pool know each other in a ring; the dispatcher is closed last.
	if f.dispatch, err = dispatch.New(f.dispatchConfig(threads), log, f.registry); err != nil {
		return nil, err
	}
	if f.consumer, err = consumer.New(f.consumerConfig(), f.nc, f.dispatch, log, f.registry); err != nil {
		return nil, err
	}
	h := &host{nc: f.nc, js: js, subjects: events.Subjects(cfg.Prefix), admit: f.consumer.AdmitSend, log: log}
	f.reports = &watchedSource{Source: f.dispatch}
	if f.pool, err = isolates.New(f.isolatesConfig(threads), f.reports, h, f.registry); err != nil {
		return nil, err
	}
	f.sick = f.pool.Healthy
	f.consumer.SetRunDelays(f.pool.RunDelays)
	f.dispatch.Wire(f.consumer, f.pool)
	f.watcher = f.store.Watcher(installer{f.dispatch, f.pool, &f.idempotent, f.consumer, &f.actives})
	return f, nil
}

// installer is where workers are taken up: the dispatcher has their versions, the pool what lives on between events, the consumer
// their schedules.
type installer struct {
	*dispatch.Dispatcher
	pool *isolates.Pool
	*idempotent
	consumer *consumer.Consumer
	actives  *actives
}

func (i installer) Install(w *events.Worker) {
	i.install(w)
	i.Dispatcher.Install(w)
	i.consumer.Install(w)
	i.actives.install(w) // when an event would find it
}

func (i installer) Remove(owner, name string) {
	i.actives.remove(owner, name)
	i.remove(owner, name)
	i.Dispatcher.Remove(owner, name)
	i.pool.Retire(owner, name)
	i.consumer.Remove(owner, name)
}

// setPolicy says what an owner may have from now on.
func (f *fleet) setPolicy(owner string, p events.Policy) {
	f.log.Info().Str("owner", owner).Interface("policy", p).Msg("owner's policy")
	f.dispatch.SetPolicy(owner, p)
	f.consumer.SetPolicy(owner, p)
	f.pool.SetPolicy(owner, p)
}

// connect finds NATS, or starts one inside the process.
func (f *fleet) connect() (err error) {
	opts := []nats.Option{
		nats.Name("pinwheel"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.RetryOnFailedConnect(false),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				f.log.Warn().Err(err).Msg("NATS is away")
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { f.log.Info().Msg("NATS is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { f.log.Warn().Err(err).Msg("NATS") }),
	}
	if f.cfg.NatsURL == "" && f.cfg.NatsContext == "" {
		f.server, err = openEmbedded(f.cfg, f.log)
		if err != nil {
			return err
		}
		f.nc, err = nats.Connect("", append(opts, f.server.InProcess())...)
		return err
	}
	f.nc, err = connect(f.cfg, opts...)
	return err
}

func (f *fleet) consumerConfig() consumer.Config {
	c := consumer.DefaultConfig()
	c.Prefix, c.Node = events.Subjects(f.cfg.Prefix), nodeName()
	c.Window, c.AckWait, c.MaxBytes = f.cfg.Window, f.cfg.AckWait, int64(f.cfg.MaxBytes)
	c.Replicas, c.ReplyPrefixes = f.cfg.Replicas, f.cfg.ReplyPrefixes
	c.Heartbeat, c.DeadLetterAge, c.DeadLetterBytes = f.cfg.Heartbeat, f.cfg.DeadLetterAge, int64(f.cfg.DeadLetterBytes)
	c.OwnerMaxWaiting, c.Overtake = f.cfg.OwnerMaxWaiting, f.cfg.Overtake
	c.LaneHeld = max(c.Window/8, min(c.Window*3/8, f.cfg.OwnerMaxQueued*3/4))
	c.Duplicates, c.ResultAge, c.Idempotent = f.cfg.Duplicates, f.cfg.ResultAge, f.idempotent.has
	return c
}

func nodeName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return fmt.Sprintf("%s/%d", name, os.Getpid())
}

func (f *fleet) dispatchConfig(threads int) dispatch.Config {
	return dispatch.Config{
		Threads: threads, Background: f.background, Slots: f.cfg.Slots, OwnerMaxRunning: f.cfg.OwnerMaxRunning, OwnerMaxQueued: f.cfg.OwnerMaxQueued,
	}
}

func (f *fleet) isolatesConfig(threads int) isolates.Config {
	c := isolates.DefaultConfig(threads)
	c.Background = f.background
	c.Slots, c.MaxIsolates, c.ContextMaxReuses = f.cfg.Slots, max(threads+f.background, f.cfg.MaxIsolates), f.cfg.ContextMaxReuses
	c.ContextKeepMB, c.SpareIsolates, c.CodeCacheBytes = int(f.cfg.ContextKeep>>20), f.cfg.SpareIsolates, int(f.cfg.CodeCache)
	c.HeapMB, c.OwnerHeapMB, c.OwnerMaxIsolates = int(f.cfg.HeapMax>>20), int(f.cfg.OwnerHeapMax>>20), f.cfg.OwnerMaxIsolates
	c.MaxReply, c.Held = int(f.nc.MaxPayload()), collectMore
	c.AllowAddresses, c.AllowHosts = reach(f.cfg.AllowPrivateAddresses)
	return c
}

// reach takes the setting AllowPrivateAddresses apart.
func reach(allowed []string) (addresses []netip.Prefix, hosts []string) {
	for _, a := range allowed {
		if p, err := netip.ParsePrefix(a); err == nil {
			addresses = append(addresses, p.Masked())
		} else if ip, err := netip.ParseAddr(strings.Trim(a, "[]")); err == nil {
			addresses = append(addresses, netip.PrefixFrom(ip, ip.BitLen()))
		} else {
			hosts = append(hosts, a)
		}
	}
	return addresses, hosts
}

// url is where clients connect.
func (f *fleet) url() string {
	if f.server != nil {
		return f.server.URL()
	}
	return f.nc.ConnectedUrl()
}

// ready is closed when the fleet takes events.
func (f *fleet) ready() <-chan struct{} { return f.up }

// run works until ctx is done or the process should be replaced, which is an error, and then drains: no new
// events, what waits goes back, what runs has DrainTimeout to finish. Then it closes everything.
func (f *fleet) run(ctx context.Context) error {
	defer f.close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := f.pool.Open(); err != nil {
		return err
	}
	work, stopWork := context.WithCancel(context.Background())
	defer stopWork()
	var running sync.WaitGroup
	running.Go(func() { f.dispatch.Run(work) })
	running.Go(func() { _ = f.watcher.Run(work) }) // it returns work's error only
	running.Go(func() { f.policies.Watch(work, f.setPolicy) })
	defer running.Wait()
	defer stopWork()
	var err error
	if f.members, err = f.openMembers(); err != nil {
		f.pool.Close()
		return err
	}
	running.Go(func() { f.members.run(work) })
	running.Go(func() { f.tellBars(work) })
	// Workers first: an event must not find its worker missing because we have just started.
	select {
	case <-f.watcher.Ready():
	case <-ctx.Done():
		f.pool.Close()
		return nil
	}
	f.awaitWorkers(ctx)
	running.Go(func() { f.tellInstalled(work) })
	running.Go(func() { f.announce(work) })
	running.Go(func() { f.watchHealth(work, end) })
	running.Go(func() { f.pulse.run(work) })
	if f.control, err = f.openControl(ctx, end); err != nil {
		f.log.Warn().Err(err).Msg("this process does not answer on $SRV")
	} else {
		defer f.control.close()
	}
	defer context.AfterFunc(ctx, func() {
		f.log.Info().Stringer("timeout", f.cfg.DrainTimeout).Msg("draining")
		f.dispatch.Drain()
		time.AfterFunc(f.cfg.DrainTimeout, stopWork)
	})()
	err = f.consumer.Run(ctx, work)
	f.pool.Close()
	return cmp.Or(err, f.sick())
}

// announce closes up once the consumer is ready.
func (f *fleet) announce(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for f.consumer.Ready() != nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	f.readyOnce.Do(func() { close(f.up) })
}

func (f *fleet) close() {
	if f.nc != nil {
		f.nc.Close()
	}
	if f.server != nil {
		f.server.Close()
	}
}
