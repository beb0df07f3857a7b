package cli

import (
	"context"
	"os"
	"runtime/debug"
	"sync"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

func newServeCommand(e *env) *cobra.Command {
	return e.command(cobra.Command{
		Use: "serve", Short: "Run one process of the fleet, or several", Args: cobra.NoArgs,
		Long: "Runs a process of the fleet, or PINWHEEL_PROCESSES of them, until SIGINT or SIGTERM, then drains them. Processes\n" +
			"that die, or that have lost too much to V8, are replaced. With PINWHEEL_PROCESSES=0 it is itself the process.\n\n" +
			"With PINWHEEL_NATS_URL it joins that NATS; start as many processes as you like. Without, NATS is\n" +
			"embedded: it listens on loopback at PINWHEEL_NATS_PORT and keeps its data in PINWHEEL_DATA.",
		Example: "  PINWHEEL_NATS_URL=nats://nats.example:4222 pinwheel serve",
	}, func(ctx context.Context, _ []string) error {
		log, err := NewLogger(e.err, e.cfg)
		if err != nil {
			return err
		}
		up := func(url, admin string) {
			log.Info().Str("nats", url).Str("admin", admin).Str("version", e.version).Msg("ready")
		}
		if e.cfg.Processes > 0 {
			return supervise(ctx, e.cfg, log, e.err, up)
		}
		c, err := asChild()
		if err != nil {
			return err
		}
		if c != nil {
			log = log.With().Int("process", c.process).Logger()
		}
		return serveOn(ctx, e.cfg, log, c, func(f *fleet, admin string) { up(f.url(), admin) })
	})
}

// serve runs one process of the fleet until ctx is done and it has drained. up, if not nil, is called once it takes events.
func serve(ctx context.Context, cfg Config, log zerolog.Logger, up func(f *fleet, admin string)) error {
	return serveOn(ctx, cfg, log, nil, up)
}

// gcPercent is GOGC of a process of the fleet. Its Go heap is small beside V8's, and lives for events that are gone in milliseconds: with
// Go's own 100 the collector took a fifth of the CPU time of small events (BenchmarkFleet).
const gcPercent = 400

// serveOn is serve for a child of a supervisor, whose admin port is where that asks; c is nil for one that is none.
func serveOn(ctx context.Context, cfg Config, log zerolog.Logger, c *childProcess, up func(f *fleet, admin string)) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	f, err := openFleet(cfg, log)
	if err != nil {
		return err
	}
	defer leaveProcessors(f.background)()
	f.supervised = c != nil
	if err := f.learnSync(ctx, c); err != nil {
		f.close()
		return err
	}
	var a *admin
	if c != nil {
		a = newAdmin(c.listener, f, cfg.Profiling)
	} else {
		a, err = openAdmin(cfg, f)
	}
	if err != nil {
		f.close()
		return err
	}
	// The admin port outlives the drain, so that one can watch it.
	life, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.run(life); err != nil {
			log.Error().Err(err).Msg("admin port")
		}
	})
	running.Go(func() {
		select {
		case <-f.ready():
			if c == nil || !c.embedded { // else the supervisor has told
				f.tellDurability(life)
			}
			if up != nil {
				up(f, a.addr())
			}
		case <-life.Done():
		}
	})
	err = f.run(ctx)
	end()
	running.Wait()
	return err
}
