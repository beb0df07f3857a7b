package fleet

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
	"github.com/pinwheel-run/pinwheel/internal/operate/usage"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/process/telemetry"
)

// onlookers see what happens to the events of a process, and what its workers write. The zero value sees nothing.
type onlookers struct {
	observers lifecycle.Observers // of events
	tails     *tail.Hub
	runs      *runs.Recorder // of the run history; nil = there is none
	// telemetry sends to the collector; nil = nothing is sent.
	telemetry *telemetry.Telemetry
}

// openTelemetry registers the metrics of the process itself, and begins to send what the OTEL_* variables say.
func (o *onlookers) openTelemetry(cfg config.Config, registry *prometheus.Registry, log zerolog.Logger) error {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	settings, err := telemetry.Read(os.Getenv)
	if err != nil {
		return err
	}
	o.telemetry, err = telemetry.Open(context.Background(), telemetry.Config{
		Settings: settings, Version: config.Version(), Node: nodeName(), OwnerRate: cfg.TraceOwnerRate,
		Gatherer: registry, Log: log,
	})
	if err != nil {
		return err
	}
	o.telemetry.Observe(&o.observers)
	if len(cfg.MetricsOwners) == 0 {
		return nil
	}
	owners, err := telemetry.NewOwners(cfg.MetricsOwners, registry)
	if err == nil {
		o.observers.Add(owners)
	}
	return err
}

// openTails opens the tails, whose lines go out by publish.
func (o *onlookers) openTails(prefix string, publish func(subject string, data []byte) error) {
	o.tails = tail.New(tail.Config{Node: nodeName(), Subjects: events.Subjects(prefix), Observers: &o.observers,
		Publish: publish})
}

// seeLine shows a log line of a worker to the tails, and sends it to the collector. It does not wait.
func (o *onlookers) seeLine(l *events.LogLine) {
	o.tails.Log(l)
	o.runs.Log(l)
	o.telemetry.Log(l)
}

// openRuns opens the run history. It observes from now on.
func openRuns(ctx context.Context, p *Process, js jetstream.JetStream) (err error) {
	o := &p.onlookers
	o.runs, err = runs.Open(ctx, inventory.Runs(p.cfg), runs.Parts{
		NC: p.link.nc, JS: js, Policy: p.deployed.catalog.Policy, Metrics: p.registry, Log: p.log,
		Stored: func(bytes int) { p.rooms.consumer.GrewRunHistory(bytes) },
	})
	if o.runs != nil {
		o.observers.Add(o.runs)
	}
	return err
}

func (o *onlookers) close() {
	o.tails.Close()
	o.telemetry.Close()
}

// Observe lets o see the events of the process from now on.
func (p *Process) Observe(o lifecycle.Observer) { p.onlookers.observers.Add(o) }

// OnTick sets f, which is called with each schedule tick that this process makes.
func (p *Process) OnTick(f func(owner, worker, schedule string, tick time.Time)) {
	p.rooms.consumer.OnTick(f)
}

// openUsage opens what counts the usage of all workers.
func openUsage(ctx context.Context, p *Process, js jetstream.JetStream) (err error) {
	cfg := inventory.Usage(p.cfg)
	cfg.Log = p.log
	cfg.Take = func(each func(owner, worker string, c usage.Counts)) {
		p.rooms.dispatch.Figures().TakeUsage(func(owner, worker string, u dispatch.Usage) {
			each(owner, worker, usage.Counts{Attempts: u.Attempts, CPUMicros: micros(u.CPU), WallMicros: micros(u.Wall),
				BytesIn: u.BytesIn, BytesOut: u.BytesOut})
		})
	}
	cfg.Stored = func(ctx context.Context) (map[string]uint64, error) { return storedByOwners(ctx, js) }
	p.usage, err = usage.Open(ctx, js, cfg)
	return err
}

func micros(d time.Duration) uint64 { return uint64(max(0, d.Microseconds())) }

// storedByOwners returns the bytes of the streams of owners.
func storedByOwners(ctx context.Context, js jetstream.JetStream) (map[string]uint64, error) {
	all := map[string]uint64{}
	infos := js.ListStreams(ctx)
	for info := range infos.Info() {
		for _, prefix := range []string{resources.BucketStream(bindings.KVBucket("")),
			resources.ObjectsStream(bindings.ObjectsBucket("")), resources.BucketStream(bindings.CacheBucket(""))} {
			if owner, ok := strings.CutPrefix(info.Config.Name, prefix); ok {
				all[owner] += info.State.Bytes
			}
		}
	}
	return all, infos.Err()
}
