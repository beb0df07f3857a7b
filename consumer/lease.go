package consumer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// leases renews the leases of all events in flight.
type leases struct {
	nc       *nats.Conn
	cfg      Config
	log      zerolog.Logger
	inflight *inflight
	now      chan struct{} // renew all at once
	renewals prometheus.Counter
	// absences counts how often leases may have ended because the process was paused or had no connection.
	absences atomic.Uint64
}

// run renews leases until life ends. One ticker is for all events. run sends a message for each event whose lease was
// not renewed for a third of AckWait.
func (l *leases) run(life context.Context) {
	third := l.cfg.AckWait / 3
	tick := time.NewTicker(third / 2)
	defer tick.Stop()
	var due []string
	last := time.Now()
	for {
		before := third / 2
		select {
		case <-life.Done():
			return
		case <-tick.C:
		case <-l.now: // connected again: renew all at once, some leases are nearly over
			before = 0
		}
		if !l.nc.IsConnected() {
			continue
		}
		now := time.Now()
		if now.Sub(last) > l.cfg.longAbsence() {
			l.absences.Add(1)
		}
		last = now
		due = l.inflight.due(now.Add(-before), now, due[:0])
		for _, subject := range due {
			if err := l.nc.Publish(subject, progressBody); err != nil {
				l.log.Warn().Err(err).Msg("leases could not be renewed")
				break
			}
		}
		l.renewals.Add(float64(len(due)))
		clear(due)
	}
}
