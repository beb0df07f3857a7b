package inventory

import (
	"fmt"
	"os"
	"slices"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/http/certificates"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
	"github.com/pinwheel-run/pinwheel/internal/operate/usage"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/workerlease"
)

// Resources returns the streams, consumers and buckets that a process with this configuration creates on a NATS whose
// messages have at most maxPayload bytes.
func Resources(cfg config.Config, maxPayload int64) []resources.Resource {
	all := slices.Concat(consumer.Assets(Consumer(cfg), maxPayload), deploy.Resources(Deploy(cfg)),
		audit.Resources(Audit(cfg)), workerlease.Resources(Leases(cfg)),
		usage.Resources(Usage(cfg)))
	if c := Runs(cfg); c.Keeps() {
		all = append(all, runs.Resources(c)...)
	}
	if cfg.HTTPAcme != "" {
		all = append(all, certificates.Resources(cfg.Replicas)...)
	}
	return all
}

// Assets is the files' part of cfg.
func Assets(cfg config.Config) assetstore.Config {
	return assetstore.Config{MaxBytes: int64(cfg.AssetsMaxBytes), Replicas: cfg.Replicas, Cache: int64(cfg.HTTPCache)}
}

// Deploy is the part of cfg for what deploys and operators store.
func Deploy(cfg config.Config) deploy.Config {
	most := func(size config.Bytes) int64 {
		if size == 0 {
			return deploy.Unlimited
		}
		return int64(size)
	}
	return deploy.Config{MaxBytes: most(cfg.WorkersMaxBytes), AssetsMaxBytes: most(cfg.AssetsMaxBytes),
		Replicas: cfg.Replicas}
}

// Leases is the leases' part of cfg.
func Leases(cfg config.Config) workerlease.Config {
	return workerlease.Config{Prefix: events.Subjects(cfg.Prefix), Replicas: cfg.Replicas}
}

// Audit is the part of cfg for the stream of changes.
func Audit(cfg config.Config) audit.Config {
	return audit.Config{Prefix: events.Subjects(cfg.Prefix), Replicas: cfg.Replicas, MaxBytes: int64(cfg.MaxBytes)}
}

// Usage is the part of cfg for what workers use.
func Usage(cfg config.Config) usage.Config {
	return usage.Config{Replicas: cfg.Replicas, MaxBytes: int64(cfg.MaxBytes)}
}

// Runs is the part of cfg for the run history.
func Runs(cfg config.Config) runs.Config {
	rule := workers.KeepRuns(cfg.Runs)
	if cfg.Runs == config.RunsOff {
		rule = ""
	}
	return runs.Config{Prefix: events.Subjects(cfg.Prefix), Node: Node(), Replicas: cfg.Replicas, Rule: rule,
		MaxBytes: int64(cfg.RunsBytes), MaxAge: cfg.RunsAge}
}

// Consumer returns the consumer's part of cfg.
func Consumer(cfg config.Config) consumer.Config {
	c := consumer.DefaultConfig()
	c.Prefix, c.Node = events.Subjects(cfg.Prefix), Node()
	c.Window, c.AckWait, c.MaxBytes = cfg.Window, cfg.AckWait, int64(cfg.MaxBytes)
	c.Replicas, c.ReplyPrefixes = cfg.Replicas, cfg.ReplyPrefixes
	c.DeadLetterAge, c.DeadLetterBytes = cfg.DeadLetterAge, int64(cfg.DeadLetterBytes)
	c.OwnerMaxWaiting, c.Overtake = cfg.OwnerMaxWaiting, cfg.Overtake
	c.LaneHeld = max(c.Window/16, min(c.Window*3/8, cfg.OwnerMaxQueued*3/4))
	c.Duplicates, c.ResultAge = cfg.Duplicates, cfg.ResultAge
	c.RunHistory = Runs(cfg).Keeps()
	return c
}

// Node names this process: its host and its number.
func Node() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return fmt.Sprintf("%s/%d", name, os.Getpid())
}
