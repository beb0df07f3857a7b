package fleet

import (
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/env/services"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// nodeName names this process to others.
func nodeName() string { return inventory.Node() }

func (p *Process) dispatchConfig(threads int) dispatch.Config {
	return dispatch.Config{
		Threads: threads, Background: p.rooms.background, Slots: p.cfg.Slots, OwnerMaxRunning: p.cfg.OwnerMaxRunning,
		OwnerMaxQueued: p.cfg.OwnerMaxQueued,
		MaxBatch:       min(workers.MaxBatch.MaxSize, p.cfg.Window/4), Observers: &p.onlookers.observers,
		Catalog: &p.deployed.catalog,
		PoolOf:  func(owner string) int { return p.rooms.pool.PoolOf(owner) },
	}
}

func (p *Process) isolatesConfig(threads int, called *services.Services) isolates.Config {
	c := isolates.DefaultConfig(threads)
	c.Background = p.rooms.background
	c.Slots, c.MaxIsolates = p.cfg.Slots, max(threads+p.rooms.background, p.cfg.MaxIsolates)
	c.OldVersionIdle, c.Compilers = p.cfg.OldVersionIdle, workers.Compilers(p.cfg.Compilers)
	c.HeapMB, c.OwnerHeapMB, c.OwnerMaxIsolates =
		int(p.cfg.HeapMax>>20), int(p.cfg.OwnerHeapMax>>20), p.cfg.OwnerMaxIsolates
	if p.log.GetLevel() <= zerolog.DebugLevel {
		c.OnContext = func(x isolates.ContextChange) {
			p.log.Debug().Str("owner", x.Worker.Owner).Str("worker", x.Worker.Name).Str("version", x.Worker.Version).
				Str("mode", string(x.Mode)).
				Int("uses", x.Uses).Str("reason", x.Reason).Msg(x.What)
		}
	}
	c.Secrets, c.Files, c.Services = p.secrets.values.Of, fileBinding{p.deployed.files, p.log}, called
	if p.child != nil {
		var err error
		if c.Note, err = p.child.openNote(); err != nil {
			p.log.Warn().Err(err).Msg("if this process dies, it will not be known which worker it ran")
		}
	}
	c.MaxReply, c.Held = int(p.link.nc.MaxPayload()), collectMore
	c.AllowAddresses, c.AllowHosts = config.SplitAddresses(p.cfg.AllowPrivateAddresses)
	c.RefuseAddress = p.link.isNATS
	return c
}

func (p *Process) bindingsConfig() bindings.Config {
	return bindings.Config{
		Replicas: p.cfg.Replicas, KVBytes: int64(p.cfg.OwnerKVBytes), CacheBytes: int64(p.cfg.OwnerCacheBytes),
		Catalog: &p.deployed.catalog, Prefix: p.cfg.Prefix, ReplyPrefixes: p.cfg.ReplyPrefixes, Log: p.log,
	}
}
