package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func newDeadExport(e *env) *cobra.Command {
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
		if atDoor(e) {
			return exportTo(e, file, func(w io.Writer, each func(deadletter.Progress)) (deadletter.Counts, error) {
				return exportAtDoor(ctx, e, &s, sel.IDs, w, each)
			})
		}
		return e.withDead(ctx, func(_ *control.Remote, d *deadletter.Store) error {
			return exportTo(e, file, func(w io.Writer, each func(deadletter.Progress)) (deadletter.Counts, error) {
				return d.Export(ctx, sel, w, each)
			})
		})
	})
	s.flags(c)
	c.Flags().StringVar(&file, "file", "-", "file to write, which only you can read; - is stdout")
	return c
}

// exportTo calls export with the file to write, and prints how far it is.
func exportTo(e *env, file string, export func(io.Writer, func(deadletter.Progress)) (deadletter.Counts, error)) (err error) {
	out := e.data()
	if file != "-" {
		f, err := createPrivate(file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	w := bufio.NewWriter(out)
	p := &progress{e: e, verb: "exported", live: file != "-" && config.IsTerminal(e.out)}
	t, err := export(w, func(s deadletter.Progress) {
		p.clear()
		if s.Err != nil {
			fmt.Fprintln(e.err, "pinwheel:", s.Err)
		}
		p.tell(s.Counts.Done+s.Counts.Failed, s.Counts.Total)
	})
	p.clear()
	err = errors.Join(err, w.Flush())
	fmt.Fprintln(e.err, summary(action{verb: "exported"}, t))
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

func newDeadImport(e *env) *cobra.Command {
	return e.command(cobra.Command{
		Use: "import [FILE]", Short: "Store exported dead letters again", Args: cobra.MaximumNArgs(1),
		Long: "Stores the letters of an export, from stdin without FILE, except those that are there already. You can run it again after an\n" +
			"interruption. A letter that was replayed or removed meanwhile comes back.",
		Example: "  pinwheel dead import acme.ndjson",
	}, func(ctx context.Context, args []string) error {
		in := e.in
		if len(args) > 0 && args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return usage("%w", err)
			}
			defer func() { _ = f.Close() }()
			in = f
		}
		if atDoor(e) {
			return importAtDoor(ctx, e, in)
		}
		return e.withDead(ctx, func(_ *control.Remote, d *deadletter.Store) error { return e.importDead(ctx, d, in) })
	})
}

func (e *env) importDead(ctx context.Context, d *deadletter.Store, in io.Reader) error {
	t, err := d.Import(ctx, in, nil)
	if t.Stored > 0 {
		record(ctx, e, "dead.import", "", map[string]int{"number": t.Stored})
	}
	return tellImported(ctx, e, t, err)
}

// tellImported prints how an import ended.
func tellImported(ctx context.Context, e *env, t deadletter.ImportCounts, err error) error {
	fmt.Fprintf(e.out, "%d imported, %d were there already\n", t.Stored, t.There)
	if ctx.Err() != nil {
		return fmt.Errorf("%w after line %d; the same command goes on with the others", ctx.Err(), t.Line)
	}
	return err
}
