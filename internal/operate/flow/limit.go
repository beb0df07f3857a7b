package flow

import (
	"cmp"
	"slices"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Limit is what a fleet has of an owner or a worker that may run no more than a number of events at once in all its
// processes.
type Limit struct {
	control.LimitFlow        // the sum of all processes
	Stored            uint64 // of its events, those in all lanes and parked ones: also those that processes hold
}

// ReachedLimits returns the limits that hold back events in the processes, at most control.MaxFlowLimits, those that
// hold back most first. Stored is not set. More processes start none of these events.
func ReachedLimits(flows []control.Flow) []Limit {
	type key struct{ owner, worker string }
	sums := map[key]*Limit{}
	for _, f := range flows {
		for _, l := range f.Limits {
			sum := sums[key{l.Owner, l.Worker}]
			if sum == nil {
				sum = &Limit{LimitFlow: control.LimitFlow{Owner: l.Owner, Worker: l.Worker}}
				sums[key{l.Owner, l.Worker}] = sum
			}
			// The processes learn of a change one after the other.
			sum.Limit, sum.Queued, sum.Running = max(sum.Limit, l.Limit), sum.Queued+l.Queued, sum.Running+l.Running
		}
	}
	var reached []Limit
	for _, l := range sums {
		if l.Queued > l.places() {
			reached = append(reached, *l)
		}
	}
	slices.SortFunc(reached, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(b.Queued-b.places(), a.Queued-a.places()), cmp.Compare(a.Owner, b.Owner),
			cmp.Compare(a.Worker, b.Worker))
	})
	return reached[:min(len(reached), control.MaxFlowLimits)]
}

// places is how many more may start.
func (l *Limit) places() int { return max(0, l.Limit-l.Running) }

// waiting is how many of its events wait in lanes, parked, or in processes, those for their next attempt included.
func (l *Limit) waiting() int {
	return l.Queued + l.elsewhere()
}

// elsewhere is how many of its events no process runs or has queued.
func (l *Limit) elsewhere() int { return max(0, int(l.Stored)-l.Queued-l.Running) }

// heldBack is how many of the waiting events no further process would start. retrying is how many events wait in
// processes for their next attempt: whose they are is not known, and none of them is counted.
func heldBack(limits []Limit, retrying int) (sum uint64) {
	elsewhere, workers := 0, map[string]int{} // what limits of workers hold back, by owner
	hold := func(l *Limit, already int) {
		n := max(0, l.waiting()-already-l.places())
		elsewhere += min(n, l.elsewhere())
		sum += uint64(n)
		workers[l.Owner] += n
	}
	for i := range limits {
		if l := &limits[i]; l.Worker != "" {
			hold(l, 0)
		}
	}
	for i := range limits {
		if l := &limits[i]; l.Worker == "" {
			hold(l, workers[l.Owner])
		}
	}
	return sum - uint64(min(max(0, retrying), elsewhere))
}
