package cli

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// typed asks on a terminal and reads a line without showing it. The result is nil when standard input is no terminal.
func typed(e *env, question string) ([]byte, error) {
	f, ok := e.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, nil
	}
	fmt.Fprint(e.err, question)
	text, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(e.err)
	if text == nil {
		text = []byte{}
	}
	return text, err
}
