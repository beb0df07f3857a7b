package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Owners counts what owners do that an operator names. It is a lifecycle.Observer.
type Owners struct {
	lifecycle.Unobserved

	of map[string]*ownerCounts // never changed
}

// ownerCounts are the metrics of one owner.
type ownerCounts struct {
	ok, failed, broken, retried, interrupted, cpu, waited, dead prometheus.Counter
}

// NewOwners registers the metrics of the owners of these names. Each costs eight series.
func NewOwners(names []string, reg prometheus.Registerer) (*Owners, error) {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_owner_attempts_total",
		Help: "Attempts at events of an owner named by PINWHEEL_METRICS_OWNERS, by outcome: ok, failed, broken (the body of the response ended before it was complete), retry (the handler asked for it) or interrupted.",
	}, []string{"owner", "outcome"})
	one := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pinwheel_owner_" + name, Help: help}, []string{"owner"})
	}
	cpu := one("cpu_seconds_total", "CPU time of the attempts of an owner named by PINWHEEL_METRICS_OWNERS.")
	waited := one("wait_seconds_total", "Time that events of an owner named by PINWHEEL_METRICS_OWNERS waited from their storing until their first attempts started.")
	dead := one("dead_letters_total", "Events of an owner named by PINWHEEL_METRICS_OWNERS that failed for good.")
	for _, c := range []prometheus.Collector{attempts, cpu, waited, dead} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	o := &Owners{of: make(map[string]*ownerCounts, len(names))}
	for _, name := range names {
		of := func(outcome string) prometheus.Counter { return attempts.WithLabelValues(name, outcome) }
		o.of[name] = &ownerCounts{
			of("ok"), of("failed"), of("broken"), of("retry"), of("interrupted"), cpu.WithLabelValues(name),
			waited.WithLabelValues(name), dead.WithLabelValues(name),
		}
	}
	return o, nil
}

// Started implements lifecycle.Observer.
func (o *Owners) Started(a *lifecycle.Attempt) {
	c := o.of[a.Worker.Owner]
	if c == nil {
		return
	}
	if a.Batch == nil {
		c.started(a, a.Event, a.Number)
	}
	for _, e := range a.Batch {
		c.started(a, e, e.Attempt)
	}
}

func (c *ownerCounts) started(a *lifecycle.Attempt, e *lifecycle.Delivery, number int) {
	if number <= 1 && e != nil {
		c.waited.Add(max(0, a.Start.Sub(e.Stored).Seconds()))
	}
}

// Ended implements lifecycle.Observer.
func (o *Owners) Ended(r *lifecycle.Report) {
	a, end := r.Attempt, r.End
	c := o.of[a.Worker.Owner]
	if c == nil || end.NotRun() {
		return
	}
	c.cpu.Add(end.CPU.Seconds())
	if a.Batch == nil {
		c.ended(end)
	}
	for i := range a.Batch {
		one, _ := end.Of(i)
		c.ended(&one)
	}
}

func (c *ownerCounts) ended(end *lifecycle.End) {
	switch {
	case end.Failure != nil:
		c.failed.Inc()
	case end.Broken != nil:
		c.broken.Inc()
	case end.Interrupted:
		c.interrupted.Inc()
	case end.Retry:
		c.retried.Inc()
	default:
		c.ok.Inc()
	}
}

// Settled implements lifecycle.Observer.
func (o *Owners) Settled(s *lifecycle.Settlement) {
	if c := o.of[s.Event.Owner]; c != nil && s.Outcome.Verdict == lifecycle.Dead {
		c.dead.Inc()
	}
}
