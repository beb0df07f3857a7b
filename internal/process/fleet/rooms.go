package fleet

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/env/services"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/process/cells"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/calls"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/internal/process/workerlease"
	"github.com/pinwheel-run/pinwheel/isolates"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/limits"
)

// rooms are what runs events in a process.
type rooms struct {
	dispatch *dispatch.Dispatcher
	consumer *consumer.Consumer
	pool     *cells.Pools
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
	cfg := p.isolatesConfig(threads, called)
	own, err := isolates.New(cfg, p.rooms.dispatch, p.rooms.host)
	if err != nil {
		return err
	}
	p.rooms.pool, err = cells.New(own, p.cellsConfig(cfg.OrDefault()), p.rooms.dispatch, p.rooms.host, p.registry)
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
		catalog.Follower{
			Installing: r.consumer.Install, Removed: r.consumer.Remove,
			PolicySet: func(owner string, _ workers.Policy) { r.consumer.PolicySet(owner) },
		},
		catalog.Follower{Installed: routes.Install, Removing: routes.Remove, PolicySet: routes.SetPolicy},
	)
}

// SetPolicy applies a policy to an owner from now on.
func (p *Process) SetPolicy(owner string, policy workers.Policy) {
	p.log.Info().Str("owner", owner).Interface("policy", policy).Msg("owner's policy")
	p.deployed.catalog.SetPolicy(owner, policy)
	if workers.CellOf(owner, policy, "") != "" {
		p.probe.want()
	}
}

// starterOf starts processes of this program as the configuration says.
func starterOf(cfg config.Config, executable string) spawn.Starter {
	return spawn.Starter{Executable: executable, ConfineCells: cfg.CellConfine != config.ConfineOff,
		HeapBytes: int64(cfg.HeapMax)}
}

// openSpawner returns what starts processes for this one: its supervisor, or this program itself.
func openSpawner(cfg config.Config, c *Child, log zerolog.Logger) *spawn.Spawner {
	executable, err := os.Executable()
	if err != nil {
		log.Warn().Err(err).Msg("this program cannot be started again: there are no cells")
	}
	s := spawn.Local(starterOf(cfg, executable))
	if c != nil && c.spawner != nil {
		s = c.spawner
	}
	s.Require = cfg.CellConfine == config.ConfineRequire
	return s
}

// Cells have few owners, and start when the first event of one comes: they prepare nothing in advance.
const (
	cellSpares    = 0
	cellCodeBytes = 16 << 20
)

// cellLimits are those of the process's own pool, but for these.
func cellLimits(like limits.Pool) limits.Pool {
	like.SpareIsolates, like.CodeCacheBytes = cellSpares, min(like.CodeCacheBytes, cellCodeBytes)
	return like
}

// cellsConfig has the pools of cells be like the process's own pool.
func (p *Process) cellsConfig(like isolates.Config) cells.Config {
	return cells.Config{
		Start: func(ctx context.Context) (*cells.Process, error) {
			started, err := p.spawner.Cell(ctx)
			if err != nil {
				return nil, err
			}
			return cells.Spawned(started), nil
		},
		ClassOf:     p.classOf,
		Catalog:     &p.deployed.catalog,
		Secrets:     like.Secrets,
		Pool:        wire.Pool{Pool: cellLimits(like.Pool)},
		Authorities: func() []byte { return authorities(p.log) },
		Calls: calls.Config{
			Host: p.rooms.host, Files: like.Files, Services: like.Services,
			Egress: refusing(egress.New(like.AllowAddresses, like.AllowHosts), like.RefuseAddress),
		},
		Caused: p.cellCaused,
		Most:   p.cfg.MaxCells, HeapMax: int64(like.HeapMB) << 20,
		Confine: p.cfg.CellConfine, NoCgroups: p.probe.noCgroups, Queued: p.rooms.queuedOwners,
		Log: p.log,
	}
}

func refusing(c *egress.Client, refuse func(netip.AddrPort) bool) *egress.Client {
	c.Refuse = refuse
	return c
}

// authorities returns the certificates that the system trusts now, for a cell that starts.
func authorities(log zerolog.Logger) []byte {
	text, err := egress.AuthoritiesPEM()
	if err != nil {
		log.Debug().Err(err).Msg("handlers in a cell can trust no server of HTTPS")
		return []byte{}
	}
	return text
}

// classOf returns the cell of an owner; "" = this process.
func (p *Process) classOf(owner string) string {
	return workers.CellOf(owner, *p.deployed.catalog.Policy(owner), workers.Cell(p.cfg.Cell))
}

// mostSent is how much a record tells of what a cell has sent, in bytes.
const mostSent = 500

// cellCaused records that a cell has caused its own end: its code may have broken out of V8.
func (p *Process) cellCaused(e cells.End) {
	owner := ""
	if len(e.Owners) == 1 {
		owner = e.Owners[0]
	}
	says := map[string]any{"cell": e.Class, "owners": e.Owners, "how": e.How}
	if e.How == "lie" {
		says["sent"] = strings.ToValidUTF8(e.Why[:min(len(e.Why), mostSent)], "")
	}
	text, err := json.Marshal(says)
	if err == nil {
		err = p.audit.Write(context.Background(), audit.Record{
			Source: audit.Process, Owner: owner,
			Action: "cells.end", Request: text, Node: nodeName(),
		})
	}
	if err != nil {
		p.log.Error().Err(err).Str("class", e.Class).Msg("it is not recorded that a cell was ended")
	}
}
