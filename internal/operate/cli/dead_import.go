package cli

import (
	"bytes"
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
)

func (e deadCommands) importing() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "import [FILE]", Short: "Store exported dead letters again", Args: cobra.MaximumNArgs(1),
		Long: "Stores the letters of an export, from stdin without FILE, except those that are there already. You can run it again after an\n" +
			"interruption. A letter that was replayed or removed meanwhile comes back.",
		Example: "  pinwheel dead import acme.ndjson",
	}, func(ctx context.Context, args []string) error {
		in := e.In
		if len(args) > 0 && args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return usage("%w", err)
			}
			defer func() { _ = f.Close() }()
			in = f
		}
		return e.importFrom(ctx, in, asJSON)
	})
	jsonFlag(c, &asJSON)
	return c
}

// A body of letters is sent when it has this many letters or bytes. One letter may have more bytes.
const (
	importLetters = 200
	importBytes   = 2 << 20
)

// importing is an import by the owner API.
type importing struct {
	owner string
	c     *control.Client
	up    upload
	t     deadletter.ImportCounts

	body        bytes.Buffer
	letters     int
	first, last int // lines of the body
}

// importFrom stores the letters of in. The fleet's user restores them as they were; an owner has them checked.
func (e deadCommands) importFrom(ctx context.Context, in io.Reader, asJSON bool) error {
	i := &importing{owner: e.cfg.Owner}
	err := e.withFleet(ctx, func(c *control.Client) (err error) {
		if c.Restores() {
			i.t, err = control.Restore(ctx, c, in)
			return err
		}
		if i.up, err = e.openUpload(i.owner); err != nil {
			return err
		}
		defer i.up.close()
		i.c = c
		return i.all(ctx, in)
	})
	told := e.tell(asJSON, map[string]any{"imported": i.t.Stored, "there": i.t.There, "line": i.t.Line},
		"%d imported, %d were there already", i.t.Stored, i.t.There)
	if ctx.Err() != nil {
		return fmt.Errorf("%w after line %d; the same command goes on with the others", ctx.Err(), i.t.Line)
	}
	return errors.Join(err, told)
}

// all sends the letters of in. Those before a line that is no letter of the owner are stored.
func (i *importing) all(ctx context.Context, in io.Reader) error {
	for l, err := range deadletter.Lines(ctx, in, &i.t.Line) {
		if err == nil {
			if err = l.ImportFor(i.owner); err != nil {
				err = fmt.Errorf("line %d: %w", i.t.Line, err)
			}
		}
		if err == nil {
			err = i.add(ctx, l)
		}
		if err != nil {
			return errors.Join(err, i.flush(ctx))
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return i.flush(ctx)
}

// add adds a letter to the next body.
func (i *importing) add(ctx context.Context, l *events.DeadLetter) error {
	j := l.JSON(true)
	text, err := json.Marshal(j)
	if err == nil && len(text) > importBytes && j.Body != nil { // JSON escapes may take six times the bytes
		j.Body, j.BodyBase64 = nil, l.Body
		text, err = json.Marshal(j)
	}
	if err != nil {
		return err
	}
	if len(text)+1 > control.MaxImportBody {
		return fmt.Errorf("line %d: the letter has %d bytes: at most %d are allowed", i.t.Line, len(text), control.MaxImportBody-1)
	}
	if i.letters == importLetters || i.letters > 0 && i.body.Len()+len(text) > importBytes {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	if i.letters == 0 {
		i.first = i.t.Line
	}
	i.body.Write(text)
	i.body.WriteByte('\n')
	i.last = i.t.Line
	i.letters++
	return nil
}

// flush sends the next body.
func (i *importing) flush(ctx context.Context) error {
	if i.letters == 0 {
		return nil
	}
	body, err := i.up.body(ctx, i.owner, i.body.Bytes())
	if err == nil {
		var done control.ImportedLetters
		done, err = control.Import(ctx, i.c, control.ImportLetters{Owner: i.owner, Body: body})
		i.t.Stored += done.Stored
		i.t.There += done.There
	}
	i.body.Reset()
	i.letters = 0
	if err != nil {
		return fmt.Errorf("lines %d to %d: %w", i.first, i.last, err)
	}
	return nil
}
