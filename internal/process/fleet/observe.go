package fleet

import (
	"context"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/telemetry"
)

// onlookers see what happens to the events of a process, and what its workers write. The zero value sees nothing.
type onlookers struct {
	observers lifecycle.Observers // of events
	tails     *tail.Hub
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
	o.telemetry.Log(l)
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
