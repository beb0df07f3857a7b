package dispatch

import (
	"math"
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
	labels    workerLabels
}

// workerCounts are what one worker has done here since it was installed.
type workerCounts struct {
	ended, failed uint64 // attempts that started
	duration      histogram
	last          time.Time // end of the latest
	recent        float64   // attempts, of which each counts half as much after recentFor
	since         time.Time // until when recent is up to date
	labelled      uint64    // of ended, those counted under the worker's own label
	labelledBad   uint64    // of failed
	label         bool      // it has a label of its own
}

// recentFor is after what time an attempt counts half as much for the question which workers are the busiest.
const recentFor = time.Minute

// rate is workerCounts.recent at a time.
func (c *workerCounts) rate(now time.Time) float64 {
	return c.recent * math.Exp2(-max(0, now.Sub(c.since)).Seconds()/recentFor.Seconds())
}

// Workers choose their names, and have any number of them. So few have a label of their own in metrics: the first ones
// that run, and not many of one owner. All others are counted together.
const (
	maxWorkerLabels = 50
	maxOwnerLabels  = 10
)

// workerLabels are the workers with a label of their own, and what all others have done.
type workerLabels struct {
	of            map[string]int // workers with a label, by their owners
	n             int
	others, wrong uint64 // attempts, and those that failed
}

// worked counts an attempt of a worker.
func (m *metrics) worked(r *route, owner string, now time.Time, took time.Duration, failed bool) {
	c := &r.done
	if step := now.Sub(c.since); step > time.Second { // not for each event
		c.recent, c.since = c.rate(now), now
	}
	c.recent++
	c.ended++
	c.last = now
	c.duration.observe(took)
	if !c.label && !r.gone && m.labels.n < maxWorkerLabels && m.labels.of[owner] < maxOwnerLabels {
		if m.labels.of == nil {
			m.labels.of = map[string]int{}
		}
		c.label = true
		m.labels.n++
		m.labels.of[owner]++
	}
	ended, wrong := &m.labels.others, &m.labels.wrong
	if c.label {
		ended, wrong = &c.labelled, &c.labelledBad
	}
	*ended++
	if failed {
		c.failed++
		*wrong++
	}
}

// unlabel gives the label of a worker that was removed to another one. Its series ends.
func (m *metrics) unlabel(r *route, owner string) {
	if !r.done.label {
		return
	}
	r.done.label = false
	m.labels.n--
	if m.labels.of[owner]--; m.labels.of[owner] == 0 {
		delete(m.labels.of, owner)
	}
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

// collector passes a Dispatcher's metrics to Prometheus.
type collector struct{ d *Dispatcher }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pinwheel_"+name, help, labels, nil)
}

var (
	descQueued   = desc("dispatch_queued", "Events that wait for a thread in this process.")
	descRunning  = desc("dispatch_running", "Attempts in progress.")
	descAsleep   = desc("dispatch_threads_asleep", "Threads that have nothing to do.")
	descOwners   = desc("dispatch_owners", "Owners that have a worker installed.")
	descHeavy    = desc("dispatch_heavy_owners", "Owners that take more than their share of the CPU. Their events run on background threads.")
	descWait     = desc("dispatch_wait_seconds", "Time from an event's arrival in this process to its start.")
	descAttempts = desc("dispatch_attempts_total",
		"Attempts that ended, by whether their context had run before.", "context")
	descWakes     = desc("dispatch_wakes_total", "Times a sleeping thread was woken.")
	descThrottled = desc("dispatch_throttled_total",
		"Times an owner with waiting events reached its limit of running ones.")
	descParked     = desc("dispatch_parked_total", "Events parked because their owner had too many waiting.")
	descFleet      = desc("fleet_processes", "Processes of the fleet that this one knows of, including itself.")
	descSuspects   = desc("dispatch_suspects", "Events during whose runs processes died, and that wait to run watched or alone.")
	descBans       = desc("dispatch_bans", "Workers and owners whose events are refused because they cost threads.")
	descDirectBans = desc("dispatch_direct_bans", "Workers and owners whose direct events are refused because processes died while they ran.")
	descTrials     = desc("dispatch_direct_suspects", "Workers that ran when a process died, and whose direct events run beside those of no other such worker at first.")
	descRefused    = desc("dispatch_direct_refused_total", "Direct events refused because processes died while their worker ran.")
	descAlone      = desc("dispatch_alone_total", "Events that ran alone because processes died during their runs.")
	descRetries    = desc("dispatch_retries_total", "Failed attempts after which the event runs again.", "reason")
	descFailures   = desc("dispatch_failures_total", "Events that failed for good.", "reason")
	descWorkers    = desc("worker_attempts_total",
		"Attempts that ended, by worker. In a process at most 50 workers have a label of their own, 10 of an owner. The others are counted together, as other.", "worker", "outcome")
	descDuration = desc("event_duration_seconds", "Time from the start of an attempt to the end of its last work.", "kind")
)

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descQueued, descRunning, descAsleep, descOwners, descHeavy, descWait, descAttempts, descWakes, descThrottled,
		descParked, descFleet, descSuspects, descAlone, descBans, descDirectBans, descTrials, descRefused, descRetries,
		descFailures, descDuration, descWorkers,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	c.d.mu.Lock()
	m, stats := *c.d.metrics, c.d.stats()
	processes := c.d.gates.owners.processes
	crashes := &c.d.gates.crashes
	waiting, alone, refused := crashes.queued(), crashes.alone, crashes.refused
	bans, direct, suspects := crashes.holding(time.Now())
	workers := c.d.labelled()
	c.d.mu.Unlock()
	gauge := func(desc *prometheus.Desc, n int) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n))
	}
	count := func(desc *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(descQueued, stats.Queued)
	gauge(descRunning, stats.Running)
	gauge(descAsleep, stats.Asleep)
	gauge(descOwners, stats.Owners)
	gauge(descHeavy, stats.Heavy)
	gauge(descFleet, processes)
	gauge(descSuspects, waiting)
	gauge(descBans, bans)
	gauge(descDirectBans, direct)
	gauge(descTrials, suspects)
	count(descRefused, refused)
	count(descAlone, alone)
	ch <- m.wait.metric(descWait)
	count(descAttempts, m.warm, "warm")
	count(descAttempts, m.cold, "cold")
	count(descWakes, m.wakes)
	count(descThrottled, m.throttled)
	count(descParked, m.parked)
	for i := range m.failures {
		reason := "other"
		if i < len(events.Reasons) {
			reason = string(events.Reasons[i])
		}
		count(descRetries, m.retries[i], reason)
		count(descFailures, m.failures[i], reason)
	}
	for _, w := range workers {
		count(descWorkers, w.ended-w.failed, w.name, "ok")
		count(descWorkers, w.failed, w.name, "failed")
	}
	for _, k := range events.Kinds {
		ch <- m.duration[k].metric(descDuration, k.String())
	}
}

// labelledWorker is what a metric says of a worker, or of all that have no label.
type labelledWorker struct {
	name          string
	ended, failed uint64
}

// labelled returns the workers with a label of their own, and the others together. d.mu must be held.
func (b *backlog) labelled() []labelledWorker {
	list := []labelledWorker{{"other", b.metrics.labels.others, b.metrics.labels.wrong}} // a worker has a / in its name
	for _, o := range b.owners {
		for _, r := range o.routes {
			if r.done.label {
				list = append(list, labelledWorker{o.name + "/" + r.name, r.done.labelled, r.done.labelledBad})
			}
		}
	}
	return list
}
