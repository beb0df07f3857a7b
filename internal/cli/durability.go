package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/internal/doctor"
)

func (c Config) fsync() bool { return c.Durability == "fsync" }

// embeds reports whether serve and dev run NATS themselves.
func (c Config) embeds() bool { return c.NatsURL == "" && c.NatsContext == "" }

// embeddedSync is when the embedded server writes to disk.
func embeddedSync(c Config) doctor.Sync {
	return doctor.Sync{Known: true, Always: c.fsync(), Interval: doctor.DefaultInterval, Servers: 1, From: "the embedded server"}
}

// learnSync finds out when NATS writes to disk. The error says that fsync is asked for, and that the server does not do it. What
// cannot be told is a warning.
func (f *fleet) learnSync(ctx context.Context, c *childProcess) error {
	if f.server != nil || c != nil && c.embedded {
		f.sync = embeddedSync(f.cfg)
		return nil
	}
	if !f.cfg.fsync() && len(f.cfg.NatsMonitor) == 0 {
		return nil // nobody wants to know, and $SYS is not everybody's to ask
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var err error
	f.sync, err = doctor.AskSync(ctx, f.nc, f.cfg.NatsMonitor)
	switch {
	case !f.cfg.fsync():
	case f.sync.Known && !f.sync.Always:
		return fmt.Errorf("PINWHEEL_DURABILITY is fsync, and NATS does not fsync before it acknowledges (it does so every %s): "+
			"set sync_interval: always in the jetstream block of every server, or PINWHEEL_DURABILITY=default", f.sync.Interval)
	case !f.sync.Known:
		f.log.Warn().Err(err).Msg("PINWHEEL_DURABILITY is fsync, and whether NATS does it cannot be told: let PINWHEEL_NATS_MONITOR name the monitoring port of every server")
	}
	return nil
}

// tellDurability logs what stored events survive, no more than is known. It asks for the stream, which is there by now.
func (f *fleet) tellDurability(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	js, err := jetstream.New(f.nc)
	if err != nil {
		return
	}
	s, err := js.Stream(ctx, consumer.StreamEvents)
	if err != nil {
		f.log.Warn().Err(err).Msg("durability is not known")
		return
	}
	f.log.Info().Str("mode", f.sync.Mode()).Int("replicas", s.CachedInfo().Config.Replicas).Msg("durability: " + f.sync.Words(s.CachedInfo().Config.Replicas))
}
