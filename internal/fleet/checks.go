package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/control"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// maxLostChecks is how many threads of checks V8 may lose before the process is replaced.
const maxLostChecks = 4

// lostChecks counts the threads that modules cost which were only checked. They are not among those of the pool.
type lostChecks struct{ n atomic.Int32 }

// healthy returns an error when the process should be replaced.
func (l *lostChecks) healthy() error {
	if n := l.n.Load(); n >= maxLostChecks {
		return fmt.Errorf("V8 has lost %d threads to modules that were checked before a deploy", n)
	}
	return nil
}

// ownersCheck checks one module that an owner deploys at its door.
type ownersCheck struct {
	*isolates.Checker
	lost *lostChecks
}

// Close ends the check, and counts its thread if V8 does not give it back.
func (c ownersCheck) Close() {
	c.Checker.Close()
	if c.LostThread() {
		c.lost.n.Add(1)
	}
}

// OpenChecker opens a checker for one module. The module may reach what the fleet's workers may.
func (c controlled) OpenChecker(log func(events.LogLine)) (control.Checker, error) {
	addresses, hosts := config.SplitAddresses(c.process.cfg.AllowPrivateAddresses)
	checker, err := isolates.OpenChecker(loading{log}, addresses, hosts)
	if err != nil {
		return nil, err
	}
	return ownersCheck{checker, &c.process.lost}, nil
}

// loading is the host of a module that is only loaded.
type loading struct{ log func(events.LogLine) }

// Enqueue refuses: no event runs that could send a task.
func (loading) Enqueue(context.Context, string, string, []isolates.Message) error {
	return errors.New("tasks are sent by handlers, not while the module is loaded")
}

// Call refuses: no event runs that could call a binding.
func (loading) Call(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
	return lifecycle.Answer{}, errors.New("bindings are called by handlers, not while the module is loaded")
}

// Log passes the line on.
func (h loading) Log(l events.LogLine) { h.log(l) }
