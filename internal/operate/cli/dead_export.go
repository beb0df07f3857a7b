package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

func (e deadCommands) export() *cobra.Command {
	var s selection
	var file string
	c := e.command(cobra.Command{
		Use: "export [ID...]", Short: "Write dead letters to a file, one JSON object a line",
		Long:    "Writes whole dead letters as JSON, one a line. 'pinwheel dead import' reads them. Without ids and flags that select, it writes all. It removes nothing.",
		Example: "  pinwheel dead export --owner acme --file acme.ndjson",
	}, func(ctx context.Context, args []string) error {
		s.All = len(args) == 0 && !s.Narrow()
		sel, err := s.selected(args)
		if err != nil {
			return err
		}
		return e.exportTo(file, func(w io.Writer, each func(deadletter.Progress)) (t deadletter.Counts, err error) {
			err = e.withFleet(ctx, func(c *control.Client) error {
				t, err = exportLetters(ctx, c, sel, w, each)
				return err
			})
			return t, err
		})
	})
	s.flags(c)
	c.Flags().StringVar(&file, "file", "-", "file to write, which only you can read; - is stdout")
	return c
}

// exportTo calls export with the file to write, and prints how far it is.
func (e deadCommands) exportTo(file string,
	export func(io.Writer, func(deadletter.Progress)) (deadletter.Counts, error)) (err error) {
	out := e.Data()
	if file != "-" {
		f, err := createPrivate(file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	w := bufio.NewWriter(out)
	p := &progress{to: e.Terminal, verb: "exported", live: file != "-" && config.IsTerminal(e.Out)}
	t, err := export(w, func(s deadletter.Progress) {
		p.clear()
		if s.Err != nil {
			fmt.Fprintln(e.Err, "pinwheel:", s.Err)
		}
		p.tell(s.Counts.Done+s.Counts.Failed, s.Counts.Total)
	})
	p.clear()
	err = errors.Join(err, w.Flush())
	fmt.Fprintln(e.Err, summary(action{verb: "exported"}, t))
	if err == nil && t.Failed > 0 {
		return silent(exitFailure)
	}
	return err
}

// createPrivate opens a file for data, which may be secret: only this user can read it, whoever could before.
func createPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&^0o600 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("others can read %s: %w", path, err), f.Close())
		}
	}
	return f, nil
}

// exportLetters writes whole letters as JSON, one a line.
func exportLetters(ctx context.Context, c *control.Client, s control.Selection, w io.Writer,
	each func(deadletter.Progress)) (t deadletter.Counts, err error) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	write := func(id uint64, j *events.LetterJSON, err error) error {
		l := &events.DeadLetter{Seq: id}
		if err == nil {
			if l, err = j.Letter(); err == nil {
				if err := enc.Encode(l.JSON(true)); err != nil {
					return err
				}
			}
		}
		if t.Total = max(t.Total, t.Done+t.Failed+1); err == nil {
			t.Done++
		} else {
			t.Failed++
		}
		each(deadletter.Progress{Letter: l, Err: err, Counts: t})
		return nil
	}
	if len(s.IDs) > 0 {
		t.Total = len(s.IDs)
		err = exportIDs(ctx, c, s.IDs, write)
		return t, err
	}
	r := control.ListLetters{Filter: s.Filter}
	err = everyPage(s.Limit, func(limit int) (int, bool, error) {
		r.Limit = limit
		page, err := control.WholeLetters(ctx, c, r)
		if err != nil {
			return 0, false, err
		}
		r.After = page.Next
		for _, id := range page.Unreadable {
			if err := write(id, nil, fmt.Errorf("message %d: not a dead letter", id)); err != nil {
				return 0, false, err
			}
		}
		for _, j := range page.Letters {
			if err := write(j.ID, j, nil); err != nil {
				return 0, false, err
			}
		}
		return len(page.Letters) + len(page.Unreadable), page.Next != 0, nil
	})
	return t, err
}

// exportIDs exports single letters. One that is not there does not end the export.
func exportIDs(ctx context.Context, c *control.Client, ids []uint64,
	write func(uint64, *events.LetterJSON, error) error) error {
	for _, id := range ids {
		j, err := control.WholeLetter(ctx, c, id)
		var refused *control.Error
		if err != nil && (!errors.As(err, &refused) || refused.Code != 404) {
			return err
		}
		if err := write(id, j, err); err != nil {
			return err
		}
	}
	return nil
}
