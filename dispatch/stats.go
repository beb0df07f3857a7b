package dispatch

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Stats is the state of a Dispatcher at one moment.
type Stats struct {
	Queued   int // events that wait
	Runnable int // of these, events that could start now if a slot is free
	Running  int // attempts in progress
	Owners   int // owners that have a worker installed
	Heavy    int // of these, owners that take more than their share of the CPU
	Asleep   int // threads of pool 0 that sleep
	Draining bool
}

// Figures are what people and metrics may know of a Dispatcher. Nothing is decided by them: they are outdated when they
// are returned. Any goroutine may call the methods.
type Figures struct{ d *Dispatcher }

// Figures returns what may be read of d.
func (d *Dispatcher) Figures() Figures { return Figures{d} }

// Flow is what has happened so far.
func (f Figures) Flow() Flow {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.metrics.flow()
}

// Slept returns how long all threads together have slept so far. A thread of which all slots are taken does not sleep.
// Each thread of another pool that works counts as one of pool 0 that does not sleep, as long as there are any: so the
// process with its cells never sleeps longer than its Threads and Background would, and never less than no time.
func (f Figures) Slept() time.Duration {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.pools.rest.until(time.Now())
}

// OwnerStats is the state of one owner in a Dispatcher.
type OwnerStats struct {
	Owner   string
	Queued  int
	Running int
	Parking bool // its further events are parked until its queue is half empty
}

// WorkerState says what a process has of a worker.
type WorkerState string

// The states, from the one with most of a worker to that with least.
const (
	WorkerActive    WorkerState = "active"    // events of it run
	WorkerIdle      WorkerState = "idle"      // a context waits for events
	WorkerEphemeral WorkerState = "ephemeral" // it has no context between events: its mode is oneshot
	WorkerOffline   WorkerState = "offline"   // it has no context now
)

// WorkerStats is what one worker has done in a Dispatcher since it was installed.
type WorkerStats struct {
	Owner, Worker string
	State         WorkerState
	Running       int
	Ended, Failed uint64    // attempts that started
	Duration      Histogram // of them
	Last          time.Time // end of the latest
}

// Work is what workers have done in a Dispatcher since each was installed.
type Work struct {
	OwnerStats                  // of the owner that was asked for
	Ended, Failed uint64        // attempts that started, of all workers
	Duration      Histogram     // of them
	Workers       []WorkerStats // some, those that ran most in the last minutes first
}

// BusyWorkers returns what the workers of an owner have done in a Dispatcher, and each of them that has run, at most so
// many. name "" means all owners. With the name of a worker, only that one counts, whether it has run or not.
func (f Figures) BusyWorkers(name, worker string, most int) Work {
	now, sum := time.Now(), workerCounts{}
	var list busyWorkers
	work := Work{OwnerStats: OwnerStats{Owner: name}}
	f.d.mu.Lock()
	if o := f.d.owners[name]; o != nil {
		list, work.OwnerStats = list.add(o, worker, now), o.stats()
	}
	for _, o := range f.d.owners {
		if name == "" {
			list = list.add(o, worker, now)
		}
	}
	for _, w := range list {
		sum.ended, sum.failed = sum.ended+w.r.done.ended, sum.failed+w.r.done.failed
		sum.duration.add(&w.r.done.duration)
	}
	f.d.mu.Unlock()
	list.sort() // while d.mu is not locked: there may be very many
	list = list[:min(most, len(list))]
	work.Ended, work.Failed, work.Duration, work.Workers =
		sum.ended, sum.failed, sum.duration.export(), make([]WorkerStats, len(list))
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	for i, w := range list {
		work.Workers[i] = WorkerStats{
			Owner: w.o.name, Worker: w.r.name, State: w.r.state(), Running: w.r.running,
			Ended: w.r.done.ended, Failed: w.r.done.failed, Duration: w.r.done.duration.export(), Last: w.r.done.last,
		}
	}
	return work
}

// OwnerWork is what all workers of an owner have done in a Dispatcher since each was installed.
type OwnerWork struct {
	Owner         string
	Ended, Failed uint64    // attempts that started
	Duration      Histogram // of them
}

// OwnersWork returns what the workers of the busiest owners have done, at most so many of them.
func (f Figures) OwnersWork(most int) []OwnerWork {
	type busy struct {
		o    *owner
		rate float64
	}
	var list []busy
	now := time.Now()
	f.d.mu.Lock()
	for _, o := range f.d.owners {
		rate := 0.0
		for _, r := range o.routes {
			rate += r.done.rate(now)
		}
		if rate > 0 {
			list = append(list, busy{o, rate})
		}
	}
	f.d.mu.Unlock()
	slices.SortFunc(list, func(a, b busy) int { return cmp.Compare(b.rate, a.rate) }) // there may be very many
	list = list[:min(most, len(list))]
	work := make([]OwnerWork, len(list))
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	for i, b := range list {
		sum := workerCounts{}
		for _, r := range b.o.routes {
			sum.ended, sum.failed = sum.ended+r.done.ended, sum.failed+r.done.failed
			sum.duration.add(&r.done.duration)
		}
		work[i] = OwnerWork{b.o.name, sum.ended, sum.failed, sum.duration.export()}
	}
	return work
}

// busyWorkers is a list of workers, each with what decides its place in it.
type busyWorkers []busyWorker

type busyWorker struct {
	o    *owner
	r    *route
	rate float64
}

// add appends the workers of o that have run here, or the one of that name. The dispatcher is locked.
func (l busyWorkers) add(o *owner, only string, now time.Time) busyWorkers {
	for _, r := range o.routes {
		if r.name == only || only == "" && (r.done.ended > 0 || r.running > 0) {
			l = append(l, busyWorker{o, r, r.done.rate(now)})
		}
	}
	return l
}

func (l busyWorkers) sort() {
	sort.Slice(l, func(i, j int) bool {
		return cmp.Or(cmp.Compare(l[j].rate, l[i].rate), cmp.Compare(l[i].o.name, l[j].o.name),
			cmp.Compare(l[i].r.name, l[j].r.name)) < 0
	})
}

// state is what this process has of the worker.
func (r *route) state() WorkerState {
	if r.running > 0 {
		return WorkerActive
	}
	state := WorkerOffline
	for _, v := range r.versions {
		switch {
		case v.warm != 0:
			return WorkerIdle
		case v.worker.Mode == workers.Oneshot && v == r.base:
			state = WorkerEphemeral
		}
	}
	return state
}

// Stats is the state now.
func (f Figures) Stats() Stats {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.stats()
}

// stats is Stats where d.mu is held.
func (f Figures) stats() Stats {
	d, runnable := f.d, 0
	d.pools.each(func(p *pool) { runnable += p.runnable[light] + p.runnable[heavy] })
	return Stats{
		Queued: d.queued, Runnable: runnable, Running: d.running, Owners: len(d.owners),
		Heavy:  len(d.shares.heavy),
		Asleep: d.pools.pool(0).idle.asleep.len(), Draining: d.draining,
	}
}

// BusyOwners lists the owners that have events here. The one with the most waiting events is first.
func (f Figures) BusyOwners() []OwnerStats {
	var list []OwnerStats
	f.d.mu.Lock()
	for _, o := range f.d.owners {
		if o.held() > 0 || o.running > 0 || o.parking {
			list = append(list, o.stats())
		}
	}
	f.d.mu.Unlock()
	sort.Slice(list, func(i, j int) bool {
		if list[i].Queued != list[j].Queued {
			return list[i].Queued > list[j].Queued
		}
		return list[i].Owner < list[j].Owner
	})
	return list
}

// LimitStats is an owner, or one of its workers, of which no more than Limit may run in all processes together.
type LimitStats struct {
	Owner, Worker string // Worker is "" for the limit of an owner
	Limit         int
	Queued        int // events that wait here
	Running       int // attempts here that count for the limit
}

// Limited lists the owners and workers that have a limit of the whole fleet and events here, at most so many. The one
// with the most waiting events is first.
func (f Figures) Limited(most int) []LimitStats {
	var list []LimitStats
	f.d.mu.Lock()
	for _, o := range f.d.owners {
		if running := o.running - o.calling; o.places.fleet > 0 && (o.held() > 0 || running > 0) {
			list = append(list, LimitStats{o.name, "", o.places.fleet, o.held(), running})
		}
	}
	for r := range f.d.gates.workers.limited {
		if !r.empty() {
			list = append(list, LimitStats{r.owner.name, r.name, r.limit, r.queued + r.waiting.n, r.running})
		}
	}
	f.d.mu.Unlock()
	slices.SortFunc(list, func(a, b LimitStats) int {
		return cmp.Or(cmp.Compare(b.Queued, a.Queued), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Worker, b.Worker))
	})
	return list[:min(most, len(list))]
}

func (o *owner) stats() OwnerStats {
	return OwnerStats{Owner: o.name, Queued: o.held(), Running: o.running, Parking: o.parking}
}

// collector passes the figures to Prometheus.
type collector struct{ Figures }

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
	m, stats := *c.d.metrics, c.stats()
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
