package console

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// pageSize is how many rows a page of a list has.
const pageSize = 100

// maxPages bounds the number of a page in an address.
const maxPages = 10_000

// byTraffic is the order by events a second. It is that of the console: no single process knows it.
const byTraffic = "traffic"

// listing is where in a list a page is: its number, from 1, and how the list is sorted.
type listing struct {
	Query url.Values
	Sort  string
	Page  int
	Total int // rows of all pages
}

// listing reads the page and the order that an address asks for. sorts are the orders beside that by name.
func (in inputs) listing(sorts ...string) (l listing, err error) {
	l = listing{Query: in.query(), Sort: in.arg("sort"), Page: 1}
	if text := in.arg("page"); text != "" {
		if l.Page, err = strconv.Atoi(text); err != nil || l.Page < 1 || l.Page > maxPages {
			l.Page = 1
			return l, wrongForm("page", text, "it is the number of a page, 1 to "+strconv.Itoa(maxPages))
		}
	}
	for _, s := range append(sorts, "") {
		if l.Sort == s {
			return l, nil
		}
	}
	l.Sort = ""
	return l, wrongForm("sort", in.arg("sort"), "it is "+strings.Join(sorts, ", ")+", or empty for by name")
}

// Skip is how many rows come before the page.
func (l listing) Skip() int { return (l.Page - 1) * pageSize }

// First and Last are the numbers of the first and the last row of the page.
func (l listing) First() int { return l.Skip() + 1 }

// Last is the number of the last row of the page.
func (l listing) Last() int { return min(l.Skip()+pageSize, l.Total) }

// Pages is how many pages there are.
func (l listing) Pages() int { return (l.Total + pageSize - 1) / pageSize }

// To is the address of another page of the list.
func (l listing) To(page int) string {
	if page == 1 {
		return with(l.Query, "page", "")
	}
	return with(l.Query, "page", strconv.Itoa(page))
}

// Before and After are the neighbours of the page.
func (l listing) Before() int { return l.Page - 1 }

// After is the number of the next page.
func (l listing) After() int { return l.Page + 1 }

// column is the head of a column by which a list can be sorted.
type column struct {
	Name, Sort string
	Number     bool // its cells are numbers
	Chosen     bool
	To         string
}

// Column is the head of a column. Another order begins with the first page.
func (l listing) Column(name, sort string, number bool) column {
	return column{name, sort, number, l.Sort == sort, with(l.Query, "page", "", "sort", sort)}
}

// Rising reports whether the column sorts the smallest first: only names do.
func (c column) Rising() bool { return c.Sort == "" }

// slice is the part of a list that the page shows.
func (l listing) slice(names []string) []string {
	from := min(l.Skip(), len(names))
	return names[from:min(from+pageSize, len(names))]
}

// traffic is what the busiest workers did between the last two looks at the fleet.
type traffic struct {
	sampled
	of map[string]flow.Worker // by OWNER/WORKER
}

// traffic asks the watcher. rated waits for the second look, before which there are no rates. A fleet that does not say
// what it does can still be listed.
func (c *call) traffic(rated bool) (traffic, error) {
	looks := 0
	if rated {
		looks = 1
	}
	state, err := c.watcher.after(c.ctx, looks)
	t := traffic{sampled: state, of: map[string]flow.Worker{}}
	for _, w := range state.Now.Workers {
		t.of[w.Worker] = w
	}
	return t, err
}

// Of is what a worker did; nil: it is none of the busiest.
func (t traffic) Of(owner, worker string) *flow.Worker {
	if w, ok := t.of[owner+"/"+worker]; ok {
		return &w
	}
	return nil
}

// workers are the names of the busiest workers that a filter chooses, the busiest first.
func (t traffic) workers(owner, match string) (names []string) {
	for _, w := range t.Now.Workers {
		of, _, _ := strings.Cut(w.Worker, "/")
		if (owner == "" || owner == of) && matches(w.Worker, match) {
			names = append(names, w.Worker)
		}
	}
	return names
}

// owners are the names of owners with events, the busiest first.
func (t traffic) owners(match string) (names []string) {
	for _, o := range t.Busy() {
		if matches(o.Owner.Owner, match) {
			names = append(names, o.Owner.Owner)
		}
	}
	return names
}

func matches(name, part string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

// findWorkers reads a page of workers: an answer may have less than a page, when its rows are long.
func findWorkers(ctx context.Context, fleet *control.Client,
	r control.FindWorkers) (all control.FoundWorkers, err error) {
	for r.Limit = pageSize; ; r.Skip, r.Limit = 0, pageSize-len(all.Workers) {
		part, err := control.Ask(ctx, fleet, control.WorkersFind, r)
		if err != nil {
			return all, err
		}
		all.Workers, all.Total = append(all.Workers, part.Workers...), part.Total
		if r.After = part.Next; r.After == "" || len(all.Workers) >= pageSize {
			return all, nil
		}
	}
}

// findOwners reads a page of owners.
func findOwners(ctx context.Context, fleet *control.Client, r control.FindOwners) (all control.FoundOwners, err error) {
	for r.Limit = pageSize; ; r.Skip, r.Limit = 0, pageSize-len(all.Owners) {
		part, err := control.Ask(ctx, fleet, control.OwnersFind, r)
		if err != nil {
			return all, err
		}
		all.Owners, all.Total = append(all.Owners, part.Owners...), part.Total
		if r.After = part.Next; r.After == "" || len(all.Owners) >= pageSize {
			return all, nil
		}
	}
}
