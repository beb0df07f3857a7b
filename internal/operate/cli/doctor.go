package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

// Exit codes of doctor. They replace the general ones.
const (
	exitWarn = 1
	exitBad  = 2
)

// doctorProgress is how long lanes with waiting events are watched.
const doctorProgress = 1500 * time.Millisecond

// doctorIndent is where the text of a line begins.
const doctorIndent = 20

func newDoctorCommand(e *env) *cobra.Command {
	var asJSON bool
	var progress time.Duration
	c := e.command(cobra.Command{
		Use: "doctor", Short: "Check NATS and the fleet, and say what is wrong", Args: cobra.NoArgs,
		Long: "Checks NATS and the fleet on it: versions, limits, when events are on disk, replicas and leaders, streams and consumers\n" +
			"against what this binary and this environment would create, clocks, room, events that no process runs, permissions. It changes nothing.\n\n" +
			"Every line is ok, warn or bad, with what to do. The exit code is 0 when all is ok, 1 when there is a warning, and\n" +
			"2 when a promise is broken, or NATS cannot be reached.",
		Example: "  pinwheel doctor --json | jq 'select(.level != \"ok\")'",
	}, func(ctx context.Context, _ []string) error {
		if err := e.refuseOwner("doctor"); err != nil { // an owner's user may not ask JetStream
			return err
		}
		var lines []doctor.Line
		_ = e.During("examines", func() error { // what is wrong is in the lines
			lines = examine(ctx, e.cfg, e.version, progress)
			return nil
		})
		return printLines(e.Terminal, lines, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	c.Flags().DurationVar(&progress, "progress", doctorProgress, "how long lanes with waiting events are watched")
	return c
}

// examine runs the checks with a connection of their own: they also ask for what this user may not have.
func examine(ctx context.Context, cfg config.Config, version string, progress time.Duration) []doctor.Line {
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // doctor also asks for what it may not have
	nc, err := config.Connect(cfg, quiet)
	if err != nil {
		return []doctor.Line{{
			Level: doctor.Bad, Check: "nats", Text: err.Error(), Do: "start NATS, or say with PINWHEEL_NATS_URL where it is and with PINWHEEL_NATS_CREDS and its like who you are",
		}}
	}
	defer nc.Close()
	stranger := config.Config{NatsURL: nc.ConnectedUrl(), NatsCA: cfg.NatsCA}
	return doctor.Examine(ctx, doctor.Config{
		NC: nc, Monitors: cfg.NatsMonitor, Subjects: events.Subjects(cfg.Prefix),
		Resources: inventory.Resources(cfg, nc.MaxPayload()),
		For:       inventory.ResourcesFor(cfg, nc.MaxPayload()), Replicas: cfg.Replicas, Fsync: cfg.Fsync(), Version: version,
		Progress:  progress,
		Anonymous: func() (*nats.Conn, error) { return config.Connect(stranger, quiet) },
	})
}

func printLines(to *terminal.Terminal, lines []doctor.Line, asJSON bool) error {
	encoder, out := json.NewEncoder(to.Out), to.Colored()
	for _, l := range lines {
		if asJSON {
			if err := encoder.Encode(l); err != nil {
				return err
			}
			continue
		}
		text := fmt.Sprintf("%-4s  %-12s  %s", l.Level, l.Check, l.Text)
		fmt.Fprintln(out, terminal.Wrapped(text, to.Columns(), doctorIndent))
		if l.Do != "" {
			text = fmt.Sprintf("%*s→ %s", doctorIndent, "", l.Do)
			fmt.Fprintln(out, terminal.Wrapped(text, to.Columns(), doctorIndent+2))
		}
	}
	switch doctor.Worst(lines) {
	case doctor.Bad:
		return silent(exitBad)
	case doctor.Warn:
		return silent(exitWarn)
	}
	return nil
}
