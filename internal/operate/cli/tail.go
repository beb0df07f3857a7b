package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

func newTailCommand(e *env) *cobra.Command {
	var r control.Tail
	var onlyEvents, onlyLogs, asJSON bool
	var c *cobra.Command
	c = e.command(cobra.Command{
		Use: "tail OWNER[/WORKER]", Short: "Show log lines and ended events of an owner's workers, live", Args: cobra.ExactArgs(1),
		Long: "Shows log lines and ended runs of events while they happen, in all processes of the fleet, until it is interrupted. The processes\n" +
			fmt.Sprintf("filter. Each sends at most %d lines in a second: a log line is one, and so is an ended run. What is left out is counted.\n", tail.Lines) +
			"Lines from before are not shown: nothing stores them.",
		Example: "  pinwheel tail acme --level error\n  pinwheel tail acme/webhook --events --status 5xx --status timeout",
	}, func(ctx context.Context, args []string) error {
		switch {
		case onlyEvents && onlyLogs:
			return usage("--events and --logs: choose one")
		case onlyEvents:
			r.Only = tail.OnlyEvents
		case onlyLogs:
			r.Only = tail.OnlyLogs
		}
		if c.Flags().Changed("sample") && r.Sample == 0 {
			return usage("--sample is 0: it is a share above 0, to 1")
		}
		if err := tailTarget(&r, args[0]); err != nil {
			return err
		}
		if err := r.Filter.Check(); err != nil {
			return usage("--%w", err)
		}
		return follow(ctx, e, r, asJSON)
	})
	f := c.Flags()
	f.StringVar(&r.Level, "level", "", "only lines of this level or a higher one: debug, info, warn or error. A run that failed has the level error, another info")
	f.StringVar(&r.Grep, "grep", "", "only lines whose text or stack this `REGEXP` matches, and runs whose event id or message it matches")
	f.StringSliceVar(&r.Status, "status", nil, "only runs with this `STATUS`: ok, failed, broken, retry, interrupted, a reason like timeout, an HTTP status, or 2xx to 5xx; may be repeated")
	f.StringVar(&r.Version, "version", "", "only of this version, whole or its number")
	f.BoolVar(&onlyEvents, "events", false, "only ended runs of events")
	f.BoolVar(&onlyLogs, "logs", false, "only log lines")
	f.Float64Var(&r.Sample, "sample", 0, "only this share of the events, above 0 to 1, with all their lines")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// tailTarget parses OWNER or OWNER/WORKER.
func tailTarget(r *control.Tail, target string) error {
	owner, worker, both := strings.Cut(target, "/")
	err := events.CheckName("owner", owner)
	if err == nil && both {
		err = events.CheckName("worker", worker)
	}
	if err != nil {
		return usage("%w", err)
	}
	r.Owner, r.Worker = owner, worker
	return nil
}

// follow prints a tail until ctx is done.
func follow(ctx context.Context, e *env, r control.Tail, asJSON bool) error {
	if e.isOwner() && r.Owner != e.cfg.Owner {
		return fmt.Errorf("owner %q is not of owner %s (PINWHEEL_OWNER)", r.Owner, e.cfg.Owner)
	}
	out := e.Colored()
	show := func(entry *tail.Entry) error { return printEntry(out, e.Terminal, entry) }
	if asJSON {
		lines := e.List(true)
		show = func(entry *tail.Entry) error { return lines.Add(entry) }
	}
	_ = e.withFleet(ctx, func(c *control.Client) error { // if that fails, Follow says why, or goes on without
		warnOfNobody(ctx, e, c, r)
		return nil
	})
	return e.withProcess(func(c *control.Client) error {
		return c.Follow(ctx, r, show, func(err error) { fmt.Fprintln(e.Err, "pinwheel:", err.Error()) })
	})
}

// warnOfNobody says that nothing comes yet, where there is no such worker.
func warnOfNobody(ctx context.Context, e *env, c *control.Client, r control.Tail) {
	nobody := false
	if r.Worker != "" {
		_, err := control.Ask(ctx, c, control.DeploymentsList, control.WorkerName{Worker: r.Owner + "/" + r.Worker})
		var refused *control.Error
		nobody = errors.As(err, &refused) && refused.Code == http.StatusNotFound
	} else {
		list, err := control.Ask(ctx, c, control.WorkersList, control.ListWorkers{Owner: r.Owner, Limit: 1})
		nobody = err == nil && len(list.Workers) == 0
	}
	if !nobody {
		return
	}
	of := fmt.Sprintf("owner %s has no worker", r.Owner)
	if r.Worker != "" {
		of = fmt.Sprintf("there is no worker %s/%s", r.Owner, r.Worker)
	}
	fmt.Fprintf(e.Err, "pinwheel: %s; 'pinwheel workers ls' lists those there are. Lines come when one is deployed\n", of)
}

// printEntry prints one line of a tail.
func printEntry(out io.Writer, to *terminal.Terminal, l *tail.Entry) (err error) {
	at, of := l.Time.Local().Format("15:04:05.000Z07:00"), l.Owner+"/"+l.Worker
	switch l.Type {
	case tail.TypeLog:
		text := l.Text
		if l.EventID != "" {
			text += fmt.Sprintf("  (event %s, attempt %d)", l.EventID, l.Attempt)
		}
		if l.Stack != "" {
			text += "\n" + l.Stack
		}
		_, err = fmt.Fprintf(out, "%s %-5s %s  %s\n", at, l.Level, of, continued(text))
	case tail.TypeEvent:
		_, err = fmt.Fprintf(out, "%s event %s  %s  %s\n", at, of, l.Kind, continued(ended(l)))
	case tail.TypeLeftOut:
		if l.Limited > 0 {
			_, err = fmt.Fprintf(to.Err, "pinwheel: %s left out %s: more than %d in a second, or too long\n", l.Node, counted(int(l.Limited), "line"),
				tail.Lines)
		}
		if l.Unfiltered > 0 {
			_, err = fmt.Fprintf(to.Err, "pinwheel: %s left out %s unread: too many at once\n", l.Node, counted(int(l.Unfiltered), "line"))
		}
	}
	return err
}

// ended describes how a run ended.
func ended(l *tail.Entry) string {
	how := l.Outcome
	if l.Status != 0 {
		how = fmt.Sprint(l.Status, " ", how)
	}
	if l.Reason != "" {
		how += " " + l.Reason
	}
	if l.Message != "" {
		how += ": " + l.Message
	}
	return fmt.Sprintf("%s  %s, cpu %s  version %s, event %s, attempt %d", how, took(l.DurationMs), took(l.CPUMs), l.Version,
		cmp.Or(l.EventID, "-"), l.Attempt)
}

func took(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// continued makes text safe for a terminal. Its further lines are indented, so that they cannot pass for lines of
// another worker.
func continued(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
