package fleet

import (
	"fmt"
	"os"
	"slices"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/audit"
	"github.com/pinwheel-run/pinwheel/internal/bindings"
	"github.com/pinwheel-run/pinwheel/internal/certificates"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/resources"
	"github.com/pinwheel-run/pinwheel/internal/services"
	"github.com/pinwheel-run/pinwheel/internal/workerlease"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// Resources returns the streams, consumers and buckets that a process with this configuration creates on a NATS whose
// messages have at most maxPayload bytes.
func Resources(cfg config.Config, maxPayload int64) []resources.Resource {
	all := slices.Concat(consumer.Assets(consumerConfig(cfg), maxPayload), deploy.Resources(deploy.Config{Replicas: cfg.Replicas}),
		audit.Resources(auditConfig(cfg)), workerlease.Resources(leaseConfig(cfg)), assetstore.Resources(assetConfig(cfg)))
	if cfg.HTTPAcme != "" {
		all = append(all, certificates.Resources(cfg.Replicas)...)
	}
	return all
}

func assetConfig(cfg config.Config) assetstore.Config {
	return assetstore.Config{MaxBytes: int64(cfg.AssetsMaxBytes), Replicas: cfg.Replicas, Cache: int64(cfg.HTTPCache)}
}

func leaseConfig(cfg config.Config) workerlease.Config {
	return workerlease.Config{Prefix: events.Subjects(cfg.Prefix), Replicas: cfg.Replicas}
}

func auditConfig(cfg config.Config) audit.Config {
	return audit.Config{Prefix: events.Subjects(cfg.Prefix), Replicas: cfg.Replicas, MaxBytes: int64(cfg.MaxBytes)}
}

// consumerConfig returns the consumer's part of cfg.
func consumerConfig(cfg config.Config) consumer.Config {
	c := consumer.DefaultConfig()
	c.Prefix, c.Node = events.Subjects(cfg.Prefix), nodeName()
	c.Window, c.AckWait, c.MaxBytes = cfg.Window, cfg.AckWait, int64(cfg.MaxBytes)
	c.Replicas, c.ReplyPrefixes = cfg.Replicas, cfg.ReplyPrefixes
	c.Heartbeat, c.DeadLetterAge, c.DeadLetterBytes = cfg.Heartbeat, cfg.DeadLetterAge, int64(cfg.DeadLetterBytes)
	c.OwnerMaxWaiting, c.Overtake = cfg.OwnerMaxWaiting, cfg.Overtake
	c.LaneHeld = max(c.Window/16, min(c.Window*3/8, cfg.OwnerMaxQueued*3/4))
	c.Duplicates, c.ResultAge = cfg.Duplicates, cfg.ResultAge
	return c
}

func nodeName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return fmt.Sprintf("%s/%d", name, os.Getpid())
}

func (p *Process) dispatchConfig(threads int) dispatch.Config {
	return dispatch.Config{
		Threads: threads, Background: p.background, Slots: p.cfg.Slots, OwnerMaxRunning: p.cfg.OwnerMaxRunning, OwnerMaxQueued: p.cfg.OwnerMaxQueued,
		MaxBatch: min(events.MaxBatch.MaxSize, p.cfg.Window/4), Observers: &p.observers,
	}
}

func (p *Process) isolatesConfig(threads int, called *services.Services) isolates.Config {
	c := isolates.DefaultConfig(threads)
	c.Background = p.background
	c.Slots, c.MaxIsolates, c.ContextMaxReuses = p.cfg.Slots, max(threads+p.background, p.cfg.MaxIsolates), p.cfg.ContextMaxReuses
	c.ContextKeepMB, c.SpareIsolates, c.CodeCacheBytes = int(p.cfg.ContextKeep>>20), p.cfg.SpareIsolates, int(p.cfg.CodeCache)
	c.OldVersionIdle = p.cfg.OldVersionIdle
	c.HeapMB, c.OwnerHeapMB, c.OwnerMaxIsolates = int(p.cfg.HeapMax>>20), int(p.cfg.OwnerHeapMax>>20), p.cfg.OwnerMaxIsolates
	c.Secrets, c.Files, c.Services = p.values.Of, fileBinding{p.files, p.log}, called
	if p.child != nil {
		var err error
		if c.Note, err = p.child.openNote(); err != nil {
			p.log.Warn().Err(err).Msg("if this process dies, it will not be known which worker it ran")
		}
	}
	c.MaxReply, c.Held = int(p.nc.MaxPayload()), collectMore
	c.AllowAddresses, c.AllowHosts = config.SplitAddresses(p.cfg.AllowPrivateAddresses)
	return c
}

func bindingsConfig(cfg config.Config, log zerolog.Logger) bindings.Config {
	return bindings.Config{
		Replicas: cfg.Replicas, KVBytes: int64(cfg.OwnerKVBytes), CacheBytes: int64(cfg.OwnerCacheBytes), Prefix: cfg.Prefix, ReplyPrefixes: cfg.ReplyPrefixes, Log: log,
	}
}
