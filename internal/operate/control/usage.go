package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/usage"
)

// UsageGet is the endpoint about usage.
var UsageGet = Endpoint[AskUsage, UsageRows]{
	Name:    "usage.get",
	Doc:     "Returns what workers have used.",
	Owner:   func(q *AskUsage) *string { return &q.Owner },
	Worker:  func(q *AskUsage) *string { return &q.Worker },
	Guarded: true,
	Retry:   IfUnanswered,
	handle:  (*Server).usage,
}

// UsageBy are the things by which usage is summed up.
var UsageBy = []string{"owner", "worker", "day", "hour"}

// maxUsage is how long a time a request for usage may have.
const maxUsage = 400 * 24 * time.Hour

// AskUsage chooses usage. Times are RFC 3339, rounded down to hours.
type AskUsage struct {
	Owner  string   `json:"owner,omitempty"`
	Worker string   `json:"worker,omitempty"` // WORKER or OWNER/WORKER
	From   string   `json:"from"`             // included
	To     string   `json:"to"`               // not included
	By     []string `json:"by,omitempty"`     // of UsageBy: a row for each. None: one row
	After  int      `json:"after,omitempty"`  // so many rows are left out
	Limit  int      `json:"limit,omitempty"`  // 1 to 1000; 0: 100
}

// UsageRows is a page of usage, in the order of time, owner and worker.
type UsageRows struct {
	Rows []usage.Row `json:"rows"`
	Next int         `json:"next,omitempty"` // After of the next page; 0: there is none
}

// Parse returns what is asked for. Its error is an *Error with the wrong field.
func (r AskUsage) Parse() (q usage.Query, err error) {
	q.Owner, q.Worker = r.Owner, r.Worker
	if err := SplitWorker(&q.Owner, &q.Worker); err != nil {
		return q, err
	}
	if err := cmp.Or(CheckName("owner", q.Owner), CheckName("worker", q.Worker)); err != nil {
		return q, err
	}
	for _, one := range []struct {
		field, text string
		into        *time.Time
	}{{"from", r.From, &q.From}, {"to", r.To, &q.To}} {
		if *one.into, err = time.Parse(time.RFC3339, one.text); err != nil {
			return q, wrongField(one.field, " %.40q: it is a time in RFC 3339 like 2026-01-02T15:00:00Z", one.text)
		}
	}
	if !q.From.Before(q.To) || q.To.Sub(q.From) > maxUsage {
		return q, wrongField("to", " is %.40s: it is after from, by at most 400 days", r.To)
	}
	for _, by := range r.By {
		if !slices.Contains(UsageBy, by) {
			return q, wrongField("by", " has %.40q: it is owner, worker, day or hour", by)
		}
	}
	has := func(by string) bool { return slices.Contains(r.By, by) }
	q.ByOwner, q.ByWorker, q.ByDay, q.ByHour = has("owner"), has("worker"), has("day"), has("hour")
	if r.After < 0 {
		return q, wrongField("after", " is %d: it is 0 or more", r.After)
	}
	return q, nil
}

// usage returns what workers have used.
func (o *Operations) usage(ctx context.Context, r AskUsage) (UsageRows, error) {
	q, err := r.Parse()
	if err != nil {
		return UsageRows{}, err
	}
	limit, err := listed(r.Limit)
	if err != nil {
		return UsageRows{}, err
	}
	rows, err := usage.NewStore(o.js).Read(ctx, q)
	if err != nil {
		return UsageRows{}, err
	}
	page := UsageRows{Rows: rows[min(r.After, len(rows)):]}
	if len(page.Rows) > limit {
		page.Rows, page.Next = page.Rows[:limit], r.After+limit
	}
	return page, nil
}
