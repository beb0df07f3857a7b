package fleet

import (
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/env/services"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
	"github.com/pinwheel-run/pinwheel/internal/process/workerlease"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// rooms are what runs events in a process.
type rooms struct {
	dispatch *dispatch.Dispatcher
	consumer *consumer.Consumer
	pool     *isolates.Pool
	host     *host // of workers
	leases   *workerlease.Leases
	lessee   dispatch.Lessee // what leases tells dispatch
	// background is the number of pool threads with a lower priority.
	background int
}

// wire has consumer, dispatcher and pool know each other.
func (r *rooms) wire() {
	r.consumer.SetRunDelays(r.pool.RunDelays)
	r.dispatch.Wire(r.consumer, r.pool)
	r.lessee = r.dispatch.SetLeases(r.leases)
}

// setProcesses tells how many processes the fleet has.
func (r *rooms) setProcesses(n int) {
	r.dispatch.SetProcesses(n)
	r.consumer.SetProcesses(n)
}

// openDispatch makes the dispatcher, and has its figures say how busy the process is.
func openDispatch(p *Process, threads int) (err error) {
	cfg := p.dispatchConfig(threads)
	if p.rooms.dispatch, err = dispatch.New(cfg, p.log, p.registry); err != nil {
		return err
	}
	return p.scale.setLoad(p.rooms.dispatch.Figures(), cfg.OrDefault(), p.registry)
}

// openPool opens what runs handlers, and what they use.
func openPool(p *Process, js jetstream.JetStream, threads int) (err error) {
	if p.rooms.host, err = openHost(p, js); err != nil {
		return err
	}
	called, err := services.New(p.rooms.dispatch, p.registry)
	if err != nil {
		return err
	}
	p.rooms.pool, err = isolates.New(p.isolatesConfig(threads, called), p.rooms.dispatch, p.rooms.host, p.registry)
	return err
}

// follow has the rooms that derive state from the catalog follow it. A version is in the dispatcher before a schedule
// makes events for it, and in both before the catalog, and then the routes, show it to the gateway. Contexts of a
// removed worker end when the dispatcher starts no more events of it.
func (r *rooms) follow(c *catalog.Catalog, routes *gateway.Routes) {
	c.Follow(
		catalog.Follower{
			Installing: r.dispatch.Install, Removed: r.dispatch.Remove,
			PolicySet: func(owner string, _ workers.Policy) { r.dispatch.PolicySet(owner) },
		},
		catalog.Follower{Removed: r.pool.Retire, PolicySet: r.pool.SetPolicy},
		catalog.Follower{Installing: r.consumer.Install, Removed: r.consumer.Remove},
		catalog.Follower{Installed: routes.Install, Removing: routes.Remove, PolicySet: routes.SetPolicy},
	)
}

// SetPolicy applies a policy to an owner from now on.
func (p *Process) SetPolicy(owner string, policy workers.Policy) {
	p.log.Info().Str("owner", owner).Interface("policy", policy).Msg("owner's policy")
	p.deployed.catalog.SetPolicy(owner, policy)
}
