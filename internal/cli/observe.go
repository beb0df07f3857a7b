package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// ProcessStats is what GET /admin/pool and $SRV.STATS tell of one process.
type ProcessStats struct {
	isolates.Stats
	Dispatch dispatchStats  `json:"dispatch"`
	Consumer consumer.Stats `json:"consumer"`
	Vanished int            `json:"vanished"`     // workers that run though their records are gone and nobody has removed them
	Now      time.Time      `json:"now,omitzero"` // by the process's clock
}

type dispatchStats struct {
	Queued   int  `json:"queued"`  // events that wait for a thread
	Running  int  `json:"running"` // attempts that threads have taken
	Owners   int  `json:"owners"`  // that have a worker
	Draining bool `json:"draining"`
}

// add puts the figures of another process to s.
func (s *ProcessStats) add(o ProcessStats) {
	s.Stats.Add(o.Stats)
	s.Dispatch.Queued += o.Dispatch.Queued
	s.Dispatch.Running += o.Dispatch.Running
	s.Dispatch.Owners = max(s.Dispatch.Owners, o.Dispatch.Owners) // every process has all workers
	s.Dispatch.Draining = s.Dispatch.Draining || o.Dispatch.Draining
	s.Vanished = max(s.Vanished, o.Vanished)
	c := &s.Consumer
	c.Window += o.Consumer.Window
	c.Held += o.Consumer.Held
	c.Waiting += o.Consumer.Waiting
	c.Settling += o.Consumer.Settling
	c.Credits += o.Consumer.Credits
	c.Stalls += o.Consumer.Stalls
	c.Ready = c.Ready || o.Consumer.Ready
	c.Storage = cmp.Or(c.Storage, o.Consumer.Storage)
}

func (f *fleet) stats() ProcessStats {
	d := f.dispatch.Stats()
	return ProcessStats{
		Stats:    f.pool.Stats(),
		Dispatch: dispatchStats{Queued: d.Queued, Running: d.Running, Owners: d.Owners, Draining: d.Draining},
		Consumer: f.consumer.Stats(),
		Vanished: f.watcher.Vanished(),
		Now:      time.Now(),
	}
}

// checkHealth is nil when the process is worth keeping.
func (f *fleet) checkHealth(context.Context) error { return f.sick() }

// checkReady is nil when the process takes events.
func (f *fleet) checkReady(context.Context) error {
	if !f.nc.IsConnected() {
		return errors.New("NATS is away")
	}
	if err := f.pulse.check(); err != nil {
		return err
	}
	if missing := f.missing.Load(); missing != nil && *missing != nil {
		return *missing
	}
	if err := f.sick(); err != nil && !f.supervised { // a supervisor's goes on until it is replaced
		return err
	}
	if err := f.consumer.Ready(); err != nil {
		return err
	}
	return f.consumer.Storage()
}

func (f *fleet) gatherer() prometheus.Gatherer { return f.registry }

func (f *fleet) poolStats(context.Context) any { return f.stats() }

const (
	// healthEvery is how often a process looks after its own health.
	healthEvery = time.Second
	// replacedWithin is how long a process of a supervisor's goes on when it is not worth keeping, so that another is ready before it drains.
	replacedWithin = 2 * time.Minute
)

// watchHealth calls end when the process is not worth keeping any more: another takes its place, if anybody sees to that. A supervisor does so before
// it tells this process to end.
func (f *fleet) watchHealth(ctx context.Context, end func()) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	var since time.Time // when it was found ill
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			err := f.sick()
			switch {
			case err == nil:
				since = time.Time{}
				continue
			case since.IsZero() && f.supervised:
				f.log.Error().Err(err).Msg("this process should be replaced: it goes on until another is ready")
			}
			if since.IsZero() {
				since = now
			}
			if !f.supervised || now.Sub(since) > replacedWithin {
				f.log.Error().Err(err).Msg("this process should be replaced: it drains and ends")
				end()
				return
			}
		}
	}
}
