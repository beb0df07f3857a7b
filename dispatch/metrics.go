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
func (m *metrics) worked(c *workerCounts, now time.Time, took time.Duration, failed bool) {
	if step := now.Sub(c.since); step > time.Second { // not for each event
		c.recent, c.since = c.rate(now), now
	}
	c.recent++
	c.ended++
	c.last = now
	c.duration.observe(took)
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

// label gives a worker a label of its own if there is one left.
func (m *metrics) label(c *workerCounts, owner string) {
	if c.label || m.labels.n >= maxWorkerLabels || m.labels.of[owner] >= maxOwnerLabels {
		return
	}
	if m.labels.of == nil {
		m.labels.of = map[string]int{}
	}
	c.label = true
	m.labels.n++
	m.labels.of[owner]++
}

// unlabel gives the label of a worker that was removed to another one. Its series ends.
func (m *metrics) unlabel(c *workerCounts, owner string) {
	if !c.label {
		return
	}
	c.label = false
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

// Flow is what has happened in a Dispatcher since it was made.
type Flow struct {
	Retried  uint64    // attempts that failed, and after which the event runs again
	Failed   uint64    // events that failed for good
	Parked   uint64    // times an event was parked
	Wait     Histogram // from the arrival of an event in this process to its start
	Duration Histogram // of attempts that started and ended, from their start to the end of their last work
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

// Histogram counts durations.
type Histogram struct {
	Count uint64
	// Buckets are how many were at most as long as the bound of the same index in Bounds, and longer than the bound
	// before. Longer ones are only in Count.
	Buckets []uint64
}

// Bounds are the upper bounds of the buckets of a Histogram, seconds.
func Bounds() []float64 { return slices.Clone(bounds[:]) }

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

// Usage is what attempts at events of a worker have used. Each event of a batch is an attempt, and the times are those
// of the batch.
type Usage struct {
	Attempts          uint64
	CPU, Wall         time.Duration
	BytesIn, BytesOut uint64 // of bodies; BytesOut without what streams after the head of a reply
}

// usages is what workers have used and nobody has taken. Attempts that end after their worker was removed count too.
type usages struct {
	routes []*route // those whose usage is not zero
}

// ended counts an attempt that was made. The dispatcher must be locked.
func (u *usages) ended(r *run, end *lifecycle.End, took time.Duration) {
	if end.NotRun() {
		return
	}
	of := &r.route.usage
	if of.Attempts == 0 {
		u.routes = append(u.routes, r.route)
	}
	of.CPU += end.CPU
	of.Wall += took
	of.BytesOut += uint64(r.Sent)
	if r.Batch == nil {
		of.event(r.Event)
	}
	for _, e := range r.Batch {
		of.event(e)
	}
}

func (u *Usage) event(e *lifecycle.Delivery) {
	u.Attempts++
	u.BytesIn += uint64(len(e.Body))
	if e.Parts != nil {
		u.BytesIn += uint64(max(0, e.Parts.Size))
	}
}

// Add adds what others have used.
func (u *Usage) Add(o Usage) {
	u.Attempts, u.CPU, u.Wall = u.Attempts+o.Attempts, u.CPU+o.CPU, u.Wall+o.Wall
	u.BytesIn, u.BytesOut = u.BytesIn+o.BytesIn, u.BytesOut+o.BytesOut
}

// TakeUsage calls f with what each worker has used since the last call. Only one goroutine may call it. f is called
// without the dispatcher's lock.
func (f Figures) TakeUsage(each func(owner, worker string, u Usage)) {
	type taken struct {
		owner, worker string
		usage         Usage
	}
	f.d.mu.Lock()
	list := make([]taken, len(f.d.used.routes))
	for i, r := range f.d.used.routes {
		list[i] = taken{r.owner.name, r.name, r.usage}
		r.usage = Usage{}
	}
	f.d.used.routes = nil
	f.d.mu.Unlock()
	for _, t := range list {
		each(t.owner, t.worker, t.usage)
	}
}
