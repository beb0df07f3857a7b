package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

// runsPage is the data of the list of ended attempts.
type runsPage struct {
	runs.Page
	Query  url.Values // the filter
	Before uint64     // ID before which this page begins; 0: it is the first
	Off    bool       // the fleet has no run history
}

// Narrow reports whether there is a filter.
func (p runsPage) Narrow() bool { return len(p.Query) > 0 }

// Outcomes are those that an attempt may have.
func (runsPage) Outcomes() []string { return tail.Outcomes() }

// First is the query of the newest records, and More that of the records below those of the page; "": there are none.
func (p runsPage) First() string { return with(p.Query) }

// More is the query of the next page.
func (p runsPage) More() string {
	if p.Next == 0 {
		return ""
	}
	return with(p.Query, "before", fmt.Sprint(p.Next))
}

// Took is how long an attempt took, in milliseconds.
func (runsPage) Took(r *runs.Record) *float64 { return inMilliseconds(r.Ended.Sub(r.Started)) }

func inMilliseconds(d time.Duration) *float64 { return new(float64(d.Microseconds()) / 1000) }

// runFields are the fields of a filter of runs, as the URL names them.
var runFields = []string{"owner", "worker", "version", "outcome", "event", "text"}

func listRuns(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	q := in.query()
	p := runsPage{Query: url.Values{}}
	for _, name := range runFields {
		if v := q.Get(name); v != "" {
			p.Query.Set(name, v)
		}
	}
	show := func(err error) (*page, error) {
		return &page{view: "runs", title: "Runs", place: "runs", data: p}, err
	}
	if text := q.Get("before"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return show(wrongForm("before", text, "it is the number of a run"))
		}
		p.Before = n
	}
	r := control.ListRuns{Before: p.Before, Filter: runs.Filter{Owner: q.Get("owner"), Worker: q.Get("worker"),
		Version: q.Get("version"), Outcome: q.Get("outcome"), Event: q.Get("event"), Text: q.Get("text")}}
	var err error
	p.Page, err = searchRuns(ctx, fleet, r)
	p.Off = noHistory(err)
	if p.Off {
		err = nil
	}
	return show(err)
}

// searchRuns lists records that r chooses until a page is full, or it takes too long.
func searchRuns(ctx context.Context, fleet *control.Client, r control.ListRuns) (list runs.Page, err error) {
	for end := time.Now().Add(searchTime); ; {
		r.Limit = pageSize - len(list.Records)
		part, err := control.Ask(ctx, fleet, control.RunsList, r)
		if err != nil {
			return list, err
		}
		list.Records = append(list.Records, part.Records...)
		list.Next, list.More, list.Scanned = part.Next, part.More, list.Scanned+part.Scanned
		if r.Before = part.Next; !part.More || len(list.Records) >= pageSize || time.Now().After(end) {
			return list, nil
		}
	}
}

// noHistory reports whether err says that the fleet has no run history.
func noHistory(err error) bool {
	var is *control.Error
	return errors.As(err, &is) && is.Code == http.StatusNotFound
}

// Kinds of steps of a time line.
const (
	stepStored   = "stored"
	stepReplayed = "replayed"
	stepRun      = "run"
	stepLetter   = "letter"
	stepWaits    = "waits"
)

// step is what happened to an event at a time.
type step struct {
	At   time.Time
	Kind string
	Run  *runs.Record // of stepRun
	// Waited is how long the event waited before the attempt began, Took how long that took, and Later how long it
	// continued after its reply, in milliseconds; nil: there is nothing to say.
	Waited, Took, Later *float64
	Letter              letterPage // of stepLetter
	Waiting             control.WaitingEvent
}

// maxEventRuns is how many attempts of an event the page shows, the newest ones.
const maxEventRuns = 200

// timeline puts together what is known of an event, the oldest first.
func (p eventPage) timeline() []step {
	var all []step
	replays, stored := 0, time.Time{}
	for i, r := range p.Runs {
		before := r.Stored
		switch {
		case r.Stored.IsZero():
		case i == 0 && r.Replays == 0:
			all = append(all, step{At: r.Stored, Kind: stepStored})
		case r.Replays > replays && !r.Stored.Equal(stored):
			all = append(all, step{At: r.Stored, Kind: stepReplayed})
		default:
			before = time.Time{} // it waited since its last attempt, as the retry policy says
		}
		replays, stored = r.Replays, r.Stored
		s := step{At: r.Started, Kind: stepRun, Run: r, Took: inMilliseconds(r.Ended.Sub(r.Started))}
		if before.IsZero() && i > 0 {
			before = p.Runs[i-1].Ended
		}
		if !before.IsZero() {
			s.Waited = inMilliseconds(max(0, r.Started.Sub(before)))
		}
		if !r.Replied.IsZero() {
			s.Later = inMilliseconds(r.Ended.Sub(r.Replied))
		}
		all = append(all, s)
	}
	for _, l := range p.Letters {
		all = append(all, step{At: l.At, Kind: stepLetter, Letter: l})
	}
	for _, w := range p.Waiting {
		all = append(all, step{At: w.At, Kind: stepWaits, Waiting: w})
	}
	slices.SortStableFunc(all, func(a, b step) int { return a.At.Compare(b.At) })
	return all
}

// history reads the ended attempts of an event. A fleet without a run history has none.
func (p *eventPage) history(ctx context.Context, fleet *control.Client) error {
	r := control.ListRuns{Filter: runs.Filter{Owner: p.Owner, Worker: p.Worker, Event: p.ID}, Lines: true}
	for end := time.Now().Add(searchTime); len(p.Runs) < maxEventRuns && time.Now().Before(end); {
		r.Limit = maxEventRuns - len(p.Runs)
		part, err := control.Ask(ctx, fleet, control.RunsList, r)
		if noHistory(err) {
			p.Off = true
			return nil
		}
		if err != nil {
			return err
		}
		p.Runs = append(p.Runs, part.Records...)
		if r.Before = part.Next; part.Next == 0 {
			break
		}
	}
	slices.SortStableFunc(p.Runs, func(a, b *runs.Record) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Seq, b.Seq))
	})
	return nil
}
