package flow

import (
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// OfOwner is what the workers of an owner did between two snapshots of TakeOf. As JSON it is what `pinwheel top --json`
// prints for an owner. Durations are in milliseconds; nil = nothing was counted.
type OfOwner struct {
	At time.Time `json:"at"`
	Owner
	Events      float64  `json:"eventsPerSecond"` // attempts that ended
	Failed      float64  `json:"failedPerSecond"` // of these
	DurationP50 *float64 `json:"durationP50Ms"`
	DurationP99 *float64 `json:"durationP99Ms"`
	Processes   int      `json:"processes"` // that answered
	Workers     []Worker `json:"workers"`   // the busiest ones
	Missing     []string `json:"missing,omitempty"`
}

// BetweenOf says what the workers of an owner did between two snapshots of TakeOf.
func BetweenOf(owner string, before, now Snapshot) OfOwner {
	f := Between(before, now)
	o := OfOwner{
		At: f.At, Owner: Owner{Owner: owner}, Events: f.Events, Failed: f.Failed, DurationP50: f.DurationP50,
		DurationP99: f.DurationP99,
		Processes:   len(f.Processes), Workers: f.Workers, Missing: f.Missing,
	}
	if len(f.Owners) > 0 {
		o.Owner = f.Owners[0]
	}
	return o
}

// Figures are what one worker does, and what it has done since it was installed in the processes that run.
type Figures struct {
	Worker                      // P50 and P99 are those of all attempts that Ended counts
	Rated              bool     // Events and Failed are known: there were two snapshots
	Ended, FailedInAll uint64   // attempts that started
	Processes          int      // that have the worker
	Missing            []string // nodes that do not answer
}

// FiguresOf returns the figures of a worker, OWNER/WORKER, from two snapshots of TakeOf with its name. The earlier one
// may be the zero Snapshot.
func FiguresOf(worker string, before, now Snapshot) Figures {
	did := Between(before, now)
	f := Figures{Worker: Worker{Worker: worker, State: states[len(states)-1]}, Rated: len(before.Flows) > 0,
		Missing: did.Missing}
	for _, w := range did.Workers {
		if w.Worker == worker {
			f.Worker = w
		}
	}
	var all control.Histogram
	for _, p := range now.Flows {
		for _, w := range p.Workers {
			if w.Worker == worker {
				f.Processes, f.Ended, f.FailedInAll = f.Processes+1, f.Ended+w.Ended, f.FailedInAll+w.Failed
				all = all.Add(control.Histogram{Count: w.Ended, Bounds: p.Duration.Bounds, Buckets: w.Duration})
			}
		}
	}
	f.P50, f.P99 = quantile(all, 0.5), quantile(all, 0.99)
	return f
}
