package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
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
	After string `json:"after,omitempty"` // Next of the page before
	Limit int    `json:"limit,omitempty"`
	Part
}

// Part chooses a part of what matches, and its order.
type Part struct {
	Names []string `json:"names,omitempty"` // only these
	Sort  string   `json:"sort,omitempty"`  // empty or name: by name
	Skip  int      `json:"skip,omitempty"`  // how many to leave out at the beginning
}

// The orders beside that by name.
const (
	byDeployed = "deployed" // workers: those that were deployed last come first
	byWorkers  = "workers"  // owners: those with most workers come first
)

// maxSkip is how many a page may leave out.
const maxSkip = 1_000_000

// check checks the fields. also is the order beside that by name.
func (p Part) check(also string) error {
	switch {
	case p.Sort != "" && p.Sort != "name" && p.Sort != also:
		return wrongField("sort", " is %q: it is name or %s", p.Sort, also)
	case p.Skip < 0 || p.Skip > maxSkip:
		return wrongField("skip", " is %d: it is 0 to %d", p.Skip, maxSkip)
	case len(p.Names) > maxListed:
		return wrongField("names", " has %d names: it has at most %d", len(p.Names), maxListed)
	}
	return nil
}

// leaves reports whether the part has nothing of this name.
func (p Part) leaves(name string) bool { return len(p.Names) > 0 && !slices.Contains(p.Names, name) }

// falling is a text that sorts before those of smaller numbers, and by name among the same.
func falling(n int64, name string) string {
	return fmt.Sprintf("%019d %s", math.MaxInt64-max(0, n), name)
}

// key is the text by which a worker is sorted.
func (p Part) key(in *workers.Installation) string {
	if p.Sort != byDeployed {
		return in.Target()
	}
	var at int64
	if w := in.Active(); w != nil {
		at = w.DeployedAt.UnixMicro()
	}
	return falling(at, in.Target())
}

// FoundWorkers is a page of the workers that a process runs.
type FoundWorkers struct {
	Workers []WorkerSummary `json:"workers"`
	Total   int             `json:"total"`          // all that match, also those of other pages
	Next    string          `json:"next,omitempty"` // after what the next page begins; empty at the end
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
	if err := r.check(byDeployed); err != nil {
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
	match := strings.ToLower(r.Match)
	page := firsts[*workers.Installation]{after: r.After, skip: r.Skip, most: r.Skip + limit}
	for _, in := range all {
		if r.Owner != "" && in.Owner != r.Owner || r.leaves(in.Target()) {
			continue
		}
		if strings.Contains(strings.ToLower(in.Target()), match) {
			page.add(r.key(in), in)
		}
	}
	f.Total = page.total
	f.Workers, f.Next, err = pageOf(&page, summarize, room)
	return f, err
}

// FindOwners chooses owners. Empty fields choose all.
type FindOwners struct {
	Match string `json:"match,omitempty"` // a text that the name contains, in either case
	After string `json:"after,omitempty"` // Next of the page before
	Limit int    `json:"limit,omitempty"`
	Part
}

// FoundOwners is a page of the owners that have a worker or a policy.
type FoundOwners struct {
	Owners []OwnerSummary `json:"owners"`
	Total  int            `json:"total"`          // all that match, also those of other pages
	Next   string         `json:"next,omitempty"` // after what the next page begins; empty at the end
}

// OwnerSummary is what a list shows of an owner.
type OwnerSummary struct {
	Owner   string          `json:"owner"`
	Workers int             `json:"workers"`          // that the process runs
	Policy  *workers.Policy `json:"policy,omitempty"` // nil: it has none
}

// findOwners lists owners that this process knows.
func (s *Server) findOwners(_ context.Context, r FindOwners) (FoundOwners, error) {
	if err := r.check(byWorkers); err != nil {
		return FoundOwners{}, err
	}
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
	match := strings.ToLower(r.Match)
	page := firsts[OwnerSummary]{after: r.After, skip: r.Skip, most: r.Skip + limit}
	for owner, n := range counts {
		if r.leaves(owner) || !strings.Contains(strings.ToLower(owner), match) {
			continue
		}
		key := owner
		if r.Sort == byWorkers {
			key = falling(int64(n), owner)
		}
		page.add(key, OwnerSummary{owner, n, policies[owner]})
	}
	f.Total = page.total
	f.Owners, f.Next, err = pageOf(&page, func(o OwnerSummary) OwnerSummary { return o }, room)
	return f, err
}

// firsts keeps the first of what is added, by name, behind the name after: most of them, and one more if there is one.
// The first of these are skipped. To sort everything would take most of the time of a page.
type firsts[T any] struct {
	after string
	skip  int
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
		if i < f.skip {
			continue
		}
		shown := show(one.value)
		text, err := json.Marshal(shown)
		if err != nil {
			return page, "", err
		}
		if room -= len(text) + 1; i == f.most || room < 0 && i > f.skip {
			return page, f.list[i-1].name, nil
		}
		page = append(page, shown)
	}
	return page, "", nil
}
