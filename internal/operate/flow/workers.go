package flow

import (
	"cmp"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Worker is what a worker did in all processes between two snapshots.
type Worker struct {
	Worker  string    `json:"worker"` // OWNER/WORKER
	State   string    `json:"state"`  // what the process has that has most of it: see states
	Running int       `json:"running"`
	Events  float64   `json:"eventsPerSecond"` // attempts that ended
	Failed  float64   `json:"failedPerSecond"`
	P50     *float64  `json:"durationP50Ms"` // nil = none ended
	P99     *float64  `json:"durationP99Ms"`
	Last    time.Time `json:"last,omitzero"` // end of the latest attempt, by the clock of its process
}

// states are those of a worker, from the one that has most of it: events of it run, a context waits for events, it has
// no context between events, no process has a context.
var states = []string{"active", "idle", "ephemeral", "offline"}

// workers adds up what processes say of workers.
type workers struct {
	of        map[string]*Worker
	durations map[string]control.Histogram
}

// add takes what a process said, and, if it was there, what it said before.
func (w *workers) add(now control.Flow, last *control.Flow, seconds float64) {
	before := map[string]control.WorkerFlow{}
	if last != nil {
		for _, one := range last.Workers {
			before[one.Worker] = one
		}
	}
	for _, one := range now.Workers {
		sum := w.of[one.Worker]
		if sum == nil {
			sum = &Worker{Worker: one.Worker, State: one.State}
			w.of[one.Worker] = sum
		}
		if slices.Index(states, one.State) < slices.Index(states, sum.State) {
			sum.State = one.State
		}
		sum.Running += one.Running
		if one.Last.After(sum.Last) {
			sum.Last = one.Last
		}
		was, known := before[one.Worker]
		if last == nil || !known && len(last.Workers) >= control.MaxFlowWorkers {
			continue // it is not known what it had done before
		}
		bounds := now.Duration.Bounds
		ended := one.Ended - min(one.Ended, was.Ended)
		sum.Events += float64(ended) / seconds
		sum.Failed += float64(one.Failed-min(one.Failed, was.Failed)) / seconds
		since := control.Histogram{Count: one.Ended, Bounds: bounds,
			Buckets: one.Duration}.Since(control.Histogram{Count: was.Ended, Bounds: bounds, Buckets: was.Duration})
		w.durations[one.Worker] = w.durations[one.Worker].Add(since)
	}
}

// busiest returns the workers of processes, the busiest first. earlier are the processes of the snapshot before.
func busiest(earlier map[string]control.Flow, now []control.Flow) []Worker {
	w := workers{map[string]*Worker{}, map[string]control.Histogram{}}
	for _, p := range now {
		if last, known := earlier[p.ID]; known && p.At.After(last.At) {
			w.add(p, &last, p.At.Sub(last.At).Seconds())
		} else {
			w.add(p, nil, 0)
		}
	}
	list := []Worker{}
	for name, one := range w.of {
		one.P50, one.P99 = quantile(w.durations[name], 0.5), quantile(w.durations[name], 0.99)
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Worker) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(b.Running, a.Running), b.Last.Compare(a.Last),
			cmp.Compare(a.Worker, b.Worker))
	})
	return list
}

// quantile is in milliseconds; nil when nothing was counted.
func quantile(h control.Histogram, q float64) *float64 {
	d, ok := h.Quantile(q)
	if !ok {
		return nil
	}
	return new(float64(d.Microseconds()) / 1000)
}
