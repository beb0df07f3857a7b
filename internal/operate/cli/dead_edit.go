package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
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

func (e deadCommands) edit() *cobra.Command {
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
		edit, err := ed.edit(c, e.In)
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			if ed.editor || edit.Empty() {
				if edit.Body, err = e.editedBody(ctx, c, ids[0]); err != nil {
					return err
				}
			}
			changed, err := control.Ask(ctx, c, control.DeadEdit, control.EditLetter{LetterID: control.LetterID{ID: ids[0]},
				Edit: editRequest(edit)})
			switch {
			case err != nil:
				return listsLetters(err)
			case changed.Was == changed.ID:
				err = e.Say("%d stays as it is: nothing was changed", changed.ID)
			default:
				err = e.Say("%d is %d now", changed.Was, changed.ID)
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
func (e deadCommands) editedBody(ctx context.Context, c *control.Client, id uint64) ([]byte, error) {
	j, err := control.WholeLetter(ctx, c, id)
	if err != nil {
		return nil, listsLetters(err)
	}
	l, err := j.Letter()
	if err != nil {
		return nil, err
	}
	body, err := e.Edit(ctx, l.Body)
	if errors.Is(err, terminal.ErrNoEditor) {
		return nil, usage("%w", err)
	}
	return body, err
}
