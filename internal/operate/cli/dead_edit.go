package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// editing holds the flags that change a letter.
type editing struct {
	data, file, patch string
	set, remove       []string
	editor            bool
	anyBody           bool
}

func (ed *editing) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&ed.data, "data", "", "new body")
	f.StringVar(&ed.file, "data-file", "", "file with the new body; - is stdin")
	f.StringVar(&ed.patch, "patch", "", "`JSON` merge patch (RFC 7396) for the body: what it names is replaced, null removes")
	f.StringArrayVar(&ed.set, "set-header", nil, "`NAME=VALUE`: header to replace; may be repeated")
	f.StringArrayVar(&ed.remove, "remove-header", nil, "`NAME` of a header to leave out; may be repeated")
	f.BoolVar(&ed.editor, "editor", false, "edit the body of one letter with VISUAL or EDITOR")
	f.BoolVar(&ed.anyBody, "any-body", false, "also when a body that was JSON becomes one that is none")
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
	asJSON := false
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
			if ed.editor || edit.Empty() || edit.Body != nil {
				if edit.Body, err = e.newBody(ctx, c, ids[0], edit.Body, ed.anyBody); err != nil {
					return err
				}
			}
			changed, err := control.Ask(ctx, c, control.DeadEdit, control.EditLetter{LetterID: control.LetterID{ID: ids[0]},
				Edit: editRequest(edit)})
			switch {
			case err != nil:
				return listsLetters(err)
			case changed.Was == changed.ID:
				err = e.tell(asJSON, changed, "%d stays as it is: nothing was changed", changed.ID)
			default:
				err = e.tell(asJSON, changed, "%d is %d now", changed.Was, changed.ID)
			}
			return err
		})
	})
	ed.flags(c)
	jsonFlag(c, &asJSON)
	return c
}

// editRequest is an edit as a request.
func editRequest(d events.Edit) control.Edit {
	return control.Edit{BodyBase64: d.Body, Patch: d.Patch, SetHeaders: d.Set, RemoveHeaders: d.Remove}
}

// newBody is the new body of a letter: given, or what the user makes of the one before in an editor. A body that was
// JSON stays JSON, unless anyBody.
func (e deadCommands) newBody(ctx context.Context, c *control.Client, id uint64, given []byte,
	anyBody bool) ([]byte, error) {
	j, err := control.WholeLetter(ctx, c, id)
	if err != nil {
		return nil, listsLetters(err)
	}
	l, err := j.Letter()
	if err != nil {
		return nil, err
	}
	mayBeAny := anyBody || !json.Valid(l.Body)
	if given != nil {
		if fault := jsonFault(given); fault != "" && !mayBeAny {
			return nil, usage("the body of %d is JSON, and the new one is not: %s; --any-body stores it", id, fault)
		}
		return given, nil
	}
	for text := l.Body; ; {
		text, err = e.Edit(ctx, text)
		if errors.Is(err, terminal.ErrNoEditor) {
			return nil, usage("%w", err)
		}
		fault := jsonFault(text)
		if err != nil || mayBeAny || fault == "" {
			return text, err
		}
		fault = fmt.Sprintf("the body of %d is JSON, and the edited one is not: %s", id, fault)
		if !config.IsTerminal(e.In) || !e.Asks(fault+". Edit it again?") {
			return nil, fmt.Errorf("%s; nothing is changed, and --any-body stores it", fault)
		}
	}
}

// jsonFault says why data is no JSON, and where; "" = it is.
func jsonFault(data []byte) string {
	var any json.RawMessage
	err := json.Unmarshal(data, &any)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &syntax):
		return err.Error()
	}
	before := data[:max(0, min(int(syntax.Offset)-1, len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Sprintf("%v in line %d, column %d", err, line, len(before)-bytes.LastIndexByte(before, '\n'))
}
