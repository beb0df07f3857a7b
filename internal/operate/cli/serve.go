package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/console"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
)

func newServeCommand(e *env) *cobra.Command {
	return e.command(cobra.Command{
		Use: "serve", Short: "Run one process of the fleet, or several", Args: cobra.NoArgs,
		Long: "Runs a process of the fleet, or PINWHEEL_PROCESSES of them, until SIGINT or SIGTERM, then drains them. Processes\n" +
			"that die, or that have lost too many threads to V8, are replaced. With PINWHEEL_PROCESSES=0, serve itself is the process.\n\n" +
			"With PINWHEEL_NATS_URL it joins that NATS: start as many processes as you like. Without it, NATS is\n" +
			"embedded: it listens on loopback at PINWHEEL_NATS_PORT and keeps its data in PINWHEEL_DATA.",
		Example: "  PINWHEEL_NATS_URL=nats://nats.example:4222 pinwheel serve",
	}, func(ctx context.Context, _ []string) error {
		log, err := config.NewLogger(e.Raw.Err, e.cfg)
		if err != nil {
			return err
		}
		ctx, end := context.WithCancel(ctx)
		defer end()
		beside := &besideFleet{cfg: e.cfg}
		if e.cfg.ConsoleAddr != "" {
			if beside.console, err = console.Open(consoleConfig(&beside.cfg, e.version, log)); err != nil {
				return usage("%w", err)
			}
		}
		up := func(url, admin, http string) {
			beside.begin(ctx, url, end)
			line := log.Info().Str("nats", url).Str("admin", admin)
			if http != "" {
				line = line.Str("http", http)
			}
			if at := beside.addr(); at != "" {
				line = line.Str("console", at)
			}
			line.Str("version", e.version).Msg("ready")
		}
		if e.cfg.Processes > 0 {
			err := fleet.Supervise(ctx, e.cfg, log, e.Raw.Err, up)
			end()
			return beside.close(err)
		}
		c, err := fleet.AsChild(e.cfg)
		if err != nil {
			return err
		}
		if c == nil && e.cfg.Confine == config.ConfineRequire {
			return usage("PINWHEEL_CONFINE is require, and PINWHEEL_PROCESSES is 0: only the processes of a supervisor are confined")
		}
		if c != nil {
			log = log.With().Int("process", c.Number).Logger()
		}
		err = fleet.ServeChild(ctx, e.cfg, log, c, func(p *fleet.Process, admin string) { up(p.URL(), admin, p.HTTPAddr()) })
		end()
		return beside.close(err)
	})
}
