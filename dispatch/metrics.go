package dispatch

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// metrics are counted under the dispatcher's lock, which is held anyway. They become Prometheus metrics
// only when they are collected.
type metrics struct {
	wait      histogram
	duration  [len(events.Kinds) + 1]histogram
	retries   [len(events.Reasons) + 1]uint64 // the last is for reasons that are not listed
	failures  [len(events.Reasons) + 1]uint64
	warm      uint64
	cold      uint64
	wakes     uint64
	throttled uint64
	parked    uint64
}

func (m *metrics) ended(k events.Kind, took time.Duration, warm bool) {
	if int(k) < len(m.duration) {
		m.duration[k].observe(took)
	}
	if warm {
		m.warm++
	} else {
		m.cold++
	}
}

func (m *metrics) failed(r events.Reason, v lifecycle.Verdict) {
	i := 0
	for i < len(events.Reasons) && events.Reasons[i] != r {
		i++
	}
	if v == lifecycle.Retry {
		m.retries[i]++
	} else {
		m.failures[i]++
	}
}

// flow adds up what is counted by reason and kind.
func (m *metrics) flow() Flow {
	f := Flow{Parked: m.parked, Wait: m.wait.export()}
	for i := range m.retries {
		f.Retried += m.retries[i]
		f.Failed += m.failures[i]
	}
	var all histogram
	for k := range m.duration {
		all.add(&m.duration[k])
	}
	f.Duration = all.export()
	return f
}

// bounds are the upper bounds of the histograms' buckets, in seconds.
var bounds = [...]float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 300,
}

// histogram counts without atomics: the dispatcher's lock protects it.
type histogram struct {
	buckets [len(bounds)]uint64 // not cumulative
	count   uint64
	sum     time.Duration
}

func (h *histogram) observe(d time.Duration) {
	h.count++
	h.sum += d
	s := d.Seconds()
	for i, bound := range bounds {
		if s <= bound {
			h.buckets[i]++
			return
		}
	}
}

// add adds what export returns.
func (h *histogram) add(o *histogram) {
	h.count += o.count
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}

func (h *histogram) export() Histogram {
	return Histogram{Count: h.count, Buckets: slices.Clone(h.buckets[:])}
}

func (h *histogram) metric(desc *prometheus.Desc, labels ...string) prometheus.Metric {
	upTo := make(map[float64]uint64, len(bounds))
	sum := uint64(0)
	for i, bound := range bounds {
		sum += h.buckets[i]
		upTo[bound] = sum
	}
	return prometheus.MustNewConstHistogram(desc, h.count, h.sum.Seconds(), upTo, labels...)
}
