package fleet

import (
	"context"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/telemetry"
)

// openTelemetry registers the metrics of the process itself, and begins to send what the OTEL_* variables say.
func openTelemetry(p *Process) (err error) {
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	settings, err := telemetry.Read(os.Getenv)
	if err != nil {
		return err
	}
	p.telemetry, err = telemetry.Open(context.Background(), telemetry.Config{
		Settings: settings, Version: config.Version(), Node: nodeName(), OwnerRate: p.cfg.TraceOwnerRate,
		Gatherer: p.registry, Log: p.log,
	})
	if err != nil {
		return err
	}
	p.telemetry.Observe(&p.observers)
	if len(p.cfg.MetricsOwners) == 0 {
		return nil
	}
	owners, err := telemetry.NewOwners(p.cfg.MetricsOwners, p.registry)
	if err == nil {
		p.observers.Add(owners)
	}
	return err
}

// seeLines returns what shows a log line of a worker to the tails of p, and sends it to the collector. It does not
// wait.
func seeLines(p *Process) func(*events.LogLine) {
	return func(l *events.LogLine) {
		p.tails.Log(l)
		p.telemetry.Log(l)
	}
}

// Observe lets o see the events of the process from now on.
func (p *Process) Observe(o lifecycle.Observer) { p.observers.Add(o) }

// OnTick sets f, which is called with each schedule tick that this process makes.
func (p *Process) OnTick(f func(owner, worker, schedule string, tick time.Time)) {
	p.consumer.OnTick(f)
}
