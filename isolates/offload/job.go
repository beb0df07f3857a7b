package offload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// Job is work to do on another goroutine. It may call goOn to ask whether to continue. It returns its product, and the
// CPU time that it used on other threads.
type Job func(goOn func() error) (Product, time.Duration)

// Meter limits a Job to the life of its run and to the CPU time that the run has left.
type Meter struct {
	Context context.Context //nolint:containedctx // a job waits in a queue, and ends with its run
	Budget  time.Duration
	Waits   bool // the job waits for goroutines that measure their own CPU time
}

var errBudget = errors.New("the CPU time of the event is used up")

// Do does the job on its own thread, unless its run is over. used is the CPU time that it took.
func (m Meter) Do(work Job) (p Product, used time.Duration) {
	if err := m.Context.Err(); err != nil {
		return Failed(err), 0
	}
	if m.Waits { // a goroutine that only waits needs no OS thread for itself
		return work(Always)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := perowner.ThreadTime()
	return Try(work, func() error {
		if err := m.Context.Err(); err != nil {
			return err
		}
		if perowner.ThreadTime()-begun > m.Budget {
			return errBudget
		}
		return nil
	})
}

// Try does work on the calling thread. The goroutine must stay on that thread. A panic becomes a failure of the
// operation.
func Try(work Job, goOn func() error) (p Product, used time.Duration) {
	began := perowner.ThreadTime()
	defer func() {
		used += perowner.ThreadTime() - began
		if failed := recover(); failed != nil {
			p = Failed(fmt.Errorf("the operation failed: %v", failed))
		}
	}()
	return work(goOn)
}

// Always is a goOn that never ends the work.
func Always() error { return nil }
