package sources

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of all sources of a process.
type metrics struct {
	s                           *Sources
	stored, failed, unfit, lost prometheus.Counter
	states, lag, behind         *prometheus.Desc
}

// maxLabels is how many workers have a label of their own in a metric.
const maxLabels = 50

func newMetrics(s *Sources) *metrics {
	events := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "pinwheel_source_" + name + "_total", Help: help})
	}
	return &metrics{
		s:      s,
		stored: events("events", "Messages of sources that were stored as events."),
		failed: events("failures", "Messages of sources that went back to their source because their event was not stored."),
		unfit:  events("unfit", "Messages of sources that are too large for an event, or whose headers cannot be those of one."),
		lost:   events("lost", "Messages of core subjects that were not stored."),
		states: prometheus.NewDesc("pinwheel_sources",
			"Sources of active versions by what they do in the process: reads, backs off (the owner has its share, its events wait, or nothing is stored now), paused, failing, or no stream.",
			[]string{"state"}, nil),
		behind: prometheus.NewDesc("pinwheel_sources_behind",
			"Sources at which messages have waited for more than 10 minutes without a break, as the process knows. Those that fail or are paused do not count.", nil, nil),
		lag: prometheus.NewDesc("pinwheel_source_pending",
			"Messages that wait at sources, by worker, as the process heard last. Every process has all sources: use max by (worker). The 50 workers with most have a label of their own. The others are counted together, as other.",
			[]string{"worker"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range []prometheus.Counter{m.stored, m.failed, m.unfit, m.lost} {
		to <- c.Desc()
	}
	for _, d := range []*prometheus.Desc{m.states, m.behind, m.lag} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range []prometheus.Counter{m.stored, m.failed, m.unfit, m.lost} {
		to <- c
	}
	states, lag, behind, now := map[State]int{}, map[string]uint64{}, 0, time.Now()
	for _, one := range m.s.all("") {
		states[one.State]++
		lag[one.Owner+"/"+one.Worker] += one.Pending
		if one.IsFarBehind(now) {
			behind++
		}
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, state := range States {
		gauge(m.states, float64(states[state]), string(state))
	}
	gauge(m.behind, float64(behind))
	others := uint64(0)
	for i, worker := range slices.SortedFunc(maps.Keys(lag), func(a, b string) int {
		return cmp.Or(cmp.Compare(lag[b], lag[a]), cmp.Compare(a, b))
	}) {
		if i < maxLabels {
			gauge(m.lag, float64(lag[worker]), worker)
		} else {
			others += lag[worker]
		}
	}
	gauge(m.lag, float64(others), "other") // a worker has a / in its name
}
