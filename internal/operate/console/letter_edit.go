package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// editPage is the data of the form that changes a letter.
type editPage struct {
	ID      uint64
	Body    string
	Base64  bool   // Body is in base64, because the body is no text
	Lines   bool   // Body is JSON in lines, and the body is in one
	Headers string // Name: value, a line each
	Diff    []diffLine
	Seen    string // hash of what the person has seen the difference of; "": it has not asked for it
}

// diffLine is a line of a difference. Its first character says what it is.
type diffLine struct{ Kind, Text string }

// bodyText is the body of a letter as a form has it.
func bodyText(l *events.LetterJSON) (text string, base bool) {
	switch {
	case l.Body != nil:
		return *l.Body, false
	case l.BodyBase64 != nil:
		return base64.StdEncoding.EncodeToString(l.BodyBase64), true
	}
	return "", false
}

// headerText writes headers, a line each.
func headerText(h events.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	return b.String()
}

// parseHeaders reads what headerText writes.
func parseHeaders(text string) (events.Header, error) {
	h := events.Header{}
	for line := range strings.SplitSeq(plainLines(text), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, wrongForm("headers", line, "each line is Name: value")
		}
		h[name] = append(h[name], strings.TrimSpace(value))
	}
	return h, nil
}

// plainLines has line breaks as most bodies have them: a form sends CRLF.
func plainLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// editable reads the letter of the URL, whose body must be here.
func editable(ctx context.Context, fleet *control.Client, in inputs) (*events.LetterJSON, editPage, error) {
	id, err := in.letterID()
	if err != nil {
		return nil, editPage{}, err
	}
	l, err := control.Ask(ctx, fleet, control.DeadShow, id)
	if err != nil {
		return nil, editPage{}, err
	}
	if !(letterPage{LetterJSON: l}).Shown() {
		return nil, editPage{}, &control.Error{Code: 413, Text: fmt.Sprintf("the body has %d bytes, more than a message to the console: use pinwheel dead edit %d --editor",
			l.BodyBytes, l.ID)}
	}
	p := editPage{ID: l.ID, Headers: headerText(l.Headers)}
	if p.Body, p.Base64 = bodyText(l); !p.Base64 {
		if lines, back := inLines(p.Body); back {
			p.Body, p.Lines = lines, true
		}
	}
	return l, p, nil
}

func showEdit(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	_, p, err := editable(ctx, fleet, in)
	if err != nil {
		return nil, err
	}
	return p.page(), nil
}

func (p editPage) page() *page {
	return &page{view: "edit", title: fmt.Sprintf("Edit dead letter %d", p.ID), place: "dead", data: p}
}

// edit shows what a form would change, and changes it when the form says that the person has seen it. It replays the
// letter then, if the person wants that. What is refused stays in the form.
func edit(c *call) (*page, error) {
	l, p, err := editable(c.ctx, c.fleet(), c.inputs)
	if err != nil {
		return nil, err
	}
	was := p
	p.Body, p.Headers = c.form("body"), plainLines(c.form("headers"))
	if !strings.Contains(was.Body, "\r\n") {
		p.Body = plainLines(p.Body)
	}
	if lines, back := inLines(p.stored()); p.Lines && back {
		p.Body = lines // also when it was typed in one line: only what differs in the JSON is a difference
	}
	e, err := p.change(was, l)
	if err != nil {
		return p.page(), err
	}
	p.Diff = append(difference("headers", was.Headers, p.Headers), difference("body", was.Body, p.Body)...)
	p.Seen = hash(p.Body, p.Headers)
	step := c.form("step")
	if len(p.Diff) == 0 || step != "save" && step != "replay" || c.form("seen") != p.Seen {
		return p.page(), nil
	}
	done, err := control.Ask(c.ctx, c.fleet(), control.DeadEdit, control.EditLetter{LetterID: control.LetterID{ID: l.ID},
		Edit: e})
	if err != nil {
		return p.page(), err
	}
	at := fmt.Sprintf("/dead/%d", done.ID)
	if step == "save" {
		return c.done(at, "Dead letter %d is changed. Its number is %d now.", done.Was, done.ID)
	}
	j, err := control.Ask(c.ctx, c.fleet(), control.DeadReplay,
		control.Replay{Selection: control.Selection{IDs: []uint64{done.ID}}})
	if err != nil {
		return c.done(at, "Dead letter %d is changed. Its number is %d now. It is not replayed: %s.", done.Was, done.ID,
			failureOf(err).Text)
	}
	return c.done("/jobs/"+j.Job, "Dead letter %d is changed, and is sent again as %d.", done.Was, done.ID)
}

func hash(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// change is what a form changes of a letter.
func (p editPage) change(was editPage, l *events.LetterJSON) (e control.Edit, err error) {
	if p.Body != was.Body {
		if was.Base64 {
			if e.BodyBase64, err = base64.StdEncoding.DecodeString(strings.TrimSpace(p.Body)); err != nil {
				return e, wrongForm("body", p.Body[:min(len(p.Body), 40)], "it is base64, because the body of this letter is no text")
			}
		} else {
			e.Body = new(p.stored())
		}
	}
	if !utf8.ValidString(p.Body) {
		return e, wrongForm("body", "", "it is text in UTF-8")
	}
	h, err := parseHeaders(p.Headers)
	if err != nil {
		return e, err
	}
	for name, values := range h {
		if !slices.Equal(values, l.Headers[name]) {
			if e.SetHeaders == nil {
				e.SetHeaders = events.Header{}
			}
			e.SetHeaders[name] = values
		}
	}
	for name := range l.Headers {
		if _, stays := h[name]; !stays {
			e.RemoveHeaders = append(e.RemoveHeaders, name)
		}
	}
	slices.Sort(e.RemoveHeaders)
	return e, nil
}

// stored is the body as it is stored: JSON that was in one line is so again.
func (p editPage) stored() string {
	var b bytes.Buffer
	if p.Lines && json.Compact(&b, []byte(p.Body)) == nil {
		return b.String()
	}
	return p.Body
}

// maxDiff is the longest text that is compared line by line, in bytes: the time grows faster than the text.
const maxDiff = 256 << 10

// difference compares two texts.
func difference(name, before, after string) (lines []diffLine) {
	if before == after {
		return nil
	}
	if len(before) > maxDiff || len(after) > maxDiff {
		return []diffLine{{"head", fmt.Sprintf("%s: %d bytes, %d before; too long to compare line by line", name, len(after), len(before))}}
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(udiff.Unified(name+" now", name+" changed", before, after),
		"\n"), "\n") {
		kind := "same"
		switch {
		case strings.HasPrefix(line, `\`): // there is no line break at the end
			continue
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "@@"):
			kind = "head"
		case strings.HasPrefix(line, "+"):
			kind = "added"
		case strings.HasPrefix(line, "-"):
			kind = "removed"
		}
		lines = append(lines, diffLine{kind, line})
	}
	return lines
}
