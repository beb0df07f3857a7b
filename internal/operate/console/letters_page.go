package console

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// lettersPage is the data of the list of dead letters.
type lettersPage struct {
	control.LetterList
	Counts  control.LetterCounts
	Query   url.Values // the filter
	Reasons []events.Reason
	Jobs    []control.Job
	Before  uint64 // ID before which this page begins; 0: it is the first
	Oldest  bool   // the oldest come first
	After   uint64 // ID after which it begins, when it goes up
}

// Narrow reports whether there is a filter.
func (p lettersPage) Narrow() bool { return filterOf(p.Query).Narrow() }

// Inexact reports whether the filter has a part by which letters cannot be counted.
func (p lettersPage) Inexact() bool { return inexact(p.Query) }

func inexact(q url.Values) bool {
	return q.Get("text")+q.Get("match")+q.Get("since")+q.Get("until")+q.Get("replays") != ""
}

// Most is the largest count, for the lengths of bars.
func (p lettersPage) Most() int { return p.Counts.Counts[0].Count }

// Link is the query of the filter.
func (p lettersPage) Link() string { return with(p.Query) }

// OldestLink is the query of the filter, with the oldest letters first.
func (p lettersPage) OldestLink() string { return with(p.Query, "sort", "oldest") }

// More is the query of the letters below those of the page; "": there are none.
func (p lettersPage) More() string {
	switch {
	case p.Next == 0:
		return ""
	case p.Oldest:
		return with(p.Query, "sort", "oldest", "after", fmt.Sprint(p.Next))
	}
	return with(p.Query, "before", fmt.Sprint(p.Next))
}

// First reports whether the list begins with this page.
func (p lettersPage) First() bool { return p.Before == 0 && p.After == 0 }

// All is the query of forms that act on all letters of the filter.
func (p lettersPage) All() string {
	if !p.Narrow() {
		return "?all=yes"
	}
	return with(p.Query)
}

// Kinds are those that a letter may have.
func (lettersPage) Kinds() []string { return []string{"fetch", "task", "scheduled", "unknown"} }

// CountLink is the query that shows the letters of a count.
func (p lettersPage) CountLink(n control.LetterCount) string {
	return with(p.Query, "owner", n.Owner, "worker", n.Worker, "kind", n.Kind, "reason", n.Reason)
}

// filterFields are the fields of a filter of dead letters, as the URL names them.
var filterFields = []string{"owner", "worker", "kind", "reason", "text", "match", "since", "until", "replays"}

// filterOf is the filter in a query or in a form.
func filterOf(q url.Values) control.Filter {
	return control.Filter{
		Owner: q.Get("owner"), Worker: q.Get("worker"), Kind: q.Get("kind"), Reason: q.Get("reason"), Text: q.Get("text"),
		Match: q.Get("match"), Since: q.Get("since"),
		Until: q.Get("until"), Replays: q.Get("replays"),
	}
}

// filterQuery has only the filter of a query.
func filterQuery(q url.Values) url.Values {
	only := url.Values{}
	for _, name := range filterFields {
		if v := q.Get(name); v != "" {
			only.Set(name, v)
		}
	}
	return only
}

func listLetters(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	q := in.query()
	p := lettersPage{Query: filterQuery(q), Reasons: events.Reasons[:], Oldest: q.Get("sort") == "oldest"}
	show := func(err error) (*page, error) {
		return &page{view: "dead", title: "Dead letters", place: "dead", data: p}, err
	}
	r := control.ListLetters{Filter: filterOf(q), Newest: !p.Oldest}
	for name, into := range map[string]*uint64{"before": &r.Before, "after": &r.After} {
		if text := q.Get(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return show(wrongForm(name, text, "it is the number of a letter"))
			}
			*into = n
		}
	}
	if p.Oldest {
		r.Before = 0
	} else {
		r.After = 0
	}
	p.Before, p.After, r.Limit = r.Before, r.After, pageSize
	var err error
	if p.LetterList, err = search(ctx, fleet, r); err != nil {
		return show(err)
	}
	if q.Get("counts") != "" {
		if err := p.count(ctx, fleet); err != nil {
			return show(err)
		}
	}
	p.Jobs, _, _ = fleet.AllJobs(ctx) // a busy fleet may not answer in its second: the letters are what the page is for
	return show(nil)
}

// searchTime is how long a page looks for letters that are rare.
const searchTime = 10 * time.Second

// search lists letters that r chooses: the newest or the oldest. A process answers with a part when it has looked at
// many in vain: the page goes on from there until it is full, or it takes too long.
func search(ctx context.Context, fleet *control.Client, r control.ListLetters) (list control.LetterList, err error) {
	for end := time.Now().Add(searchTime); ; r.Limit = pageSize - len(list.Letters) {
		part, err := control.Ask(ctx, fleet, control.DeadList, r)
		if err != nil {
			return list, err
		}
		list.Letters, list.Unreadable = append(list.Letters, part.Letters...), append(list.Unreadable, part.Unreadable...)
		list.Next, list.More, list.Scanned = part.Next, part.More, list.Scanned+part.Scanned
		if !part.More || len(list.Letters) >= pageSize || time.Now().After(end) {
			return list, nil
		}
		if r.Newest {
			r.Before = list.Next
		} else {
			r.After = list.Next
		}
	}
}

// count counts the letters of the filter, as far as subjects show it. To count 100 000 takes longer than to list a
// page, so the page is shown before.
func (p *lettersPage) count(ctx context.Context, fleet *control.Client) (err error) {
	f := filterOf(p.Query)
	p.Counts, err = control.Ask(ctx, fleet, control.DeadCounts,
		control.CountLetters{Owner: f.Owner, Worker: f.Worker, Kind: f.Kind, Reason: f.Reason, Limit: 12})
	return err
}

// countLetters answers with the counts, as a part of the list.
func countLetters(c *call) (*page, error) {
	p := lettersPage{Query: filterQuery(c.query())}
	if err := p.count(c.ctx, c.fleet()); err != nil {
		return nil, err
	}
	html, err := c.views.render("dead-counts", view{session: c.session, Data: p})
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = c.w.Write(html)
	return nil, nil
}

// letterPage is the data of the page of a letter.
type letterPage struct {
	*events.LetterJSON
	Trace string // ID of its trace; "": it has none
}

// Target is the worker of the letter.
func (p letterPage) Target() string { return p.Owner + "/" + p.Worker }

// Shown reports whether the body is here. A body that is longer than a message is not.
func (p letterPage) Shown() bool { return p.BodyBytes == 0 || p.Body != nil || p.BodyBase64 != nil }

// Content is the body as text: JSON in lines, as it is, or in base64.
func (p letterPage) Content() string {
	text, base := bodyText(p.LetterJSON)
	if base {
		return text
	}
	text, _ = inLines(text)
	return text
}

// Indented reports whether Content has other white space than the body.
func (p letterPage) Indented() bool {
	text, base := bodyText(p.LetterJSON)
	lines, _ := inLines(text)
	return !base && lines != text
}

// Threw is the name of the error in the stack, such as TypeError.
func (p letterPage) Threw() string { name, _ := p.stack(); return name }

// Frames is the stack without the name of the error and its message.
func (p letterPage) Frames() string { _, frames := p.stack(); return frames }

func (p letterPage) stack() (name, frames string) {
	head, rest, found := strings.Cut(p.Stack, p.Message)
	if p.Message == "" || !found || strings.Contains(head, "\n") {
		return "", p.Stack
	}
	frames = strings.ReplaceAll(rest, "\n    at ", "\nat ")
	return strings.TrimSuffix(strings.TrimSpace(head), ":"), strings.Trim(frames, "\n")
}

// shownRun is an attempt with a message that the page has not shown.
type shownRun struct {
	events.FailedRun
	Said string // "": as the letter, or the attempt before, says it
}

// Runs are the attempts. Most of them fail in the same way, which is said once.
func (p letterPage) Runs() []shownRun {
	runs, said := make([]shownRun, len(p.History)), p.Message
	for i, r := range p.History {
		runs[i].FailedRun = r
		if !sameMessage(p.Message, r.Message) && r.Message != said {
			runs[i].Said, said = r.Message, r.Message
		}
	}
	return runs
}

// sameMessage reports whether a message of the history, which may be cut, is that of the letter.
func sameMessage(whole, cut string) bool {
	return cut == whole || len(cut) >= events.MaxHistoryMessage-4 && strings.HasPrefix(whole, strings.TrimSuffix(cut, "…"))
}

func (in inputs) letterID() (control.LetterID, error) {
	text := in.path("id")
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == 0 {
		return control.LetterID{}, &control.Error{Code: 404, Text: "there is no dead letter " + strconv.Quote(text) +
			": its id is a number"}
	}
	return control.LetterID{ID: id}, nil
}

func showLetter(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	id, err := in.letterID()
	if err != nil {
		return nil, err
	}
	l, err := control.Ask(ctx, fleet, control.DeadShow, id)
	if err != nil {
		return nil, err
	}
	p := letterPage{LetterJSON: l}
	if t, ok := events.ParseTraceParent(l.Headers.Get(events.HeaderTraceParent), ""); ok {
		p.Trace = hex.EncodeToString(t.TraceID[:])
	}
	return &page{view: "letter", title: "Dead letter " + strconv.FormatUint(l.ID, 10), place: "dead", data: p}, nil
}
