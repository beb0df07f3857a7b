package console

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/usage"
)

// usagePage is the data of the page of what workers used in a month.
type usagePage struct {
	control.UsageRows
	Query url.Values
	Month time.Time
	By    string
	Skip  int
	Sum   usage.Counts
}

// Before is the query of the month before.
func (p usagePage) Before() string { return p.to(p.Month.AddDate(0, -1, 0)) }

// After is the month after; "": it has not begun.
func (p usagePage) After() string {
	if next := p.Month.AddDate(0, 1, 0); next.Before(time.Now()) {
		return p.to(next)
	}
	return ""
}

func (p usagePage) to(month time.Time) string {
	return with(p.Query, "month", month.Format(monthFormat), "page", "")
}

// Narrow reports whether there is a filter.
func (p usagePage) Narrow() bool { return p.Query.Get("owner")+p.Query.Get("worker") != "" }

// Name is the month in words.
func (p usagePage) Name() string { return p.Month.Format("January 2006") }

// usageCells has the cells of a row, in seconds and GiB hours.
type usageCells struct {
	usage.Counts
	CPU, Wall, Stored float64
}

// Cells are the cells of a row.
func (usagePage) Cells(c usage.Counts) usageCells {
	return usageCells{c, float64(c.CPUMicros) / 1e6, float64(c.WallMicros) / 1e6, c.StoredByteHours / (1 << 30)}
}

const monthFormat = "2006-01"

// usageBy are what the page sums up by, as its form names it.
var usageBy = map[string][]string{
	"worker": {"owner", "worker"}, "owner": {"owner"}, "day": {"day"},
}

func showUsage(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	q := in.query()
	p := usagePage{Query: q, By: q.Get("by"), Month: time.Now().UTC()}
	show := func(err error) (*page, error) {
		return &page{view: "usage", title: "Usage", place: "usage", data: p}, err
	}
	if p.By == "" {
		p.By = "owner"
	}
	by, known := usageBy[p.By]
	if !known {
		return show(wrongForm("by", p.By, "it is owner, worker or day"))
	}
	var err error
	if text := q.Get("month"); text != "" {
		if p.Month, err = time.Parse(monthFormat, text); err != nil {
			p.Month = time.Now().UTC()
			return show(wrongForm("month", text, "it is a month like 2026-11"))
		}
	}
	p.Month = time.Date(p.Month.Year(), p.Month.Month(), 1, 0, 0, 0, 0, time.UTC)
	r := control.AskUsage{Owner: q.Get("owner"), Worker: q.Get("worker"), Limit: pageSize,
		From: p.Month.Format(time.RFC3339), To: p.Month.AddDate(0, 1, 0).Format(time.RFC3339)}
	sum, err := control.Ask(ctx, fleet, control.UsageGet, r)
	if err != nil {
		return show(err)
	}
	for _, row := range sum.Rows {
		p.Sum = row.Counts
	}
	l, err := in.listing()
	if err != nil {
		return show(err)
	}
	r.By, r.After, p.Skip = by, l.Skip(), l.Skip()
	p.UsageRows, err = control.Ask(ctx, fleet, control.UsageGet, r)
	return show(err)
}

// More is the query of the next page; "": there is none.
func (p usagePage) More() string {
	if p.Next == 0 {
		return ""
	}
	return with(p.Query, "page", strconv.Itoa(p.Next/pageSize+1))
}

// First is the query of the first page.
func (p usagePage) First() string { return with(p.Query, "page", "") }

// What is the thing of a row, in a word.
func (p usagePage) What() string { return strings.ToUpper(p.By[:1]) + p.By[1:] }
