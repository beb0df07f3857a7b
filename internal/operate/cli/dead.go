package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// deadCommands are the commands about dead letters.
type deadCommands struct{ *env }

func (e deadCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "dead", Short: "List, show, edit, replay, export and remove dead letters; show how replays ended",
		Long:    "Dead letters are the events that failed for good.",
		Example: "  pinwheel dead replay --owner acme --worker webhook --since 2h",
	}, e.ls(), e.show(), e.edit(), e.replay(), e.replays(), e.rm(), e.export(), e.importing())
}

func (e deadCommands) ls() *cobra.Command {
	var s selection
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List dead letters, the oldest first", Args: cobra.NoArgs,
		Example: "  pinwheel dead ls --reason exception --since 24h",
	}, func(ctx context.Context, _ []string) error {
		if _, err := s.Parse(); err != nil {
			return flagError(err)
		}
		return e.withFleet(ctx, func(c *control.Client) error { return e.list(ctx, c, s.Filter, asJSON) })
	})
	s.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line, without bodies")
	return c
}

func (e deadCommands) show() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "show ID", Short: "Show everything about a dead letter", Args: cobra.ExactArgs(1),
		Example: "  pinwheel dead show 42",
	}, func(ctx context.Context, args []string) error {
		ids, err := letterIDs(args)
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error { return e.print(ctx, c, ids[0], asJSON) })
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object, with the body")
	return c
}

func (e deadCommands) replay() *cobra.Command {
	var s selection
	var rate string
	var r control.Replay
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
		if r.Rate, err = parseRate(rate); err != nil {
			return err
		}
		if c.Flags().Changed("to") {
			if _, err = events.ParseTo(r.To); err != nil {
				return usage("--to %w", err)
			}
		}
		if r.MaxReplays < 1 {
			return usage("--max-replays is %d: it is 1 or more; --force replays whatever was before", r.MaxReplays)
		}
		edit, err := ed.edit(c, e.In)
		if err != nil {
			return err
		}
		if r.Selection, err = s.selected(args); err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			if ed.editor && len(r.IDs) != 1 {
				return usage("--editor edits one letter: name its id")
			}
			if ed.editor || edit.Body != nil && len(r.IDs) == 1 {
				if edit.Body, err = e.newBody(ctx, c, r.IDs[0], edit.Body, ed.anyBody); err != nil {
					return err
				}
			}
			r.Edit = editRequest(edit)
			return act(ctx, e.Terminal, c, control.DeadReplay, r, action{"replayed", s.DryRun}, asJSON)
		})
	})
	s.flags(c)
	s.actionFlags(c)
	ed.flags(c)
	f := c.Flags()
	f.StringVar(&rate, "rate", "", "at most `N/s` replays in a second")
	f.StringVar(&r.To, "to", "", "run them by another worker of the same owner, or another version: `WORKER`, WORKER@VERSION or @VERSION")
	f.IntVar(&r.MaxReplays, "max-replays", deadletter.DefaultMaxReplays, "refuse what was replayed so often before")
	f.BoolVar(&r.Force, "force", false, "replay also that")
	f.BoolVar(&asJSON, "json", false, "print the outcome of each letter as one JSON object a line")
	return c
}

func (e deadCommands) rm() *cobra.Command {
	var s selection
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "rm [ID...]", Aliases: []string{"purge"}, Short: "Remove dead letters for good",
		Long:    "Removes dead letters: their events are lost. Name ids, select by flags, or give --all.",
		Example: "  pinwheel dead rm 17 18",
	}, func(ctx context.Context, args []string) error {
		r, err := s.selected(args)
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			return act(ctx, e.Terminal, c, control.DeadPurge, r, action{"removed", s.DryRun}, asJSON)
		})
	})
	s.flags(c)
	s.actionFlags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the outcome of each letter as one JSON object a line")
	return c
}

// listsLetters adds how to list the letters.
func listsLetters(err error) error {
	return hint(err, "'pinwheel dead ls' lists them, 'pinwheel dead replays ID' says how the replay of one ended")
}

func (e deadCommands) list(ctx context.Context, c *control.Client, f control.Filter, asJSON bool) error {
	p, unreadable := e.List(asJSON, "ID", "FAILED", "WORKER", "KIND", "REASON", "ATTEMPTS", "REPLAYS", "MESSAGE"), 0
	r := control.ListLetters{Filter: f}
	err := everyPage(f.Limit, func(limit int) (int, bool, error) {
		r.Limit = limit
		page, err := control.Ask(ctx, c, control.DeadList, r)
		unreadable += len(page.Unreadable)
		for _, seq := range page.Unreadable {
			fmt.Fprintf(e.Err, "pinwheel: message %d: not a dead letter\n", seq)
		}
		for _, l := range page.Letters {
			err = cmp.Or(err, p.Add(l, letterCells(l)...))
		}
		r.After = page.Next
		return len(page.Letters) + len(page.Unreadable), page.Next != 0, err
	})
	if err = errors.Join(err, p.End()); err == nil && unreadable > 0 {
		return silent(exitFailure)
	}
	return err
}

func (e deadCommands) print(ctx context.Context, c *control.Client, id uint64, asJSON bool) error {
	j, err := control.WholeLetter(ctx, c, id)
	if err != nil {
		return listsLetters(err)
	}
	l, err := j.Letter()
	switch {
	case err != nil:
		return err
	case asJSON:
		return e.Object(l.JSON(true))
	}
	return printLetter(e.Terminal, l, cameOf(ctx, c, l))
}

// cameOf finds the replay that ended with a letter, or nil. What is not known of it is left out.
func cameOf(ctx context.Context, c *control.Client, l *events.DeadLetter) *deadletter.Replayed {
	if _, _, is := events.ParseReplayMark(l.Header.Get(events.HeaderReplay)); !is {
		return nil
	}
	list, err := control.Ask(ctx, c, control.DeadReplays, control.ReplayFilter{Owner: l.Owner, Worker: l.Worker,
		State: string(deadletter.ReplayDead), Limit: 1000})
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(list.Replays, func(r *deadletter.Replayed) bool { return r.Dead == l.Seq })
	if i < 0 {
		return nil
	}
	return list.Replays[i]
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
