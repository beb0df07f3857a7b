package cli

import (
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

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// editing holds the flags that change a letter.
type editing struct {
	data, file, patch string
	set, remove       []string
	editor            bool
}

func (ed *editing) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&ed.data, "data", "", "new body")
	f.StringVar(&ed.file, "data-file", "", "file with the new body; - is stdin")
	f.StringVar(&ed.patch, "patch", "", "`JSON` merge patch (RFC 7396) for the body: what it names is replaced, null removes")
	f.StringArrayVar(&ed.set, "set-header", nil, "`NAME=VALUE`: header to replace; may be repeated")
	f.StringArrayVar(&ed.remove, "remove-header", nil, "`NAME` of a header to leave out; may be repeated")
	f.BoolVar(&ed.editor, "editor", false, "edit the body of one letter with VISUAL or EDITOR")
}

// edit reads the flags. Its error is a usage error.
func (ed *editing) edit(c *cobra.Command, stdin io.Reader) (edit events.Edit, err error) {
	given := 0
	for _, flag := range []string{"data", "data-file", "patch", "editor"} {
		if c.Flags().Changed(flag) {
			given++
		}
	}
	if given > 1 {
		return edit, usage("--data, --data-file, --patch and --editor: choose one")
	}
	switch {
	case c.Flags().Changed("data"):
		edit.Body = []byte(ed.data)
	case ed.file == "-":
		if edit.Body, err = io.ReadAll(stdin); err != nil {
			return edit, fmt.Errorf("read stdin: %w", err)
		}
	case ed.file != "":
		if edit.Body, err = os.ReadFile(ed.file); err != nil {
			return edit, usage("--data-file: %w", err)
		}
	case c.Flags().Changed("patch"):
		edit.Patch = []byte(ed.patch)
	}
	for _, h := range ed.set {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return edit, usage("--set-header %q: write it as NAME=VALUE", h)
		}
		if edit.Set == nil {
			edit.Set = events.Header{}
		}
		edit.Set[name] = append(edit.Set[name], value)
	}
	edit.Remove = ed.remove
	if err := edit.Validate(); err != nil {
		return edit, usage("%w", err)
	}
	return edit, nil
}

func newDeadEdit(e *env) *cobra.Command {
	var ed editing
	var c *cobra.Command
	c = e.command(cobra.Command{
		Use: "edit ID", Short: "Change the body or headers of a dead letter", Args: cobra.ExactArgs(1),
		Long: "Changes a dead letter, so that a replay runs the changed event. The letter is stored again and gets another id. Its history and\n" +
			"counts stay, and it is marked as edited. If nothing changes, it keeps its id. Without flags, VISUAL or EDITOR edits the body.",
		Example: "  pinwheel dead edit 17 --patch '{\"currency\":\"EUR\"}'",
	}, func(ctx context.Context, args []string) error {
		ids, err := letterIDs(args)
		if err != nil {
			return err
		}
		edit, err := ed.edit(c, e.in)
		if err != nil {
			return err
		}
		return withFleet(ctx, e, func(c *control.Client) error {
			if ed.editor || edit.Empty() {
				if edit.Body, err = editedBody(ctx, e, c, ids[0]); err != nil {
					return err
				}
			}
			changed, err := control.Ask(ctx, c, control.DeadEdit, control.EditLetter{LetterID: control.LetterID{ID: ids[0]},
				Edit: editRequest(edit)})
			switch {
			case err != nil:
				return listsLetters(err)
			case changed.Was == changed.ID:
				_, err = fmt.Fprintf(e.out, "%d stays as it is: nothing was changed\n", changed.ID)
			default:
				_, err = fmt.Fprintf(e.out, "%d is %d now\n", changed.Was, changed.ID)
			}
			return err
		})
	})
	ed.flags(c)
	return c
}

// editRequest is an edit as a request.
func editRequest(d events.Edit) control.Edit {
	return control.Edit{BodyBase64: d.Body, Patch: d.Patch, SetHeaders: d.Set, RemoveHeaders: d.Remove}
}

// editedBody lets the user change the body of a letter in an editor.
func editedBody(ctx context.Context, e *env, c *control.Client, id uint64) ([]byte, error) {
	j, err := control.WholeLetter(ctx, c, id)
	if err != nil {
		return nil, listsLetters(err)
	}
	l, err := j.Letter()
	if err != nil {
		return nil, err
	}
	return e.editBody(ctx, l.Body)
}

// editBody lets the user change body in an editor.
func (e *env) editBody(ctx context.Context, body []byte) (edited []byte, err error) {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if editor == "" {
		return nil, usage("VISUAL and EDITOR are empty: set one, or say by flags what to change")
	}
	dir, err := os.MkdirTemp("", "pinwheel-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "body")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		return nil, err
	}
	// The editor variable often contains arguments, as in "code --wait".
	//nolint:gosec // the editor is the choice of the person at the terminal
	run := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", path)
	run.Stdin, run.Stdout, run.Stderr = e.in, e.raw.out, e.raw.err
	if err := run.Run(); err != nil {
		return nil, fmt.Errorf("editor %q: %w", editor, err)
	}
	edited, err = os.ReadFile(path)
	if !bytes.HasSuffix(body, []byte("\n")) { // editors add a line break at the end
		edited = bytes.TrimSuffix(edited, []byte("\n"))
	}
	return edited, err
}
