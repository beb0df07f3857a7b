package workers

import (
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// EveryWorker stands for all workers of an owner in Policy.Paused. It is no name of a worker.
const EveryWorker = "*"

// MaxPaused is the largest number of entries of Policy.Paused: it bounds the record of an owner's policy.
const MaxPaused = 256

// Pause keeps the events of a worker, or of all workers of an owner, from starting. They are stored meanwhile.
type Pause struct {
	Since time.Time `json:"since"`
	// SkipTicks leaves out the ticks of schedules. Otherwise they are stored, as other events are.
	SkipTicks bool `json:"skipTicks,omitempty"`
	// ByOwner: the owner's people paused it, by the owner API. They cannot resume what operators have paused.
	ByOwner bool `json:"byOwner,omitempty"`
}

// IsPaused reports whether no event of that worker may start.
func (p *Policy) IsPaused(worker string) bool {
	return len(p.Paused) > 0 && (p.AllPaused() || p.WorkerPaused(worker))
}

// AllPaused reports whether all workers are paused at once.
func (p *Policy) AllPaused() bool {
	_, is := p.Paused[EveryWorker]
	return is
}

// WorkerPaused reports whether that worker itself is paused, whatever holds for all.
func (p *Policy) WorkerPaused(worker string) bool {
	_, is := p.Paused[worker]
	return is
}

// SkipsTicks reports whether the ticks of a worker's schedules are left out.
func (p *Policy) SkipsTicks(worker string) bool {
	return len(p.Paused) > 0 && (p.Paused[EveryWorker].SkipTicks || p.Paused[worker].SkipTicks)
}

func checkPaused(paused map[string]Pause) error {
	if len(paused) > MaxPaused {
		return fmt.Errorf("paused has %d workers: at most %d are allowed; pause the owner instead", len(paused), MaxPaused)
	}
	for worker := range paused {
		if worker == EveryWorker {
			continue
		}
		if err := events.CheckName("worker", worker); err != nil {
			return fmt.Errorf("paused: %w", err)
		}
	}
	return nil
}
