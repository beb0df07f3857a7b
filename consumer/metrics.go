package consumer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// metrics are the metrics of the package. The counters of events are resolved once, so that counting is one addition.
type metrics struct {
	delivered, redelivered, replies, tooLarge prometheus.Counter
	acks, ackRetries, renewals, retries, lost prometheus.Counter
	stalls, replaysDropped, recalled, pubAcks prometheus.Counter
	setAside                                  prometheus.Counter
	cancels                                   [4]prometheus.Counter                           // by kind
	events                                    [4][lifecycle.Retry + 1]prometheus.Counter      // by kind and verdict
	orders                                    [4][lifecycle.HoldWorker + 1]prometheus.Counter // by kind and order
	all                                       []prometheus.Collector
	seldom                                    zerolog.Logger // for lines that owners can cause any number of times
}

// pubAckDropped counts an answer of JetStream that came as an event.
func (m *metrics) pubAckDropped(subject string) {
	m.pubAcks.Inc()
	m.seldom.Warn().Str("subject", subject).Msg("an answer of JetStream came as an event, and is dropped: an owner published with the subject of events as reply subject (docs/guides/security.md)")
}

// newMetrics makes the metrics. held are the events in flight, and credits says how many more were asked for.
func newMetrics(cfg Config, log zerolog.Logger, held *inflight, credits func() int64) *metrics {
	m := &metrics{seldom: log.Sample(&zerolog.BurstSampler{Burst: seldomLines, Period: time.Second})}
	var all []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		n := prometheus.NewCounter(prometheus.CounterOpts{Name: "pinwheel_" + name + "_total", Help: help})
		all = append(all, n)
		return n
	}
	m.delivered = counter("deliveries", "Deliveries of events by JetStream, repeated ones included.")
	m.redelivered = counter("redeliveries", "Deliveries of events that were delivered before.")
	m.replies = counter("replies", "Replies published.")
	m.tooLarge = counter("replies_too_large", "Replies replaced because NATS does not take their size.")
	m.acks = counter("acks", "Acks sent, repeated ones included.")
	m.ackRetries = counter("ack_retries", "Groups of acks sent again because they were not confirmed.")
	m.renewals = counter("lease_renewals", "Signs of life sent for events that are still held.")
	m.retries = counter("retries", "Failed runs after which the event is run again.")
	m.lost = counter("leases_lost", "Events given up because their end was not confirmed before their lease ended.")
	m.setAside = counter("events_set_aside", "Events given back for a while because they could not be settled for long.")
	m.stalls = counter("pull_stalls", "Times JetStream was silent and a lane was asked again.")
	m.pubAcks = counter("puback_events", "Answers of JetStream to publishes that came as events, and were dropped.")
	m.replaysDropped = counter("replays_dropped", "Replays that were published twice, of which the second was not run.")
	m.recalled = counter("results_recalled", "Events of idempotent workers that were answered by a stored result and not run.")
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_events_total", Help: "Events by what became of them in this process.",
	}, []string{"kind", "outcome"})
	all = append(all, ended,
		gauge("held_events", "Events this process holds.", func() float64 { return float64(held.len()) }),
		gauge("held_places", "Places of the window that the held events take.", func() float64 { return float64(held.taken()) }),
		gauge("pull_credits", "Events asked for and not delivered yet.",
			func() float64 { return float64(credits()) }),
		gauge("paused", "Owners and workers that are paused, as this process knows: their events do not start.",
			func() float64 { return float64(cfg.Catalog.Paused()) }),
		gauge("window", "Places for events that this process may hold or ask for.", func() float64 { return float64(cfg.Window) }))
	for _, k := range []events.Kind{0, events.Fetch, events.Task, events.Scheduled} {
		for _, v := range []lifecycle.Verdict{lifecycle.Ack, lifecycle.Dead} {
			m.events[k][v] = ended.WithLabelValues(k.String(), v.String())
		}
		m.cancels[k] = ended.WithLabelValues(k.String(), "cancelled")
		for _, o := range []lifecycle.Order{lifecycle.Return, lifecycle.Park, lifecycle.Hold, lifecycle.HoldWorker} {
			m.orders[k][o] = ended.WithLabelValues(k.String(), o.String())
		}
	}
	m.all = all
	return m
}

// registerAll registers collectors; reg may be nil.
func registerAll(reg prometheus.Registerer, all []prometheus.Collector) error {
	if reg == nil {
		return nil
	}
	for _, collector := range all {
		if err := reg.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

func gauge(name, help string, f func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pinwheel_" + name, Help: help}, f)
}

func (m *metrics) ended(k events.Kind, v lifecycle.Verdict) { m.events[k][v].Inc() }

func (m *metrics) cancelled(k events.Kind) { m.cancels[k].Inc() }

func (m *metrics) ordered(k events.Kind, o lifecycle.Order) { m.orders[k][o].Inc() }

// seldomLines is the maximum number of log lines per second about events that owners can cause any number of times.
const seldomLines = 5
