package terminal

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// Asks prints a question and reports whether the answer is yes.
func (t *Terminal) Asks(question string) bool {
	fmt.Fprint(t.Err, question+" [y/N] ")
	answer, _ := bufio.NewReader(t.In).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// Typed asks on a terminal and reads a line without showing it. The result is nil when standard input is no terminal.
func (t *Terminal) Typed(question string) ([]byte, error) {
	f, ok := t.In.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, nil
	}
	fmt.Fprint(t.Err, question)
	text, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(t.Err)
	if text == nil {
		text = []byte{}
	}
	return text, err
}

// ReadFile reads a file, or standard input if there is no name. what is what it is, of at most most bytes.
func (t *Terminal) ReadFile(name, what string, most int) ([]byte, error) {
	in := t.In
	if name != "" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("the %s has more than %d bytes", what, most)
	}
	return data, err
}

// ErrNoEditor is the error of Edit when no editor is set.
var ErrNoEditor = errors.New("VISUAL and EDITOR are empty: set one, or say by flags what to change")

// Edit lets the user change text in an editor.
func (t *Terminal) Edit(ctx context.Context, text []byte) (edited []byte, err error) {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if editor == "" {
		return nil, ErrNoEditor
	}
	dir, err := os.MkdirTemp("", "pinwheel-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "body")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	// The editor variable often contains arguments, as in "code --wait".
	//nolint:gosec // the editor is the choice of the person at the terminal
	run := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", path)
	run.Stdin, run.Stdout, run.Stderr = t.In, t.Raw.Out, t.Raw.Err
	if err := run.Run(); err != nil {
		return nil, fmt.Errorf("editor %q: %w", editor, err)
	}
	edited, err = os.ReadFile(path)
	if !bytes.HasSuffix(text, []byte("\n")) { // editors add a line break at the end
		edited = bytes.TrimSuffix(edited, []byte("\n"))
	}
	return edited, err
}
