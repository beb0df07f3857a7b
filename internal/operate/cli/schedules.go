package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// scheduleCommands are the commands about schedules and delayed events.
type scheduleCommands struct{ *env }

func (e scheduleCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "schedules", Short: "List schedules and delayed events, pause and cancel them", Example: "  pinwheel schedules ls --owner acme",
	}, e.ls(), e.waiting(), e.cancel(), e.pause(), e.resume())
}

func (e scheduleCommands) ls() *cobra.Command {
	var owner string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List the schedules of all active versions, with their last and next tick", Args: cobra.NoArgs,
		Example: "  pinwheel schedules ls --owner acme",
	}, func(ctx context.Context, _ []string) error {
		if err := control.CheckName("owner", owner); err != nil {
			return flagError(err)
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			p := e.List(asJSON, "WORKER", "NAME", "SCHEDULE", "LAST", "NEXT")
			r := control.ListWorkers{Owner: owner}
			return printPages(p, scheduleCells, func(limit int) ([]control.Schedule, bool, error) {
				r.Limit = limit
				page, err := control.Ask(ctx, c, control.SchedulesList, r)
				r.After = page.Next
				return page.Schedules, page.Next != "", err
			})
		})
	})
	c.Flags().StringVar(&owner, "owner", "", "only those of this owner")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// scheduleCells is a schedule in a list.
func scheduleCells(s control.Schedule) []any {
	return []any{s.Owner + "/" + s.Worker, s.Name, scheduleText(s.Schedule), stampedOrNone(s.Last), nextText(s)}
}

func (e scheduleCommands) waiting() *cobra.Command {
	var owner, worker string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "waiting", Short: "List events that wait for their time: delayed ones, and those whose next run is far away", Args: cobra.NoArgs,
		Example: "  pinwheel schedules waiting --owner acme",
	}, func(ctx context.Context, _ []string) error {
		if err := control.SplitWorker(&owner, &worker); err != nil {
			return flagError(err)
		}
		if err := cmp.Or(control.CheckName("owner", owner), control.CheckName("worker", worker)); err != nil {
			return flagError(err)
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			p := e.List(asJSON, "AT", "WORKER", "KIND", "ATTEMPT", "ID")
			r := control.ListWaiting{Owner: owner, Worker: worker}
			return printPages(p, waitingCells, func(limit int) ([]control.WaitingEvent, bool, error) {
				r.Limit = limit
				page, err := control.Ask(ctx, c, control.SchedulesWaiting, r)
				r.After = page.Next
				return page.Events, page.Next != 0, err
			})
		})
	})
	c.Flags().StringVar(&owner, "owner", "", "only those of this owner")
	c.Flags().StringVar(&worker, "worker", "", "only those for workers of this name, or for OWNER/WORKER")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// waitingCells is an event in a list of those that wait for their time.
func waitingCells(w control.WaitingEvent) []any {
	return []any{stamped(w.At), w.Owner + "/" + w.Worker, w.Kind, w.Attempt, w.ID}
}

func (e scheduleCommands) cancel() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "cancel OWNER/WORKER EVENT-ID", Short: "Cancel an event that waits for its time", Args: cobra.ExactArgs(2),
		Long:    "Cancels an event that waits for its time. It will not run, and no one is notified. The exit code is 1 when no event with this id waits.",
		Example: "  pinwheel schedules cancel acme/mailer reminder-17",
	}, func(ctx context.Context, args []string) error {
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			n, err := control.Ask(ctx, c, control.SchedulesCancel, control.CancelWaiting{Worker: name.Worker, ID: args[1]})
			if err == nil && n.Cancelled == 0 {
				err = fmt.Errorf("no event %q of %s waits for its time; 'pinwheel schedules waiting' lists those that do", args[1], args[0])
			}
			if err == nil {
				err = e.tell(asJSON, n, "cancelled %d", n.Cancelled)
			}
			return err
		})
	})
	jsonFlag(c, &asJSON)
	return c
}

func (e scheduleCommands) pause() *cobra.Command {
	return e.change(cobra.Command{
		Use: "pause OWNER/WORKER NAME", Short: "Keep a schedule from ticking until it is resumed",
		Example: "  pinwheel schedules pause acme/daily-report night",
	}, "paused", control.SchedulesPause)
}

func (e scheduleCommands) resume() *cobra.Command {
	return e.change(cobra.Command{
		Use: "resume OWNER/WORKER NAME", Short: "Let a paused schedule tick again; missed ticks do not run",
		Example: "  pinwheel schedules resume acme/daily-report night",
	}, "resumed", control.SchedulesResume)
}

func (e scheduleCommands) change(c cobra.Command, done string,
	change control.Endpoint[control.ScheduleName, control.Schedule]) *cobra.Command {
	c.Args = cobra.ExactArgs(2)
	asJSON := false
	made := e.command(c, func(ctx context.Context, args []string) error {
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			s, err := control.Ask(ctx, c, change, control.ScheduleName{Worker: name.Worker, Name: args[1]})
			if err == nil {
				err = e.tell(asJSON, s, "%s %s of %s", done, args[1], args[0])
			}
			return err
		})
	})
	jsonFlag(made, &asJSON)
	return made
}

// nextText is the next tick of a schedule.
func nextText(s control.Schedule) string {
	if s.Paused {
		return "paused"
	}
	return stampedOrNone(s.Next)
}

func stampedOrNone(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return stamped(t)
}

// scheduleText describes a schedule in a few words.
func scheduleText(s workers.Schedule) string {
	text := s.Cron
	if s.TimeZone != "" {
		text += " " + s.TimeZone
	}
	return fmt.Sprintf("%s, overlap %s, misfire %s", text, s.Overlap.OrDefault(), s.Misfire.OrDefault())
}
