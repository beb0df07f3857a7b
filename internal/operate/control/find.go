package control

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Workers and owners are found in the memory of the process that answers. So a page of many thousand takes
// milliseconds, and is as new as what this process runs.

// FindWorkers chooses workers. Empty fields choose all.
type FindWorkers struct {
	Owner string `json:"owner,omitempty"`
	Match string `json:"match,omitempty"` // a text that OWNER/WORKER contains, in either case
	After string `json:"after,omitempty"` // OWNER/WORKER
	Limit int    `json:"limit,omitempty"`
}

// FoundWorkers is a page of the workers that a process runs, sorted by name.
type FoundWorkers struct {
	Workers []WorkerSummary `json:"workers"`
	Total   int             `json:"total"`          // all that match, also those of other pages
	Next    string          `json:"next,omitempty"` // OWNER/WORKER after which the next page begins; empty at the end
}

// WorkerSummary is what a list shows of a worker: of its active version and its deployment. If no version is active, it
// has only the names and what is kept.
type WorkerSummary struct {
	Owner      string        `json:"owner"`
	Name       string        `json:"name"`
	Version    string        `json:"version,omitempty"`
	Number     int           `json:"number,omitempty"`
	Versions   int           `json:"versions"` // that are kept
	Handlers   []events.Kind `json:"handlers"`
	Queue      bool          `json:"queue,omitempty"` // it gets its tasks in batches
	Mode       string        `json:"mode,omitempty"`
	DeployedAt time.Time     `json:"deployedAt,omitzero"`
	Tag        string        `json:"tag,omitempty"`
	Message    string        `json:"message,omitempty"`
	// Split has the versions among which the deployment divides the events, if there is more than one.
	Split      []workers.Share `json:"split,omitempty"`
	RollingOut bool            `json:"rollingOut,omitempty"`
	Routes     []string        `json:"routes,omitempty"`
	Schedules  int             `json:"schedules,omitempty"`
}

// summarize describes a worker for a list.
func summarize(in *workers.Installation) WorkerSummary {
	s := WorkerSummary{
		Owner: in.Owner, Name: in.Name, Versions: len(in.Versions), Handlers: []events.Kind{},
		RollingOut: in.Deployment.Rollout.Running(),
	}
	if len(in.Deployment.Split) > 1 {
		s.Split = in.Deployment.Split
	}
	w := in.Active()
	if w == nil {
		return s
	}
	s.Version, s.Number, s.Handlers, s.Queue, s.Mode = w.Version, w.Number, append(s.Handlers,
		w.Handlers...), w.Queue, string(w.Mode.OrDefault())
	s.DeployedAt, s.Tag, s.Message, s.Schedules = w.DeployedAt, w.Tag, w.Message, len(w.Schedules)
	if w.HTTP != nil {
		s.Routes = w.HTTP.Routes
	}
	return s
}

// findWorkers lists workers that this process runs.
func (s *Server) findWorkers(_ context.Context, r FindWorkers) (FoundWorkers, error) {
	if err := CheckName("owner", r.Owner); err != nil {
		return FoundWorkers{}, err
	}
	limit, err := listed(r.Limit)
	if err != nil {
		return FoundWorkers{}, err
	}
	return r.find(s.cfg.Process.Installations(), limit, s.answerRoom())
}

// find chooses from all workers. The answer has at most limit of them, and about room bytes.
func (r FindWorkers) find(all []*workers.Installation, limit, room int) (f FoundWorkers, err error) {
	match, page := strings.ToLower(r.Match), firsts[*workers.Installation]{after: r.After, most: limit}
	for _, in := range all {
		if r.Owner != "" && in.Owner != r.Owner {
			continue
		}
		if name := in.Target(); strings.Contains(strings.ToLower(name), match) {
			page.add(name, in)
		}
	}
	f.Total = page.total
	f.Workers, f.Next, err = pageOf(&page, summarize, room)
	return f, err
}

// FindOwners chooses owners. Empty fields choose all.
type FindOwners struct {
	Match string `json:"match,omitempty"` // a text that the name contains, in either case
	After string `json:"after,omitempty"` // a name
	Limit int    `json:"limit,omitempty"`
}

// FoundOwners is a page of the owners that have a worker or a policy, sorted by name.
type FoundOwners struct {
	Owners []OwnerSummary `json:"owners"`
	Total  int            `json:"total"`          // all that match, also those of other pages
	Next   string         `json:"next,omitempty"` // name after which the next page begins; empty at the end
}

// OwnerSummary is what a list shows of an owner.
type OwnerSummary struct {
	Owner   string          `json:"owner"`
	Workers int             `json:"workers"`          // that the process runs
	Policy  *workers.Policy `json:"policy,omitempty"` // nil: it has none
}

// findOwners lists owners that this process knows.
func (s *Server) findOwners(_ context.Context, r FindOwners) (FoundOwners, error) {
	limit, err := listed(r.Limit)
	if err != nil {
		return FoundOwners{}, err
	}
	return r.find(s.cfg.Process.Installations(), s.cfg.Process.Policies(), limit, s.answerRoom())
}

// find chooses from the owners of all workers and policies. The answer has at most limit of them, and about room bytes.
func (r FindOwners) find(all []*workers.Installation, policies map[string]*workers.Policy, limit,
	room int) (f FoundOwners, err error) {
	counts := map[string]int{}
	for owner := range policies {
		counts[owner] = 0
	}
	for _, in := range all {
		counts[in.Owner]++
	}
	match, page := strings.ToLower(r.Match), firsts[OwnerSummary]{after: r.After, most: limit}
	for owner, n := range counts {
		if strings.Contains(strings.ToLower(owner), match) {
			page.add(owner, OwnerSummary{owner, n, policies[owner]})
		}
	}
	f.Total = page.total
	f.Owners, f.Next, err = pageOf(&page, func(o OwnerSummary) OwnerSummary { return o }, room)
	return f, err
}

// firsts keeps the first of what is added, by name, behind the name after: most of them, and one more if there is one.
// To sort everything would take most of the time of a page.
type firsts[T any] struct {
	after string
	most  int
	list  []named[T]
	last  string // what comes behind it is not needed; "" = nothing is known yet
	total int    // everything that was added, also up to after
}

type named[T any] struct {
	name  string
	value T
}

func (f *firsts[T]) add(name string, value T) {
	f.total++
	if name <= f.after || f.last != "" && name > f.last {
		return
	}
	if f.list = append(f.list, named[T]{name, value}); len(f.list) > 2*f.most+1 {
		f.cut()
		f.last = f.list[f.most].name
	}
}

// cut sorts, and removes what is too much.
func (f *firsts[T]) cut() {
	slices.SortFunc(f.list, func(a, b named[T]) int { return cmp.Compare(a.name, b.name) })
	f.list = f.list[:min(len(f.list), f.most+1)]
}

// pageOf returns the page, at most room bytes of JSON, but at least one, and the name after which the next page begins.
func pageOf[T, S any](f *firsts[T], show func(T) S, room int) (page []S, next string, err error) {
	f.cut()
	page = []S{}
	for i, one := range f.list {
		shown := show(one.value)
		text, err := json.Marshal(shown)
		if err != nil {
			return page, "", err
		}
		if room -= len(text) + 1; i == f.most || room < 0 && i > 0 {
			return page, f.list[i-1].name, nil
		}
		page = append(page, shown)
	}
	return page, "", nil
}
