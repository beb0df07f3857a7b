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

// Held describes an event that this process holds.
type Held struct {
	Stream string
	Seq    uint64 // in Stream
	ID     string
	Target string    // OWNER/WORKER
	State  string    // queued, running, waiting (for its next run), or what is being done about it
	Began  time.Time // of the attempt in progress; zero = none is
}

// Holding returns events of an owner that this process holds, at most most, and how many it holds. worker may be "". It
// looks at all events in flight. It may be called from any goroutine.
func (c *Consumer) Holding(owner, worker string, most int) (list []Held, all int) {
	return c.inflight.holding(owner, worker, most)
}

// holding lists events of an owner, at most most, and says how many there are.
func (t *inflight) holding(owner, worker string, most int) (list []Held, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.list {
		e := &h.event
		if e.Owner != owner || worker != "" && e.Worker != worker {
			continue
		}
		if all++; all > most {
			continue
		}
		one := Held{
			Stream: h.from.stream, Seq: e.Origin.Seq, ID: e.ID, Target: e.Target(), State: state(h.state.Load()).String(),
		}
		if began := e.Began(); began > 0 {
			one.Began = time.Unix(0, began)
		} else if h.is(running) {
			one.State = "queued"
		}
		list = append(list, one)
	}
	return list, all
}
