package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

type runCommands struct{ *env }

func (e runCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "runs", Short: "List and show ended attempts of events",
		Long: "The run history has records of attempts that have ended, as PINWHEEL_RUNS and the policies of owners say.",
	}, e.ls(), e.show())
}

func (e runCommands) ls() *cobra.Command {
	var r control.ListRuns
	var asJSON bool
	limit := 0
	c := e.command(cobra.Command{
		Use: "ls [OWNER | OWNER/WORKER]", Short: "List ended attempts, the newest first", Args: cobra.MaximumNArgs(1),
		Example: "  pinwheel runs ls acme/webhook --outcome failed --text timeout",
	}, func(ctx context.Context, args []string) error {
		r.Owner, r.Worker = e.ownerOrWorker(args)
		if _, err := r.Parse(); err != nil {
			return flagError(err)
		}
		return e.withFleet(ctx, func(c *control.Client) error { return e.list(ctx, c, r, limit, asJSON) })
	})
	f := c.Flags()
	f.StringVar(&r.Version, "version", "", "only of this version: whole, or its number")
	f.StringVar(&r.Outcome, "outcome", "", "only with this outcome: "+strings.Join(tail.Outcomes(), ", "))
	f.StringVar(&r.Event, "event", "", "only of the event with this id")
	f.StringVar(&r.Text, "text", "", "only with this text in the id, the message or a log line; the letters a to z in either case")
	f.IntVar(&limit, "limit", 100, "at most so many; 0: all")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a line, with log lines")
	return c
}

// ownerOrWorker reads [OWNER | OWNER/WORKER]. With PINWHEEL_OWNER, one name is that of a worker.
func (e *env) ownerOrWorker(args []string) (owner, worker string) {
	if len(args) == 0 {
		return "", ""
	}
	if !strings.Contains(args[0], "/") && !e.isOwner() {
		return args[0], ""
	}
	return "", args[0]
}

func (e runCommands) list(ctx context.Context, c *control.Client, r control.ListRuns, limit int, asJSON bool) error {
	r.Lines = asJSON
	p := e.List(asJSON, "ID", "ENDED", "WORKER", "VERSION", "EVENT", "ATTEMPT", "OUTCOME", "TOOK", "CPU", "MESSAGE")
	for left := limit; ; {
		r.Limit = runs.MaxPage
		if limit > 0 {
			r.Limit = min(left, runs.MaxPage)
		}
		page, err := control.Ask(ctx, c, control.RunsList, r)
		for _, rec := range page.Records {
			err = cmp.Or(err, p.Add(rec, runCells(rec)...))
		}
		left -= len(page.Records)
		if r.Before = page.Next; err != nil || page.Next == 0 || limit > 0 && left <= 0 {
			return cmp.Or(err, p.End())
		}
	}
}

func runCells(r *runs.Record) []any {
	return []any{r.Seq, stamped(r.Ended), r.Owner + "/" + r.Worker, r.Version, brief(r.Event), r.Attempt,
		cmp.Or(r.Reason, r.Outcome), took(wall(r)), took(r.CPUMs), brief(r.Message)}
}

// wall is how long an attempt took, in milliseconds.
func wall(r *runs.Record) float64 { return float64(r.Ended.Sub(r.Started).Microseconds()) / 1000 }

func (e runCommands) show() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "show ID", Short: "Show an ended attempt with its log lines", Args: cobra.ExactArgs(1),
		Example: "  pinwheel runs show 4711",
	}, func(ctx context.Context, args []string) error {
		ids, err := letterIDs(args)
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			r, err := control.Ask(ctx, c, control.RunsShow, control.RunID{ID: ids[0]})
			switch {
			case err != nil:
				return hint(err, "'pinwheel runs ls' lists them")
			case asJSON:
				return e.Object(r)
			}
			if err := printRun(e.Terminal, r); err != nil || r.Outcome == tail.OutcomeOK {
				return err
			}
			return e.Say("It runs again from its dead letter, if it has one (pinwheel dead ls --owner %s --text EVENT):\n"+
				"the body of an event that has ended is kept nowhere else.", r.Owner)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

// printRun prints a record: first what the fleet says, then the lines of the handler.
func printRun(to *terminal.Terminal, r *runs.Record) error {
	t := to.Table()
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, strings.Join(strings.Fields(value), " "))
		}
	}
	row("worker", r.Owner+"/"+r.Worker)
	row("version", r.Version)
	row("event", r.Event)
	row("kind", r.Kind)
	row("attempt", strconv.Itoa(r.Attempt))
	row("outcome", strings.TrimSpace(r.Outcome+" "+r.Reason))
	row("message", r.Message)
	if r.Status != 0 {
		row("status", strconv.Itoa(r.Status))
	}
	row("stored", maybeStamped(r.Stored))
	row("started", stamped(r.Started))
	row("replied", maybeStamped(r.Replied))
	row("ended", stamped(r.Ended))
	row("took", took(wall(r)).String())
	row("cpu", took(r.CPUMs).String())
	row("bytes", fmt.Sprintf("%d in, %d out", r.BytesIn, r.BytesOut))
	if r.Batch > 0 {
		row("batch", strconv.Itoa(r.Batch))
	}
	if r.Replays > 0 {
		row("replays", strconv.Itoa(r.Replays))
	}
	row("trace", r.TraceID)
	row("node", r.Node)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, l := range r.Lines {
		fmt.Fprintf(to.Out, "%s %-5s %s\n", l.Time.Format("15:04:05.000"), l.Level, l.Text)
		if l.Stack != "" {
			fmt.Fprintln(to.Out, l.Stack)
		}
	}
	if r.LinesLost > 0 {
		fmt.Fprintf(to.Out, "%d lines were not kept\n", r.LinesLost)
	}
	return nil
}
