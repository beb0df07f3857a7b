package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func newDeadCommand(e *env) *cobra.Command {
	return group(cobra.Command{
		Use: "dead", Short: "List, show, edit, replay, export and remove dead letters; show how replays ended",
		Long:    "Dead letters are the events that failed for good.",
		Example: "  pinwheel dead replay --owner acme --worker webhook --since 2h",
	}, newDeadLs(e), newDeadShow(e), newDeadEdit(e), newDeadReplay(e), newDeadReplays(e), newDeadRm(e), newDeadExport(e), newDeadImport(e))
}

func newDeadLs(e *env) *cobra.Command {
	var s selection
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List dead letters, the oldest first", Args: cobra.NoArgs,
		Example: "  pinwheel dead ls --reason exception --since 24h",
	}, func(ctx context.Context, _ []string) error {
		f, err := s.Parse()
		if err != nil {
			return flagError(err)
		}
		if atDoor(e) {
			return listDeadAtDoor(ctx, e, s.Filter, asJSON)
		}
		return e.withDead(ctx, func(_ *control.Remote, d *deadletter.Store) error { return e.listDead(ctx, d, f, asJSON) })
	})
	s.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line, without bodies")
	return c
}

func newDeadShow(e *env) *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "show ID", Short: "Show everything about a dead letter", Args: cobra.ExactArgs(1), Example: "  pinwheel dead show 42",
	}, func(ctx context.Context, args []string) error {
		ids, err := letterIDs(args)
		if err != nil {
			return err
		}
		if atDoor(e) {
			return showDeadAtDoor(ctx, e, ids[0], asJSON)
		}
		return e.withDead(ctx, func(_ *control.Remote, d *deadletter.Store) error {
			letter, err := d.Get(ctx, ids[0])
			if err != nil {
				return err
			}
			if asJSON {
				return e.printLetterJSON(letter, true)
			}
			from, err := d.CameOf(ctx, letter)
			if err != nil { // the letter shows the rest
				fmt.Fprintln(e.err, "pinwheel:", err)
			}
			return e.printLetter(letter, from)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object, with the body")
	return c
}

func newDeadReplay(e *env) *cobra.Command {
	var s selection
	var rate, to string
	var o deadletter.ReplayOptions
	var ed editing
	var c *cobra.Command
	var asJSON bool
	c = e.command(cobra.Command{
		Use: "replay [ID...]", Short: "Run dead letters again",
		Long: "Publishes the events of dead letters again and removes the letters. One that fails again becomes a new dead letter.\n" +
			"Name ids, select by flags, or give --all. --data, --patch, --set-header, --remove-header and --editor change the event for\n" +
			"this replay; a letter that is not replayed stays as it was. A letter whose worker or version does not exist is refused.\n" +
			"When interrupted, it ends after the current letter. 'pinwheel dead replays' shows how replays ended.",
		Example: "  pinwheel dead replay --owner acme --reason timeout --rate 10/s\n  pinwheel dead replay 17 --to import@12 --patch '{\"currency\":\"EUR\"}'",
	}, func(ctx context.Context, args []string) (err error) {
		if o.Rate, err = parseRate(rate); err != nil {
			return err
		}
		if c.Flags().Changed("to") {
			if o.To, err = events.ParseTo(to); err != nil {
				return usage("--to %w", err)
			}
		}
		if o.MaxReplays < 1 {
			return usage("--max-replays is %d: it is 1 or more; --force replays whatever was before", o.MaxReplays)
		}
		if o.Edit, err = ed.edit(c, e.in); err != nil {
			return err
		}
		o.DryRun = s.DryRun
		if atDoor(e) {
			return replayAtDoor(ctx, e, &s, args, &ed, o, to, asJSON)
		}
		return e.act(ctx, e.replayed(&ed, o), &s, args, asJSON)
	})
	s.flags(c)
	s.actionFlags(c)
	ed.flags(c)
	f := c.Flags()
	f.StringVar(&rate, "rate", "", "at most `N/s` replays in a second")
	f.StringVar(&to, "to", "", "run them by another worker of the same owner, or another version: `WORKER`, WORKER@VERSION or @VERSION")
	f.IntVar(&o.MaxReplays, "max-replays", deadletter.DefaultMaxReplays, "refuse what was replayed so often before")
	f.BoolVar(&o.Force, "force", false, "replay also that")
	f.BoolVar(&asJSON, "json", false, "print the outcome of each letter as one JSON object a line")
	return c
}

func newDeadRm(e *env) *cobra.Command {
	var s selection
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "rm [ID...]", Aliases: []string{"purge"}, Short: "Remove dead letters for good",
		Long:    "Removes dead letters: their events are lost. Name ids, select by flags, or give --all.",
		Example: "  pinwheel dead rm 17 18",
	}, func(ctx context.Context, args []string) error {
		if atDoor(e) {
			return purgeAtDoor(ctx, e, &s, args, asJSON)
		}
		return e.act(ctx, removed(s.DryRun), &s, args, asJSON)
	})
	s.flags(c)
	s.actionFlags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the outcome of each letter as one JSON object a line")
	return c
}

func (e *env) withDead(ctx context.Context, f func(*control.Remote, *deadletter.Store) error) error {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	err = f(c, c.DeadLetters())
	if errors.Is(err, deadletter.ErrNoDeadLetter) {
		return fmt.Errorf("%w; 'pinwheel dead ls' lists them, 'pinwheel dead replays ID' says how the replay of one ended", err)
	}
	return err
}

func (e *env) listDead(ctx context.Context, d *deadletter.Store, f deadletter.Filter, asJSON bool) error {
	rows := e.newLetterTable()
	unreadable := 0
	for letter, err := range d.List(ctx, f) {
		switch {
		case errors.Is(err, deadletter.ErrUndecodable):
			unreadable++
			fmt.Fprintln(e.err, "pinwheel:", err)
			continue
		case err != nil:
			return err
		case asJSON:
			err = e.printLetterJSON(letter, false)
		default:
			err = rows.add(letter)
		}
		if err != nil {
			return err
		}
	}
	if !asJSON {
		if err := rows.end(); err != nil {
			return err
		}
	}
	if unreadable > 0 {
		return silent(exitFailure)
	}
	return nil
}

// letterIDs parses the IDs of dead letters.
func letterIDs(args []string) ([]uint64, error) {
	ids := make([]uint64, len(args))
	for i, a := range args {
		id, err := strconv.ParseUint(a, 10, 64)
		if err != nil || id == 0 {
			return nil, usage("dead letter %q: an id is a number, as 'pinwheel dead ls' shows it", a)
		}
		ids[i] = id
	}
	return ids, nil
}

// about describes a letter in a few words.
func about(l *events.DeadLetter) string {
	if l.Failure.Reason == "" {
		return fmt.Sprintf("%d, which cannot be read", l.Seq)
	}
	return fmt.Sprintf("%d %s/%s %s %s", l.Seq, l.Owner, l.Worker, l.Kind, l.Failure.Reason)
}
