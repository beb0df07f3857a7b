package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

// embeddedSync says when the embedded server writes to disk.
func embeddedSync(c config.Config) doctor.Sync {
	return doctor.Sync{Known: true, Always: c.Fsync(), Interval: doctor.DefaultInterval, Servers: 1,
		From: "the embedded server"}
}

// learnSync finds out when NATS writes to disk. It returns an error when the configuration requires fsync and the
// server does not do it. It logs a warning when the server does not say.
func (l *link) learnSync(ctx context.Context, cfg config.Config, c *Child, log zerolog.Logger) error {
	if l.server != nil || c != nil && c.embedded {
		l.sync = embeddedSync(cfg)
		return nil
	}
	if !cfg.Fsync() && len(cfg.NatsMonitor) == 0 {
		return nil // it is not needed, and not every user may send requests to $SYS
	}
	ctx, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
	defer cancel()
	var err error
	l.sync, err = doctor.AskSync(ctx, l.nc, cfg.NatsMonitor)
	switch {
	case !cfg.Fsync():
	case l.sync.Known && !l.sync.Always:
		return &inventory.FaultError{Err: fmt.Errorf("PINWHEEL_DURABILITY is fsync, and NATS does not fsync before it acknowledges (it does so every %s): "+
			"set sync_interval: always in the jetstream block of every server, or PINWHEEL_DURABILITY=default", l.sync.Interval)}
	case !l.sync.Known:
		log.Warn().Err(err).Msg("PINWHEEL_DURABILITY is fsync, and whether NATS does it cannot be told: let PINWHEEL_NATS_MONITOR name the monitoring port of every server")
	}
	return nil
}

// logDurability logs which failures stored events survive. It claims only what is known. It reads the stream, which
// exists by now.
func (l *link) logDurability(ctx context.Context, log zerolog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	js, err := jetstream.New(l.nc)
	if err != nil {
		return
	}
	s, err := js.Stream(ctx, events.StreamEvents)
	if err != nil {
		log.Warn().Err(err).Msg("durability is not known")
		return
	}
	log.Info().Str("mode", l.sync.Mode()).Int("replicas", s.CachedInfo().Config.Replicas).
		Msg("durability: " + l.sync.Words(s.CachedInfo().Config.Replicas))
}
