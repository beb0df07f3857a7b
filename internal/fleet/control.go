package fleet

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/control"
	"github.com/pinwheel-run/pinwheel/internal/tail"
)

// controlled is the process as the package control uses it.
type controlled struct {
	process *Process
	drain   func() // makes the process drain
}

func (c controlled) Stats() any { return c.process.Stats() }

func (c controlled) Flow() control.Flow {
	d, past, pool, held := c.process.dispatch.Stats(), c.process.dispatch.Flow(), c.process.pool.Stats(), c.process.consumer.Stats()
	f := control.Flow{
		At: time.Now(), Queued: d.Queued, Running: d.Running, Held: held.Held, Waiting: held.Waiting, Isolates: pool.Cached + pool.Busy, Heap: pool.HeapBytes, Draining: d.Draining,
		Retried: past.Retried, Failed: past.Failed, Parked: past.Parked, Wait: histogram(past.Wait), Duration: histogram(past.Duration),
		Owners: []control.OwnerFlow{},
	}
	for _, o := range c.process.dispatch.BusyOwners() {
		if len(f.Owners) == control.MaxFlowOwners {
			break
		}
		f.Owners = append(f.Owners, control.OwnerFlow{Owner: o.Owner, Queued: o.Queued, Running: o.Running, Parking: o.Parking})
	}
	return f
}

func histogram(h dispatch.Histogram) control.Histogram {
	return control.Histogram{Count: h.Count, Bounds: dispatch.Bounds(), Buckets: h.Buckets}
}

func (c controlled) Installed(owner, name string) events.Installation {
	in, _ := c.process.catalog.Installed(owner, name)
	return in
}

func (c controlled) Installations() []*events.Installation { return c.process.catalog.All() }

func (c controlled) Policies() map[string]*events.Policy { return c.process.granting.all() }

func (c controlled) Outcomes(owner, name string) (rollout int, outcomes events.Outcomes) {
	return c.process.dispatch.Outcomes(owner, name)
}

func (c controlled) Members() (self control.Member, all []control.Member, left []string) {
	m := c.process.members
	return m.self, m.known(), m.gone()
}

func (c controlled) Tail(owner string, r tail.Request) error { return c.process.tails.Renew(owner, r) }

func (c controlled) AdmitLetter(owner string, size int) *events.Failure {
	return c.process.consumer.AdmitLetter(owner, size)
}

func (c controlled) Drain() { c.drain() }

// openControl answers control requests for this process. drain must make the process drain.
func (p *Process) openControl(ctx context.Context, drain func()) (*control.Server, error) {
	return control.Open(ctx, p.nc, control.Config{
		Prefix: p.cfg.Prefix, Node: nodeName(), Build: config.Version(), Token: p.cfg.ControlToken, ByPermissions: p.cfg.Control == config.ControlByPermissions,
		ReplyPrefixes: p.cfg.ReplyPrefixes, AllowPrivateAddresses: p.cfg.AllowPrivateAddresses, DrainTimeout: p.cfg.DrainTimeout,
		Workers: p.store, Policies: p.policies, Secrets: p.secrets, Audit: p.audit, Bindings: p.host.Bindings, Identities: p.values.ids, Process: controlled{p, drain}, Log: p.log,
	})
}

// policies has the policies that this process goes by. The zero value has none. Several goroutines may call its
// methods.
type policies struct {
	mu   sync.Mutex
	list map[string]*events.Policy
}

// set sets the policy of an owner. The zero Policy is none.
func (p *policies) set(owner string, policy events.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if policy.IsZero() {
		delete(p.list, owner)
		return
	}
	if p.list == nil {
		p.list = map[string]*events.Policy{}
	}
	p.list[owner] = &policy
}

// all returns the policies by owner. The caller may change the map, not the policies.
func (p *policies) all() map[string]*events.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.list)
}
