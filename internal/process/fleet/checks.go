package fleet

import (
	"fmt"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// maxLostChecks is how many threads of checks V8 may lose before the process is replaced. Checks use threads only where
// they have no process of their own.
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

// ownersCheck checks one module that an owner deploys.
type ownersCheck struct {
	*modulecheck.Checker
	lost *lostChecks
}

// Close ends the check, and counts its thread if it had one and V8 does not give it back.
func (c ownersCheck) Close() (lost bool) {
	lost, inThread := c.Checker.Close()
	if lost && inThread {
		c.lost.n.Add(1)
	}
	return lost && !guard.ModuleChecks.Off()
}

// OpenChecker opens a checker for one module. The module may reach what the fleet's workers may.
func (c controlled) OpenChecker(log func(events.LogLine)) control.Checker {
	checks := &modulecheck.Checks{Executable: c.process.executable}
	checks.Addresses, checks.Hosts = config.SplitAddresses(c.process.cfg.AllowPrivateAddresses)
	if guard.ModuleChecks.Off() {
		checks.Executable = ""
	}
	return ownersCheck{checks.Open(log), &c.process.lost}
}

// OpenChecker opens the checker that loads modules before they are deployed. It uses the process's allowed addresses
// and its log.
func (p *Process) OpenChecker() (*isolates.Checker, error) {
	addresses, hosts := config.SplitAddresses(p.cfg.AllowPrivateAddresses)
	return isolates.OpenChecker(&host{nc: p.nc, subjects: events.Subjects(p.cfg.Prefix), log: p.log}, addresses, hosts)
}
