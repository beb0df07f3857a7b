package flow

import (
	"cmp"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Summary is what a fleet did between two snapshots. As JSON it is what `pinwheel top --json` prints.
type Summary struct {
	At        time.Time `json:"at"`
	Rates               // of all processes
	Stored    Stored    `json:"stored"`
	Processes []Process `json:"processes"`
	Owners    []Owner   `json:"owners"`
	// Workers are the busiest ones of each process, at most control.MaxFlowWorkers of it.
	Workers []Worker `json:"workers"`
	// Paused are paused owners and workers, at most control.MaxFlowPaused, and PausedInAll how many there are.
	Paused      []string `json:"paused,omitempty"`
	PausedInAll int      `json:"pausedInAll,omitempty"`
	// Missing are nodes that another process names and that did not answer.
	Missing []string `json:"missing,omitempty"`
}

// Rates are per second. Durations are in milliseconds; nil = nothing was counted.
type Rates struct {
	Events      float64  `json:"eventsPerSecond"` // attempts that ended
	Failed      float64  `json:"failedPerSecond"`
	Retried     float64  `json:"retriedPerSecond"`
	Parked      float64  `json:"parkedPerSecond"`
	WaitP50     *float64 `json:"waitP50Ms"`
	WaitP99     *float64 `json:"waitP99Ms"`
	DurationP50 *float64 `json:"durationP50Ms"`
	DurationP99 *float64 `json:"durationP99Ms"`
}

// Stored is what NATS has for the whole fleet.
type Stored struct {
	Events        uint64   `json:"events"` // waiting and running
	OldestSeconds *float64 `json:"oldestSeconds"`
	Parked        uint64   `json:"parked"`
	Dead          uint64   `json:"dead"`
}

// Process is what one process did.
type Process struct {
	Node     string `json:"node"`
	Build    string `json:"build"`
	New      bool   `json:"new,omitempty"` // it was not there in the last snapshot: it has no rates
	Draining bool   `json:"draining,omitempty"`
	Rates
	Running  int   `json:"running"`
	Queued   int   `json:"queued"`
	Held     int   `json:"held"`
	Isolates int   `json:"isolates"`
	Heap     int64 `json:"heapBytes"`
	// Cells is how many cells it has, and CellBytes their memory.
	Cells     int   `json:"cells,omitempty"`
	CellBytes int64 `json:"cellBytes,omitempty"`
}

// HasCells reports whether a process has cells.
func (s Summary) HasCells() bool {
	return slices.ContainsFunc(s.Processes, func(p Process) bool { return p.Cells > 0 })
}

// Owner is an owner that has events in some process.
type Owner struct {
	Owner   string `json:"owner"`
	Queued  int    `json:"queued"`
	Running int    `json:"running"`
	Parking bool   `json:"parking,omitempty"`
}

// between are the counts of one process between two snapshots.
type between struct {
	seconds                 float64
	failed, retried, parked uint64
	wait, duration          control.Histogram
}

func (b between) rates() Rates {
	r := Rates{
		Events: float64(b.duration.Count) / b.seconds, Failed: float64(b.failed) / b.seconds,
		Retried: float64(b.retried) / b.seconds, Parked: float64(b.parked) / b.seconds,
	}
	r.percentiles(b.wait, b.duration)
	return r
}

func (r *Rates) percentiles(wait, duration control.Histogram) {
	r.WaitP50, r.WaitP99 = quantile(wait, 0.5), quantile(wait, 0.99)
	r.DurationP50, r.DurationP99 = quantile(duration, 0.5), quantile(duration, 0.99)
}

// add adds the rates of a process. Percentiles cannot be added.
func (r *Rates) add(o Rates) {
	r.Events += o.Events
	r.Failed += o.Failed
	r.Retried += o.Retried
	r.Parked += o.Parked
}

// takePaused takes what a process knows of pauses. All know the same, within moments.
func (s *Summary) takePaused(p control.Flow) {
	if p.PausedInAll <= s.PausedInAll {
		return
	}
	s.PausedInAll, s.Paused = p.PausedInAll, nil
	for _, paused := range p.Paused {
		s.Paused = append(s.Paused, paused.Target())
	}
}

// Between says what happened between two snapshots. Each process is measured by its own clock.
func Between(before, now Snapshot) Summary {
	f := Summary{At: now.At, Processes: []Process{}, Owners: []Owner{}}
	earlier, owners := map[string]control.Flow{}, map[string]*Owner{}
	for _, p := range before.Flows {
		earlier[p.ID] = p
	}
	var wait, duration control.Histogram
	for _, p := range now.Flows {
		one := Process{
			Node: p.Node, Build: p.Build, Draining: p.Draining, Running: p.Running, Queued: p.Queued, Held: p.Held,
			Isolates: p.Isolates, Heap: p.Heap, Cells: p.Cells, CellBytes: p.CellBytes,
		}
		last, known := earlier[p.ID]
		if one.New = !known || !p.At.After(last.At); !one.New {
			b := between{
				seconds: p.At.Sub(last.At).Seconds(), failed: p.Failed - min(p.Failed, last.Failed),
				retried: p.Retried - min(p.Retried, last.Retried),
				parked:  p.Parked - min(p.Parked, last.Parked), wait: p.Wait.Since(last.Wait),
				duration: p.Duration.Since(last.Duration),
			}
			one.Rates = b.rates()
			f.add(one.Rates)
			wait, duration = wait.Add(b.wait), duration.Add(b.duration)
		}
		f.Processes = append(f.Processes, one)
		f.takePaused(p)
		for _, o := range p.Owners {
			if owners[o.Owner] == nil {
				owners[o.Owner] = &Owner{Owner: o.Owner}
			}
			sum := owners[o.Owner]
			sum.Queued, sum.Running, sum.Parking = sum.Queued+o.Queued, sum.Running+o.Running, sum.Parking || o.Parking
		}
	}
	f.percentiles(wait, duration)
	f.Workers = busiest(earlier, now.Flows)
	for _, o := range owners {
		f.Owners = append(f.Owners, *o)
	}
	slices.SortFunc(f.Owners, func(a, b Owner) int {
		return cmp.Or(cmp.Compare(b.Queued, a.Queued), cmp.Compare(b.Running, a.Running), cmp.Compare(a.Owner, b.Owner))
	})
	slices.SortFunc(f.Processes, func(a, b Process) int { return cmp.Compare(a.Node, b.Node) })
	for _, m := range now.Missing {
		f.Missing = append(f.Missing, m.Node)
	}
	slices.Sort(f.Missing)
	if s := now.Stored.Events; s != nil {
		if f.Stored.Events = s.Messages; !s.Oldest.IsZero() {
			f.Stored.OldestSeconds = new(max(0, now.At.Sub(s.Oldest).Seconds()))
		}
	}
	if s := now.Stored.Parked; s != nil {
		f.Stored.Parked = s.Messages
	}
	if s := now.Stored.Dead; s != nil {
		f.Stored.Dead = s.Messages
	}
	return f
}
