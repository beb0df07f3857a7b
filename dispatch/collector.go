package dispatch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
)

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
		descParked, descFleet, descSuspects, descAlone, descBans, descDirectBans, descTrials, descRefused, descRetries, descFailures, descDuration, descWorkers,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	c.d.mu.Lock()
	m, stats := *c.d.metrics, c.d.stats()
	processes := c.d.gates.owners.processes
	suspects, alone := c.d.quarantine.queued(), c.d.quarantine.alone
	now := time.Now()
	holding, direct := c.d.gates.bans.holding(false, now), c.d.gates.bans.holding(true, now)
	tried, refused := len(c.d.gates.trials.suspects), c.d.gates.trials.refused+c.d.gates.bans.refused
	workers := labelled(c.d)
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
	gauge(descSuspects, suspects)
	gauge(descBans, holding)
	gauge(descDirectBans, direct)
	gauge(descTrials, tried)
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

// labelled returns the workers with a label of their own, and the others together. The lock is held.
func labelled(d *Dispatcher) []labelledWorker {
	list := []labelledWorker{{"other", d.metrics.labels.others, d.metrics.labels.wrong}} // a worker has a / in its name
	for _, o := range d.owners {
		for _, r := range o.routes {
			if r.done.label {
				list = append(list, labelledWorker{o.name + "/" + r.name, r.done.labelled, r.done.labelledBad})
			}
		}
	}
	return list
}
