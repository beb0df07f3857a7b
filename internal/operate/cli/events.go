package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/cancels"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/queue"
)

// eventCommands are the commands about events that have not ended.
type eventCommands struct{ *env }

func (e eventCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "events", Short: "Look at events that wait or run, cancel and purge them",
		Example: "  pinwheel events ls acme/mailer --older 1h\n  pinwheel events purge acme/mailer --older 1h --dry-run",
	}, e.ls(), e.show(), e.cancel(), e.purge())
}

func (e eventCommands) ls() *cobra.Command {
	var f eventFilter
	var limit int
	asJSON := false
	c := e.command(cobra.Command{
		Use: "ls OWNER[/WORKER]", Short: "List events that have not ended", Args: cobra.ExactArgs(1),
		Long: "Lists events of an owner or a worker that have not ended, those of each place in the order in which they came there.\n" +
			"STATE is where an event is: lane, source, parked, held (its worker is paused), delayed or due; or what a process\n" +
			"does with it, and which one. REF finds it at once, while it stays in its place.",
		Example: "  pinwheel events ls acme --place parked\n  pinwheel events ls acme/mailer --older 1h",
	}, func(ctx context.Context, args []string) error {
		t, err := pauseTarget(args[0])
		if err != nil {
			return err
		}
		if f.older < 0 || limit < 1 {
			return usage("--older is 0 or more, and --limit 1 or more")
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			held, err := queue.AskHeld(ctx, c, control.AskHeld{Owner: t.Owner, Worker: t.Worker})
			if err != nil {
				return err
			}
			l := e.List(asJSON, "REF", "STATE", "WORKER", "KIND", "ATTEMPT", "STORED", "ID")
			r := f.of(t)
			for n := 0; n < limit; {
				r.Limit = min(limit-n, 1000)
				page, err := control.Ask(ctx, c, control.EventsList, r)
				if err != nil {
					return err
				}
				for _, q := range page.Events {
					one := held.Of(q)
					err := l.Add(one, q.Ref, one.String(), q.Owner+"/"+q.Worker, q.Kind, q.Attempt, stamped(q.Stored), q.ID)
					if err != nil {
						return err
					}
				}
				n += len(page.Events)
				if r.After = page.Next; r.After == "" {
					break
				}
			}
			return l.End()
		})
	})
	f.flags(c)
	c.Flags().IntVar(&limit, "limit", 1000, "at most so many")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// eventFilter chooses events of an owner or a worker.
type eventFilter struct {
	place, kind string
	older       time.Duration
}

func (f *eventFilter) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.place, "place", "", "only those in this place: lane, source, parked, held, delayed or due")
	c.Flags().StringVar(&f.kind, "kind", "", "only those of this kind: fetch, task or scheduled")
	c.Flags().DurationVar(&f.older, "older", 0, "only those that were stored at least so long ago")
}

func (f *eventFilter) of(t control.PauseTarget) control.ListEvents {
	return control.ListEvents{Owner: t.Owner, Worker: t.Worker, Place: f.place, Kind: f.kind,
		Older: f.older.Milliseconds()}
}

func (e eventCommands) cancel() *cobra.Command {
	var f eventFilter
	all, asJSON := false, false
	c := e.command(cobra.Command{
		Use: "cancel OWNER[/WORKER] [EVENT…]", Short: "Cancel events that wait or run", Args: cobra.MinimumNArgs(1),
		Long: "Cancels events wherever they wait or run in the fleet: those with a REF or an ID of 'pinwheel events ls', or those\n" +
			"that a filter chooses. A cancelled event never runs again. Who waits for it gets the failure 'cancelled', and it\n" +
			"becomes no dead letter. One that runs gets its signal, and is ended a moment later.",
		Example: "  pinwheel events cancel acme/mailer lane:4711 welcome-17\n  pinwheel events cancel acme/import --older 1h",
	}, func(ctx context.Context, args []string) error {
		t, err := pauseTarget(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			return e.cancelAll(ctx, c, control.CancelEvents{ListEvents: f.of(t), Names: args[1:], All: all}, asJSON)
		})
	})
	f.flags(c)
	c.Flags().BoolVar(&all, "all", false, "all events of the owner or worker")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// cancelAll asks until there are no more events, and prints what became of each.
func (e eventCommands) cancelAll(ctx context.Context, c *control.Client, r control.CancelEvents, asJSON bool) error {
	l := e.List(asJSON, "REF", "OUTCOME", "WORKER", "ID")
	left, silent := 0, []string(nil)
	for {
		page, err := control.Ask(ctx, c, control.EventsCancel, r)
		if err != nil {
			return err
		}
		for _, one := range page.Events {
			if err := l.Add(one, one.Ref, one.Outcome, r.Owner+"/"+one.Worker, one.ID); err != nil {
				return err
			}
			if one.Outcome == cancels.Ending {
				left++
			}
		}
		for _, id := range page.Silent {
			if !slices.Contains(silent, id) {
				silent = append(silent, id)
			}
		}
		if r.After = page.Next; r.After == "" {
			break
		}
	}
	if err := l.End(); err != nil {
		return err
	}
	switch {
	case left > 0 && len(silent) > 0:
		return fmt.Errorf("events that have not ended yet: %d; these processes did not answer, and may have them: %s", left,
			strings.Join(silent, ", "))
	case left > 0:
		return fmt.Errorf("events that have not ended yet: %d; the same command waits for them", left)
	case len(silent) > 0:
		return fmt.Errorf("processes that did not answer may still run some of them: %s", strings.Join(silent, ", "))
	}
	return nil
}

func (e eventCommands) purge() *cobra.Command {
	var f eventFilter
	all, dryRun, asJSON := false, false, false
	c := e.command(cobra.Command{
		Use: "purge OWNER[/WORKER]", Short: "Remove events that wait", Args: cobra.ExactArgs(1),
		Long: "Removes events of an owner or a worker that wait, without a run: those that a filter chooses, or --all. It leaves\n" +
			"alone what has begun, and what is stored after the purge began. It is a job of the fleet: interrupting the command\n" +
			"cancels it, and the same command goes on with the others.",
		Example: "  pinwheel events purge acme --older 1h --kind task --dry-run\n  pinwheel events purge acme/import --all",
	}, func(ctx context.Context, args []string) error {
		t, err := pauseTarget(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			j, err := control.Ask(ctx, c, control.EventsPurge, control.PurgeEvents{ListEvents: f.of(t), All: all,
				DryRun: dryRun})
			if err != nil {
				return err
			}
			j, err = control.FollowJob(ctx, c, j, func(control.JobLetter, control.Job, int) {})
			if asJSON {
				return errors.Join(err, e.Object(j))
			}
			return errors.Join(err, e.Say("%s", purged(j)), endedWell(j))
		})
	})
	f.flags(c)
	c.Flags().BoolVar(&all, "all", false, "all events that wait")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only count them")
	jsonFlag(c, &asJSON)
	return c
}

// purged says what a purge did.
func purged(j control.Job) string {
	if j.DryRun {
		return fmt.Sprintf("%d would be purged", j.Total)
	}
	text := fmt.Sprintf("%d purged", j.Done)
	if j.Failed > 0 {
		text += fmt.Sprintf(", %d had begun or ended", j.Failed)
	}
	return text
}

// endedWell is the error of a job that was not done.
func endedWell(j control.Job) error {
	switch {
	case j.Error != "":
		return errors.New(j.Error)
	case j.State != "done":
		return fmt.Errorf("job %s of node %s: %s", j.Job, j.Node, j.State)
	}
	return nil
}

func (e eventCommands) show() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "show OWNER[/WORKER] EVENT", Short: "Show an event that has not ended", Args: cobra.ExactArgs(2),
		Long: "Shows where an event is that has not ended, its headers and its body. EVENT is its REF in 'pinwheel events ls', or its\n" +
			"ID. A REF is found at once, and so is the ID of a delayed event, or one that its publisher did not choose. For another\n" +
			"ID all events of the owner are read.",
		Example: "  pinwheel events show acme lane:1234\n  pinwheel events show acme/mailer welcome-17",
	}, func(ctx context.Context, args []string) error {
		t, err := pauseTarget(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			one, err := queue.Show(ctx, c, control.ShowEvent{Owner: t.Owner, Worker: t.Worker, ID: args[1]})
			if err != nil {
				return err
			}
			if asJSON {
				return e.Object(one)
			}
			return e.Say("%s", eventText(one))
		})
	})
	jsonFlag(c, &asJSON)
	return c
}

// eventText describes an event for people.
func eventText(e queue.Event) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("event", "%s", e.ID)
	line("ref", "%s", e.Ref)
	line("state", "%s", e.String())
	line("worker", "%s/%s", e.Owner, e.Worker)
	line("kind", "%s, attempt %d", e.Kind, e.Attempt)
	line("stored", "%s", stamped(e.Stored))
	if !e.At.IsZero() {
		line("due", "%s", stamped(e.At))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		for _, value := range e.Headers[name] {
			line("header", "%s: %s", name, value)
		}
	}
	switch {
	case e.Body != nil:
		line("body", "%d bytes\n%s", e.Bytes, *e.Body)
	default:
		line("body", "%d bytes, which are not shown here: --json has them, unless they are too many", e.Bytes)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
