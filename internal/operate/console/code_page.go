package console

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// codePage is the data of the page of a file of a version.
type codePage struct {
	control.ShownSource
	Marked int // line; 0 = none
}

// codeLine is a line of a file.
type codeLine struct {
	Number int
	Text   string
	Marked bool
}

// Shown are the lines of the part.
func (p codePage) Shown() []codeLine {
	texts := strings.Split(p.Text, "\n")
	lines := make([]codeLine, len(texts))
	for i, text := range texts {
		lines[i] = codeLine{p.From + i, strings.TrimSuffix(text, "\r"), p.From+i == p.Marked}
	}
	return lines
}

// Last is the number of the last line of the part.
func (p codePage) Last() int { return p.From + strings.Count(p.Text, "\n") }

// FileLink is the address of another file of the version.
func (p codePage) FileLink(file string) string {
	owner, worker, _ := strings.Cut(p.Worker, "/")
	return codeLink(owner, worker, p.Version, file, 0)
}

// PartLink is the address of the part around a line, which is not marked.
func (p codePage) PartLink(line int) string { return p.FileLink(p.File) + "&at=" + strconv.Itoa(line) }

// Before and After are lines in the middle of the parts before and after this one; 0 = there is none.
func (p codePage) Before() int { return max(0, p.From-1) }

// After is as Before.
func (p codePage) After() int {
	if last := p.Last(); last < p.Lines {
		return last + 1
	}
	return 0
}

func showCode(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	r := control.ShowSource{WorkerName: in.workerName(), Version: in.arg("version"), File: in.arg("file")}
	marked := 0
	for name, into := range map[string]*int{"line": &marked, "at": &r.Line} {
		if text := in.arg(name); text != "" {
			var err error
			if *into, err = strconv.Atoi(text); err != nil {
				return nil, wrongForm(name, text, "it is the number of a line")
			}
		}
	}
	r.Line = cmp.Or(marked, r.Line)
	shown, err := control.Ask(ctx, fleet, control.VersionsSource, r)
	if err != nil {
		return nil, err
	}
	return &page{view: "code", title: shown.File, place: "workers", data: codePage{shown, marked}}, nil
}

// codeLink is the address of a file of a version, with a line that is marked. "" = the names name no worker.
func codeLink(owner, worker, version, file string, line int) string {
	if !events.ValidName(owner) || !events.ValidName(worker) {
		return ""
	}
	q := url.Values{"file": {file}}
	if version != "" {
		q.Set("version", version)
	}
	anchor := ""
	if line > 0 {
		q.Set("line", strconv.Itoa(line))
		anchor = "#L" + strconv.Itoa(line)
	}
	return "/workers/" + owner + "/" + worker + "/code?" + q.Encode() + anchor
}

// stackPiece is a part of a stack: a text, and where its position leads; "" = nowhere.
type stackPiece struct{ Text, Link string }

// stackPieces divides a stack, or another text of a worker, so that the positions of its frames can be links. All
// pieces together are the text.
func stackPieces(owner, worker, version, text string) (pieces []stackPiece) {
	plain := 0
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		if from, to, file, line := framePosition(text[at:end]); line > 0 {
			if link := codeLink(owner, worker, version, file, line); link != "" {
				pieces = append(pieces, stackPiece{Text: text[plain : at+from]}, stackPiece{text[at+from : at+to], link})
				plain = at + to
			}
		}
		at = end + 1
	}
	if plain < len(text) {
		pieces = append(pieces, stackPiece{Text: text[plain:]})
	}
	return pieces
}

// framePosition finds file:line:column at the end of a frame, as V8 writes one: "at f (FILE:1:2)" or "at FILE:1:2".
// from and to are where it stands. line is 0 when there is none.
func framePosition(frame string) (from, to int, file string, line int) {
	trimmed := strings.TrimLeft(frame, " \t")
	rest, ok := strings.CutPrefix(trimmed, "at ")
	if !ok {
		return 0, 0, "", 0
	}
	from = len(frame) - len(rest)
	to = from + len(strings.TrimRight(rest, " \r"))
	if to > from && frame[to-1] == ')' {
		to--
		open := strings.LastIndexByte(frame[:to], '(')
		if open < from {
			return 0, 0, "", 0
		}
		from = open + 1
	} else if after, ok := strings.CutPrefix(frame[from:to], "async "); ok {
		from = to - len(after)
	}
	place, column := cutNumber(frame[from:to])
	place, line = cutNumber(place)
	if column == 0 || place == "" || strings.ContainsAny(place, "()<>\x00") || strings.HasPrefix(place, "node:") {
		return 0, 0, "", 0
	}
	return from, to, place, line
}

// cutNumber takes ":NUMBER" off the end. The number is 0 when there is none.
func cutNumber(s string) (rest string, n int) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || len(s)-i > 8 {
		return s, 0
	}
	n, err := strconv.Atoi(s[i+1:])
	if err != nil || n < 1 || s[i+1] == '+' {
		return s, 0
	}
	return s[:i], n
}
