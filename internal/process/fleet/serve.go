package fleet

import (
	"context"
	"os"
	"runtime/debug"
	"sync"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/process/admin"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// Serve runs one process of the fleet until ctx is done and it has drained. If up is not nil, Serve calls it when the
// process takes events.
func Serve(ctx context.Context, cfg config.Config, log zerolog.Logger, up func(p *Process, admin string)) error {
	return ServeChild(ctx, cfg, log, nil, up)
}

// gcPercent is GOGC of a process of the fleet. Its Go heap is small compared with V8's, and most of it belongs to
// events that last milliseconds. With Go's default of 100 the collector took a fifth of the CPU time of small events
// (BenchmarkFleet).
const gcPercent = 400

// ServeChild does what Serve does for a child of a supervisor. The child's admin port is the socket that the supervisor
// uses. c is nil for a process that is not a child.
func ServeChild(ctx context.Context, cfg config.Config, log zerolog.Logger, c *Child,
	up func(p *Process, admin string)) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	p, err := open(cfg, log, c)
	if err != nil {
		return err
	}
	if c != nil {
		p.checks.remote = c.spawner
	}
	if p.checks.executable, err = os.Executable(); err != nil {
		log.Warn().Err(err).Msg("modules that owners deploy are loaded in this process")
	}
	defer leaveProcessors(p.rooms.background)()
	if err := p.link.learnSync(ctx, p.cfg, c, log); err != nil {
		p.close()
		return err
	}
	p.rooms.consumer.SetServerLimit(p.link.sync.Reservable)
	if err := openHTTP(p, c); err != nil {
		p.close()
		return err
	}
	var a *admin.Server
	if c != nil {
		a = admin.New(c.listener, p, cfg.Profiling)
	} else {
		a, err = admin.Open(cfg.AdminAddr, p, cfg.Profiling)
	}
	if err != nil {
		p.close()
		return err
	}
	// The admin port stays open during the drain, so that operators can watch it.
	life, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Run(life); err != nil {
			log.Error().Err(err).Msg("admin port")
		}
	})
	running.Go(func() {
		select {
		case <-p.Ready():
			if c == nil || !c.embedded { // otherwise the supervisor has logged it
				p.link.logDurability(life, log)
			}
			if up != nil {
				up(p, a.Addr())
			}
		case <-life.Done():
		}
	})
	err = p.Run(ctx)
	end()
	running.Wait()
	return err
}
