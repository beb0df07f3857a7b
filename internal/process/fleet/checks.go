package fleet

import (
	"fmt"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// maxLostChecks is how many threads of checks V8 may lose before the process is replaced. Checks use threads only where
// they have no process of their own.
const maxLostChecks = 4

// ownersChecks checks the modules that owners deploy.
type ownersChecks struct {
	executable string         // checks them; "" = threads of this process do
	remote     *spawn.Spawner // starts it, where this process may not; nil = it may
	// lost counts the threads that modules cost which were only checked. They are not among those of the pool.
	lost atomic.Int32
}

// healthy returns an error when the process should be replaced.
func (c *ownersChecks) healthy() error {
	if n := c.lost.Load(); n >= maxLostChecks {
		return fmt.Errorf("V8 has lost %d threads to modules that were checked before a deploy", n)
	}
	return nil
}

// open opens a checker for one module, which runs like the fleet's workers.
func (c *ownersChecks) open(like isolates.CheckConfig, log func(events.LogLine)) ownersCheck {
	checks := &modulecheck.Checks{CheckConfig: like, Executable: c.executable, Remote: c.remote}
	if guard.ModuleChecks.Off() {
		checks.Executable, checks.Remote = "", nil
	}
	return ownersCheck{checks.Open(log), &c.lost}
}

// ownersCheck checks one module that an owner deploys.
type ownersCheck struct {
	*modulecheck.Checker
	lost *atomic.Int32
}

// Close ends the check, and counts its thread if it had one and V8 does not give it back.
func (c ownersCheck) Close() (lost bool) {
	lost, inThread := c.Checker.Close()
	if lost && inThread {
		c.lost.Add(1)
	}
	return lost && !guard.ModuleChecks.Off()
}

// OpenChecker opens a checker for one module that an owner deploys.
func (c controlled) OpenChecker(log func(events.LogLine)) control.Checker {
	return c.process.checks.open(c.process.checkConfig(), log)
}

// OpenChecker opens the checker that loads modules before they are deployed. They run there as they will in the
// process, and write to its log.
func (p *Process) OpenChecker() (*isolates.Checker, error) {
	h := &host{nc: p.link.nc, subjects: events.Subjects(p.cfg.Prefix), log: p.log}
	return isolates.OpenChecker(h, p.checkConfig())
}

// checkConfig has modules run in checks as they will in the process.
func (p *Process) checkConfig() isolates.CheckConfig {
	c := isolates.CheckConfig{Compilers: workers.Compilers(p.cfg.Compilers)}
	c.AllowAddresses, c.AllowHosts = config.SplitAddresses(p.cfg.AllowPrivateAddresses)
	c.PolicyOf = func(owner string) workers.Policy { return *p.deployed.catalog.Policy(owner) }
	return c
}
