package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

func (e deadCommands) replays() *cobra.Command {
	var r control.ReplayFilter
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "replays [ID...]", Short: "Show how replays ended",
		Long: "Lists replays of the last 14 days, the oldest first, and the state of each: waiting, running, put-off (parked, or waiting for its\n" +
			"next run), succeeded, failed (a fetch event that was answered with an error), dead (again, with the number of the new letter), or unknown.\n" +
			"The ids are those of the letters that were replayed. The last 10000 replays of an owner are known.",
		Example: "  pinwheel dead replays --worker acme/orders --state dead",
	}, func(ctx context.Context, args []string) error {
		_, err := r.Parse()
		if err != nil {
			return flagError(err)
		}
		if len(args) > 0 {
			if r.IDs, err = letterIDs(args); err != nil {
				return err
			}
		}
		return e.withFleet(ctx, func(c *control.Client) error { return e.listReplays(ctx, c, r, asJSON) })
	})
	flags := c.Flags()
	flags.StringVar(&r.Owner, "owner", "", "only of this owner")
	flags.StringVar(&r.Worker, "worker", "", "only for workers of this name, or for OWNER/WORKER")
	flags.StringVar(&r.State, "state", "", "only those in this state")
	flags.IntVar(&r.Limit, "limit", 0, "at most so many, the newest; 0 is no limit")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func (e deadCommands) listReplays(ctx context.Context, c *control.Client, r control.ReplayFilter, asJSON bool) error {
	if r.Limit == 0 {
		r.Limit = control.MaxReplays
	}
	list, err := control.Ask(ctx, c, control.DeadReplays, r)
	if err != nil {
		return err
	}
	if list.Left > 0 {
		fmt.Fprintf(e.Err, "pinwheel: %d older ones are left out\n", list.Left)
	}
	p, found := e.List(asJSON, "ID", "REPLAYED", "WORKER", "KIND", "EVENT", "STATE", "ENDED", "MESSAGE"), map[uint64]bool{}
	for _, one := range list.Replays {
		found[one.Letter] = true
		err := p.Add(one, one.Letter, stamped(one.At), runBy(one), one.Kind, brief(one.EventID), became(one),
			maybeStamped(one.Ended), brief(one.Message))
		if err != nil {
			return err
		}
	}
	if err := p.End(); err != nil {
		return err
	}
	missing := 0
	for _, id := range r.IDs {
		if !found[id] {
			missing++
			fmt.Fprintf(e.Err, "pinwheel: no replay of dead letter %d is known%s\n", id, maybeThere(ctx, c, id))
		}
	}
	if missing > 0 {
		return silent(exitFailure)
	}
	return nil
}

// maybeThere describes a letter that waits for its replay.
func maybeThere(ctx context.Context, c *control.Client, id uint64) string {
	if _, err := control.Ask(ctx, c, control.DeadShow, control.LetterID{ID: id}); err != nil {
		return ""
	}
	return ": the letter is there"
}

// runBy is the worker that a replay is sent to.
func runBy(r *deadletter.Replayed) string {
	target := r.Owner + "/" + r.Worker
	if r.Version != "" {
		target += "@" + r.Version
	}
	return target
}

// became describes the state of a replay in one or two words.
func became(r *deadletter.Replayed) string {
	if r.State == deadletter.ReplayDead {
		return fmt.Sprintf("dead as %d", r.Dead)
	}
	return string(r.State)
}
