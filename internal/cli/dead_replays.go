package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func newDeadReplays(e *env) *cobra.Command {
	var r control.ReplayFilter
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "replays [ID...]", Short: "Show how replays ended",
		Long: "Lists replays of the last 14 days, the oldest first, and the state of each: waiting, running, put-off (parked, or waiting for its\n" +
			"next run), succeeded, failed (a fetch event that was answered with an error), dead (again, with the number of the new letter), or unknown.\n" +
			"The ids are those of the letters that were replayed. The last 10000 replays of an owner are known.",
		Example: "  pinwheel dead replays --worker acme/orders --state dead",
	}, func(ctx context.Context, args []string) error {
		f, err := r.Parse()
		if err != nil {
			return flagError(err)
		}
		if len(args) > 0 {
			if f.Letters, err = letterIDs(args); err != nil {
				return err
			}
		}
		if atDoor(e) {
			r.IDs = f.Letters
			return listReplaysAtDoor(ctx, e, r, asJSON)
		}
		return e.withDead(ctx, func(_ *control.Remote, d *deadletter.Store) error { return e.listReplays(ctx, d, f, asJSON) })
	})
	flags := c.Flags()
	flags.StringVar(&r.Owner, "owner", "", "only of this owner")
	flags.StringVar(&r.Worker, "worker", "", "only for workers of this name, or for OWNER/WORKER")
	flags.StringVar(&r.State, "state", "", "only those in this state")
	flags.IntVar(&r.Limit, "limit", 0, "at most so many, the newest; 0 is no limit")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func (e *env) listReplays(ctx context.Context, d *deadletter.Store, f deadletter.ReplayFilter, asJSON bool) error {
	t, err := newReplayTable(e, asJSON)
	if err != nil {
		return err
	}
	for r, err := range d.Replays(ctx, f) {
		if err == nil {
			err = t.add(r)
		}
		if err != nil {
			return err
		}
	}
	return t.end(f.Letters, func(id uint64) string { return e.maybeThere(ctx, d, id) })
}

// replayTable prints replays.
type replayTable struct {
	e      *env
	asJSON bool
	rows   *tabwriter.Writer
	found  map[uint64]bool
}

func newReplayTable(e *env, asJSON bool) (t *replayTable, err error) {
	t = &replayTable{e, asJSON, e.table(), map[uint64]bool{}}
	if !asJSON {
		_, err = fmt.Fprintln(t.rows, "ID\tREPLAYED\tWORKER\tKIND\tEVENT\tSTATE\tENDED\tMESSAGE")
	}
	return t, err
}

func (t *replayTable) add(r *deadletter.Replayed) (err error) {
	t.found[r.Letter] = true
	if t.asJSON {
		return json.NewEncoder(t.e.out).Encode(r)
	}
	_, err = fmt.Fprintf(t.rows, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Letter, stamped(r.At), runBy(r), r.Kind, brief(r.EventID), became(r),
		maybeStamped(r.Ended), brief(r.Message))
	return err
}

// end prints the rest. It reports the letters of ids without a replay; about says more of one.
func (t *replayTable) end(ids []uint64, about func(id uint64) string) error {
	if err := t.rows.Flush(); err != nil {
		return err
	}
	missing := 0
	for _, id := range ids {
		if !t.found[id] {
			missing++
			fmt.Fprintf(t.e.err, "pinwheel: no replay of dead letter %d is known%s\n", id, about(id))
		}
	}
	if missing > 0 {
		return silent(exitFailure)
	}
	return nil
}

// maybeThere describes a letter that waits for its replay.
func (e *env) maybeThere(ctx context.Context, d *deadletter.Store, id uint64) string {
	if _, err := d.Get(ctx, id); err != nil {
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
