package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func newSchedulesCommand(e *env) *cobra.Command {
	return group(cobra.Command{
		Use: "schedules", Short: "List schedules and delayed events, pause and cancel them", Example: "  pinwheel schedules ls --owner acme",
	}, newSchedulesLs(e), newSchedulesWaiting(e), newSchedulesCancel(e), newSchedulesPause(e), newSchedulesResume(e))
}

func newSchedulesLs(e *env) *cobra.Command {
	var owner string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List the schedules of all active versions, with their last and next tick", Args: cobra.NoArgs,
		Example: "  pinwheel schedules ls --owner acme",
	}, func(ctx context.Context, _ []string) error {
		if err := control.CheckName("owner", owner); err != nil {
			return flagError(err)
		}
		if atDoor(e) {
			return listSchedulesAtDoor(ctx, e, owner, asJSON)
		}
		return e.withSchedules(ctx, func(s *deploy.Store, b *schedule.Store) error {
			workers, err := s.List(ctx, owner)
			if err != nil {
				return err
			}
			rows, err := control.DescribeSchedules(ctx, workers, b)
			if err != nil {
				return err
			}
			if asJSON {
				return e.printSchedulesJSON(rows)
			}
			return e.printSchedules(rows)
		})
	})
	c.Flags().StringVar(&owner, "owner", "", "only those of this owner")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func newSchedulesWaiting(e *env) *cobra.Command {
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
		if atDoor(e) {
			return listWaitingAtDoor(ctx, e, owner, worker, asJSON)
		}
		return e.withSchedules(ctx, func(_ *deploy.Store, b *schedule.Store) error {
			return e.printWaiting(described(b.Waiting(ctx, owner, worker)), asJSON)
		})
	})
	c.Flags().StringVar(&owner, "owner", "", "only those of this owner")
	c.Flags().StringVar(&worker, "worker", "", "only those for workers of this name, or for OWNER/WORKER")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func newSchedulesCancel(e *env) *cobra.Command {
	return e.command(cobra.Command{
		Use: "cancel OWNER/WORKER EVENT-ID", Short: "Cancel an event that waits for its time", Args: cobra.ExactArgs(2),
		Long:    "Cancels an event that waits for its time. It will not run, and no one is notified. The exit code is 1 when no event with this id waits.",
		Example: "  pinwheel schedules cancel acme/mailer reminder-17",
	}, func(ctx context.Context, args []string) error {
		owner, worker, err := events.ParseTarget(args[0])
		if err != nil {
			return usage("%w", err)
		}
		if atDoor(e) {
			return withDoor(e, func(c *control.Client) error {
				n, err := c.CancelWaiting(ctx, control.CancelWaiting{Worker: args[0], ID: args[1]})
				return printCancelled(e, args, n.Cancelled, err)
			})
		}
		return e.withSchedules(ctx, func(_ *deploy.Store, b *schedule.Store) error {
			n, err := b.Cancel(ctx, owner, worker, args[1])
			if n > 0 {
				record(ctx, e, "schedules.cancel", owner, map[string]string{"worker": args[0], "id": args[1]})
			}
			return printCancelled(e, args, n, err)
		})
	})
}

func printCancelled(e *env, args []string, n int, err error) error {
	if err == nil && n == 0 {
		err = fmt.Errorf("no event %q of %s waits for its time; 'pinwheel schedules waiting' lists those that do", args[1], args[0])
	}
	if err == nil {
		_, err = fmt.Fprintf(e.out, "cancelled %d\n", n)
	}
	return err
}

func newSchedulesPause(e *env) *cobra.Command {
	return e.scheduleChange(cobra.Command{
		Use: "pause OWNER/WORKER NAME", Short: "Keep a schedule from ticking until it is resumed",
		Example: "  pinwheel schedules pause acme/daily-report night",
	}, "paused", (*schedule.Store).Pause, (*control.Client).PauseSchedule)
}

func newSchedulesResume(e *env) *cobra.Command {
	return e.scheduleChange(cobra.Command{
		Use: "resume OWNER/WORKER NAME", Short: "Let a paused schedule tick again; missed ticks do not run",
		Example: "  pinwheel schedules resume acme/daily-report night",
	}, "resumed", (*schedule.Store).Resume, (*control.Client).ResumeSchedule)
}

func (e *env) scheduleChange(c cobra.Command, done string, f func(*schedule.Store, context.Context, events.Installation, events.Schedule) error,
	door func(*control.Client, context.Context, control.ScheduleName) (control.Schedule, error),
) *cobra.Command {
	c.Args = cobra.ExactArgs(2)
	return e.command(c, func(ctx context.Context, args []string) error {
		owner, name, err := events.ParseTarget(args[0])
		if err != nil {
			return usage("%w", err)
		}
		if atDoor(e) {
			return withDoor(e, func(c *control.Client) error {
				_, err := door(c, ctx, control.ScheduleName{Worker: args[0], Name: args[1]})
				if err == nil {
					_, err = fmt.Fprintf(e.out, "%s %s of %s\n", done, args[1], args[0])
				}
				return err
			})
		}
		return e.withSchedules(ctx, func(s *deploy.Store, b *schedule.Store) error {
			in, err := s.Installation(ctx, owner, name)
			if errors.Is(err, deploy.ErrNotFound) {
				return fmt.Errorf("%w; 'pinwheel workers ls' lists them", err)
			}
			if err != nil {
				return err
			}
			sched, err := control.FindSchedule(in, args[1])
			if err != nil {
				return err
			}
			if err := f(b, ctx, in, sched); err != nil {
				return err
			}
			record(ctx, e, "schedules."+c.Name(), owner, map[string]string{"worker": args[0], "name": args[1]})
			_, err = fmt.Fprintf(e.out, "%s %s of %s\n", done, args[1], args[0])
			return err
		})
	})
}

func (e *env) withSchedules(ctx context.Context, f func(*deploy.Store, *schedule.Store) error) error {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	return f(s, c.Schedules())
}
