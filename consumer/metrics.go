package consumer

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
)

// metrics of the room. Those of each event are resolved once, so that counting is an addition.
type metrics struct {
	delivered, redelivered, replies, chunks, tooLarge prometheus.Counter
	acks, ackRetries, renewals, retries, lost         prometheus.Counter
	stalls, callsStored, callsRefused, swept          prometheus.Counter
	replaysDropped, putOff, recalled, callsLimited    prometheus.Counter
	overtook, pubAcks, unschedulesLimited             prometheus.Counter
	sendsLimited                                      prometheus.Counter
	dead, hooks, noRoom, dropped                      *prometheus.CounterVec
	events                                            [4][6]prometheus.Counter // by kind and verdict
}

func newMetrics(reg prometheus.Registerer, c *Consumer) (*metrics, error) {
	m := &metrics{}
	var all []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		n := prometheus.NewCounter(prometheus.CounterOpts{Name: "pinwheel_" + name + "_total", Help: help})
		all = append(all, n)
		return n
	}
	m.delivered = counter("deliveries", "Events that came from JetStream, again or for the first time.")
	m.redelivered = counter("redeliveries", "Events that came again.")
	m.replies = counter("replies", "Replies published.")
	m.chunks = counter("reply_chunks", "Chunks of replies' bodies published.")
	m.tooLarge = counter("replies_too_large", "Replies replaced because NATS does not take their size.")
	m.acks = counter("acks", "Acks sent, repeated ones included.")
	m.ackRetries = counter("ack_retries", "Groups of acks sent again because they were not confirmed.")
	m.renewals = counter("lease_renewals", "Signs of life sent for events that are still held.")
	m.retries = counter("retries", "Failed runs after which the event is run again.")
	m.putOff = counter("put_off", "Events stored to run later: delayed by their publishers, or waiting long for a retry.")
	ticks := counter("ticks", "Events of schedules that this process made.")
	c.ticker.made = func(n int) { ticks.Add(float64(n)) }
	m.lost = counter("leases_lost", "Events let go because their end was not confirmed in time.")
	m.stalls = counter("pull_stalls", "Times JetStream was silent and a lane was asked again.")
	m.swept = counter("swept_messages", "Acked messages that nats-server had not removed.")
	m.overtook = counter("overtakes", "Events brought past another owner's backlog in their lane.")
	m.pubAcks = counter("puback_events", "Answers of JetStream to publishes that came as events, and were dropped.")
	m.callsStored = counter("calls_stored", "Calls that the bridge stored as events.")
	m.callsLimited = counter("calls_limited", "Calls refused because their owner called more often than it may.")
	m.unschedulesLimited = counter("unschedules_limited", "Requests to cancel delayed events that were refused because their owner made too many.")
	m.sendsLimited = counter("sends_limited", "Tasks of workers refused because their owner sent more often than it may, or has too much stored.")
	m.callsRefused = counter("calls_refused", "Calls that the bridge answered with an error.")
	m.replaysDropped = counter("replays_dropped", "Replays that were published twice, of which the second was not run.")
	m.recalled = counter("results_recalled", "Events of idempotent workers that were answered by a stored result and not run.")
	m.hooks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_dead_letters_told_total", Help: "Dead letters of which somebody was to be told, by what came of it: told, lost, refused.",
	}, []string{"outcome"})
	m.dead = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_dead_letters_total", Help: "Dead letters written, by reason.",
	}, []string{"reason"})
	m.noRoom, m.dropped = storedCounters()
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_events_total", Help: "Events by what became of them in this process.",
	}, []string{"kind", "outcome"})
	all = append(all, m.dead, m.hooks, m.noRoom, m.dropped, ended, usageGauges{c.usage, c.nc},
		gauge("held_events", "Events this process holds.", func() float64 { return float64(c.table.len()) }),
		gauge("pull_credits", "Events asked for and not delivered yet.", func() float64 { return float64(c.puller.credits.Load()) }),
		gauge("window", "Most events this process may hold or ask for.", func() float64 { return float64(c.cfg.Window) }))
	for _, k := range []events.Kind{0, events.Fetch, events.Task, events.Scheduled} {
		for _, v := range []events.Verdict{events.Ack, events.Dead, events.Return, events.Park} {
			m.events[k][v] = ended.WithLabelValues(k.String(), v.String())
		}
	}
	return m, registerAll(reg, all)
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

func (m *metrics) ended(k events.Kind, v events.Verdict) { m.events[k][v].Inc() }
