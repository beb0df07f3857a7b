// Package terminal is what a command reads from and writes to: streams, lists and tables, and questions to who runs it.
package terminal

import (
	"fmt"
	"io"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// Terminal is what a command reads from and writes to, also when that is a file or another program.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer // what is written to them is printable: see config.Printable
	Raw      Raw
}

// Raw is where a command writes what must not be changed: data for programs and files, what it draws itself, and
// messages of the logger, which makes them printable itself.
type Raw struct{ Out, Err io.Writer }

// New returns a Terminal of the streams of a process.
func New(in io.Reader, out, err io.Writer) *Terminal {
	return &Terminal{In: in, Out: config.Printable(out), Err: config.Printable(err), Raw: Raw{out, err}}
}

// Data is where a command writes data that a worker or its client made, and nothing else. A terminal gets it printable.
func (t *Terminal) Data() io.Writer {
	if config.IsTerminal(t.Raw.Out) {
		return t.Out
	}
	return t.Raw.Out
}

// Say prints a line, or several.
func (t *Terminal) Say(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)
	return err
}
