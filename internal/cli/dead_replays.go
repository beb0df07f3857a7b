package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

func newDeadReplays(e *env) *cobra.Command {
	var owner, worker, state string
	var limit int
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "replays [ID...]", Short: "Tell how replays ended",
		Long: "Lists replays of the last 14 days, the oldest first, and what has become of each: waiting, running, put-off (parked, or waiting for its\n" +
			"next run), succeeded, failed (a fetch event that was answered with an error), dead (again, with the number of the new letter), or unknown.\n" +
			"The ids are those of the letters that were replayed. Of an owner the last 10000 replays are known.",
		Example: "  pinwheel dead replays --worker acme/orders --state dead",
	}, func(ctx context.Context, args []string) error {
		f, err := replayFilter(owner, worker, state, limit)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			if f.Letters, err = letterIDs(args); err != nil {
				return err
			}
		}
		return e.withDead(ctx, func(_ *remote, d *consumer.DeadLetters) error { return e.listReplays(ctx, d, f, asJSON) })
	})
	flags := c.Flags()
	flags.StringVar(&owner, "owner", "", "only of this owner")
	flags.StringVar(&worker, "worker", "", "only for workers of this name, or for OWNER/WORKER")
	flags.StringVar(&state, "state", "", "only those in this state")
	flags.IntVar(&limit, "limit", 0, "at most so many, the newest; 0 is no limit")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// replayFilter reads what chooses replays. Its error is one of usage.
func replayFilter(owner, worker, state string, limit int) (f consumer.ReplayFilter, err error) {
	if err := splitWorker(&owner, &worker); err != nil {
		return f, err
	}
	f = consumer.ReplayFilter{Owner: owner, Worker: worker, State: consumer.ReplayState(state), Limit: limit}
	for what, name := range map[string]string{"owner": owner, "worker": worker} {
		if err := events.CheckName(what, name); name != "" && err != nil {
			return f, usage("--%w", err)
		}
	}
	if state != "" && !slices.Contains(consumer.ReplayStates(), f.State) {
		var names []string
		for _, s := range consumer.ReplayStates() {
			names = append(names, string(s))
		}
		return f, usage("--state %q: it is one of %s", state, strings.Join(names, ", "))
	}
	if limit < 0 {
		return f, usage("--limit is %d: it is 0 or more", limit)
	}
	return f, nil
}

func (e *env) listReplays(ctx context.Context, d *consumer.DeadLetters, f consumer.ReplayFilter, asJSON bool) error {
	t := e.table()
	if !asJSON {
		fmt.Fprintln(t, "ID\tREPLAYED\tWORKER\tKIND\tEVENT\tSTATE\tENDED\tMESSAGE")
	}
	found := map[uint64]bool{}
	for r, err := range d.Replays(ctx, f) {
		if err != nil {
			return err
		}
		found[r.Letter] = true
		if asJSON {
			if err := json.NewEncoder(e.out).Encode(r); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Letter, stamped(r.At), printable(runBy(r)), printable(r.Kind), brief(r.EventID), became(r),
			maybeStamped(r.Ended), brief(r.Message))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	missing := 0
	for _, id := range f.Letters {
		if !found[id] {
			missing++
			fmt.Fprintf(e.err, "pinwheel: no replay of dead letter %d is known%s\n", id, e.maybeThere(ctx, d, id))
		}
	}
	if missing > 0 {
		return silent(exitFailure)
	}
	return nil
}

// maybeThere tells of a letter that waits for its replay.
func (e *env) maybeThere(ctx context.Context, d *consumer.DeadLetters, id uint64) string {
	if _, err := d.Get(ctx, id); err != nil {
		return ""
	}
	return ": the letter is there"
}

// runBy is the worker that a replay is for.
func runBy(r *consumer.Replayed) string {
	target := r.Owner + "/" + r.Worker
	if r.Version != "" {
		target += "@" + r.Version
	}
	return target
}

// became is the state of a replay in a word or two.
func became(r *consumer.Replayed) string {
	if r.State == consumer.ReplayDead {
		return fmt.Sprintf("dead as %d", r.Dead)
	}
	return string(r.State)
}

// replayList is the answer of dead.replays.
type replayList struct {
	Replays []*consumer.Replayed `json:"replays"`
	Left    int                  `json:"leftOff,omitempty"` // older ones that did not fit
}

func (c *control) deadReplays(ctx context.Context, r request) (any, error) {
	var req struct {
		IDs    []uint64 `json:"ids"`
		Owner  string   `json:"owner"`
		Worker string   `json:"worker"`
		State  string   `json:"state"`
		Limit  int      `json:"limit"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if len(req.IDs) > maxControlIDs {
		return nil, refused("ids has %d entries: it has at most %d", len(req.IDs), maxControlIDs)
	}
	limit, err := listed(req.Limit)
	if err != nil {
		return nil, err
	}
	f, err := replayFilter(req.Owner, req.Worker, req.State, limit)
	if err != nil {
		return nil, refused("%s", strings.TrimPrefix(err.Error(), "--"))
	}
	if len(req.IDs) > 0 {
		f.Letters = req.IDs
	}
	list := replayList{Replays: []*consumer.Replayed{}}
	for one, err := range c.dead.Replays(ctx, f) {
		if err != nil {
			return nil, err
		}
		list.Replays = append(list.Replays, one)
	}
	for { // the newest that fit
		text, err := json.Marshal(list)
		if err != nil || len(text) <= c.answerRoom() {
			return list, err
		}
		half := (len(list.Replays) + 1) / 2
		list.Replays, list.Left = list.Replays[half:], list.Left+half
	}
}
