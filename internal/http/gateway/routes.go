package gateway

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Routes has the addresses that the manifests of active versions name. An address counts while a policy grants its host
// to the owner. Several goroutines may call its methods. Make it with NewRoutes.
type Routes struct {
	any string // the owner that may have every host; "" = none

	mu       sync.RWMutex
	policies map[string]workers.Policy        // by owner
	wanted   map[string]map[string][]wantedBy // by owner and worker
	hosts    map[string]*paths                // by Route.Host
	// by domain and owner: how many of the owner's granted hosts are the domain, or below it
	granted map[string]map[string]int
}

type wantedBy struct {
	route   workers.Route
	granted bool
}

// NewRoutes makes an empty Routes. Policies bound every owner but any.
func NewRoutes(any string) *Routes {
	return &Routes{any: any, policies: map[string]workers.Policy{}, wanted: map[string]map[string][]wantedBy{},
		hosts: map[string]*paths{}, granted: map[string]map[string]int{}}
}

// Install replaces the addresses of a worker by those of its active versions.
func (r *Routes) Install(in workers.Installation) {
	var routes []wantedBy
	for _, s := range in.Deployment.Split {
		w := in.Version(s.Version)
		if w == nil || w.HTTP == nil {
			continue
		}
		for _, text := range w.HTTP.Routes {
			route, err := workers.ParseRoute(text) // a version was checked when it was stored
			route = route.Canonical()
			if err == nil && !slices.ContainsFunc(routes, func(o wantedBy) bool { return o.route == route }) {
				routes = append(routes, wantedBy{route: route})
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(in.Owner, in.Name, routes)
}

// Remove takes the addresses of a worker.
func (r *Routes) Remove(owner, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(owner, name, nil)
}

// SetPolicy grants hosts to an owner, and takes those that the policy does not grant.
func (r *Routes) SetPolicy(owner string, p workers.Policy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(owner, r.policies[owner].Hosts, -1)
	r.count(owner, p.Hosts, 1)
	if r.policies[owner] = p; len(p.Hosts) == 0 {
		delete(r.policies, owner)
	}
	for name, routes := range r.wanted[owner] {
		r.replace(owner, name, slices.Clone(routes))
	}
}

// replace changes the addresses of a worker. The caller holds the lock.
func (r *Routes) replace(owner, name string, routes []wantedBy) {
	of := r.wanted[owner]
	for _, w := range of[name] {
		if w.granted {
			r.take(w.route, holder{owner, name})
		}
	}
	for i := range routes {
		w := &routes[i]
		if w.granted = r.any != "" && owner == r.any || r.policies[owner].GrantsHost(w.route.Host); w.granted {
			r.give(w.route, holder{owner, name})
		}
	}
	switch {
	case len(routes) > 0 && of == nil:
		r.wanted[owner] = map[string][]wantedBy{name: routes}
	case len(routes) > 0:
		of[name] = routes
	default:
		if delete(of, name); len(of) == 0 {
			delete(r.wanted, owner)
		}
	}
}

func (r *Routes) give(route workers.Route, h holder) {
	p := r.hosts[route.Host]
	if p == nil {
		p = &paths{exact: map[string][]holder{}, below: map[string][]holder{}, lengths: map[int]int{}}
		r.hosts[route.Host] = p
	}
	p.give(route, h)
}

func (r *Routes) take(route workers.Route, h holder) {
	p := r.hosts[route.Host]
	if p.take(route, h); len(p.exact)+len(p.below) == 0 {
		delete(r.hosts, route.Host)
	}
}

// find returns the worker of an address. The host that is named counts before one with *, a longer host with * before a
// shorter one, and then the longest path.
func (r *Routes) find(host string, at workers.Path) (h holder, ok bool) {
	path := at.Canonical()
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.hosts) == 0 {
		return holder{}, false
	}
	for name := host; ; {
		if p := r.hosts[name]; p != nil {
			if h, ok = p.find(path); ok {
				return h, true
			}
		}
		if name == "*" {
			return holder{}, false
		}
		_, above, more := strings.Cut(strings.TrimPrefix(name, "*."), ".")
		if name = "*." + above; !more {
			name = "*"
		}
	}
}

// holder is a worker that has an address.
type holder struct{ owner, worker string }

// paths are the addresses of one host. A path may have several holders for a moment, when one worker gives it up and
// another one takes it, or when the bucket of routes was lost. The first by name then has it, in all processes.
type paths struct {
	exact, below map[string][]holder // by Route.Path
	lengths      map[int]int         // how many keys of below have this length
	descending   []int               // the lengths
}

func (p *paths) of(r workers.Route) map[string][]holder {
	if r.Below {
		return p.below
	}
	return p.exact
}

func (p *paths) give(r workers.Route, h holder) {
	of := p.of(r)
	if r.Below && len(of[r.Path]) == 0 {
		p.count(len(r.Path), 1)
	}
	of[r.Path] = append(of[r.Path], h)
	slices.SortFunc(of[r.Path], func(a, b holder) int {
		return cmp.Or(strings.Compare(a.owner, b.owner), strings.Compare(a.worker, b.worker))
	})
}

func (p *paths) take(r workers.Route, h holder) {
	of := p.of(r)
	if of[r.Path] = slices.DeleteFunc(of[r.Path], func(o holder) bool { return o == h }); len(of[r.Path]) > 0 {
		return
	}
	delete(of, r.Path)
	if r.Below {
		p.count(len(r.Path), -1)
	}
}

func (p *paths) count(length, n int) {
	if p.lengths[length] += n; p.lengths[length] == 0 {
		delete(p.lengths, length)
	}
	p.descending = p.descending[:0]
	for l := range p.lengths {
		p.descending = append(p.descending, l)
	}
	slices.SortFunc(p.descending, func(a, b int) int { return b - a })
}

func (p *paths) find(path string) (holder, bool) {
	if h := p.exact[path]; len(h) > 0 {
		return h[0], true
	}
	for _, l := range p.descending {
		if l <= len(path) {
			if h := p.below[path[:l]]; len(h) > 0 {
				return h[0], true
			}
		}
	}
	return holder{}, false
}
