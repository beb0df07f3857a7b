package fleet

import (
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/services"
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

// installer installs workers: their versions in the dispatcher, what lives on between events in the pool, and their
// schedules in the consumer. A deployment counts as in effect when all three have it.
type installer struct {
	rooms    *rooms
	deployed *deployed
}

func (i installer) Install(in workers.Installation) {
	i.deployed.catalog.Begin(in)
	i.rooms.dispatch.Install(in)
	i.rooms.consumer.Install(in)
	i.deployed.catalog.Install(in)
	i.deployed.routes.Install(in)
}

func (i installer) Remove(owner, name string) {
	i.deployed.routes.Remove(owner, name)
	i.deployed.catalog.Remove(owner, name)
	i.rooms.dispatch.Remove(owner, name)
	i.rooms.pool.Retire(owner, name)
	i.rooms.consumer.Remove(owner, name)
}

// SetPolicy applies a policy to an owner from now on.
func (p *Process) SetPolicy(owner string, policy workers.Policy) {
	p.log.Info().Str("owner", owner).Interface("policy", policy).Msg("owner's policy")
	p.policies.set(owner, policy)
	p.rooms.dispatch.SetPolicy(owner, policy)
	p.rooms.consumer.SetPolicy(owner, policy)
	p.rooms.pool.SetPolicy(owner, policy)
	p.deployed.routes.SetPolicy(owner, policy)
	p.rooms.host.SetPolicy(owner, policy)
}
