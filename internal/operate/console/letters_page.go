package console

import (
	"context"
	"encoding/hex"
	"net/url"
	"strconv"
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
	p := lettersPage{Query: filterQuery(q), Reasons: events.Reasons[:]}
	r := control.ListLetters{Filter: filterOf(q), Newest: true}
	r.Limit = pageSize
	var err error
	if text := q.Get("before"); text != "" {
		if r.Before, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, wrongForm("before", text, "it is the number of a letter")
		}
	}
	p.Before = r.Before
	if p.LetterList, err = newest(ctx, fleet, r); err != nil {
		return nil, err
	}
	if q.Get("counts") != "" {
		if err := p.count(ctx, fleet); err != nil {
			return nil, err
		}
	}
	p.Jobs, _, _ = fleet.AllJobs(ctx) // a busy fleet may not answer in its second: the letters are what the page is for
	return &page{view: "dead", title: "Dead letters", place: "dead", data: p}, nil
}

// searchTime is how long a page looks for letters that are rare.
const searchTime = 10 * time.Second

// newest lists the newest letters that r chooses. A process answers with a part when it has looked at many in vain: the
// page goes on from there until it is full, or it takes too long.
func newest(ctx context.Context, fleet *control.Client, r control.ListLetters) (list control.LetterList, err error) {
	for end := time.Now().Add(searchTime); ; r.Before, r.Limit = list.Next, pageSize-len(list.Letters) {
		part, err := control.Ask(ctx, fleet, control.DeadList, r)
		if err != nil {
			return list, err
		}
		list.Letters, list.Unreadable = append(list.Letters, part.Letters...), append(list.Unreadable, part.Unreadable...)
		list.Next, list.More, list.Scanned = part.Next, part.More, list.Scanned+part.Scanned
		if !part.More || len(list.Letters) >= pageSize || time.Now().After(end) {
			return list, nil
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
	html, err := c.views.render("dead-counts", view{c.session, p})
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

// Content is the body as text: as it is, or in base64.
func (p letterPage) Content() string { text, _ := bodyText(p.LetterJSON); return text }

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
