package fleet

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/cells"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// ProcessStats is what GET /admin/pool and $SRV.STATS report about one process.
type ProcessStats struct {
	isolates.Stats
	Dispatch dispatchStats  `json:"dispatch"`
	Consumer consumer.Stats `json:"consumer"`
	// workers that run although their records are missing and no one has removed them
	Vanished int         `json:"vanished"`
	Secrets  SecretStats `json:"secrets"`
	Deploys  deploy.Seen `json:"deploys"`
	// Settings are those that the process was started with, by variable. It works with those that the fleet has.
	Settings map[string]string `json:"settings,omitempty"`
	// Compilers are those of V8 in this process.
	Compilers workers.Compilers `json:"compilers"`
	// Cell is that of owners whose policy has none.
	Cell workers.Cell `json:"cell"`
	// Cells are those that the process has now.
	Cells []cells.Stats `json:"cells,omitempty"`
	// Paused is how many owners and workers are paused, as the process knows.
	Paused int `json:"paused,omitempty"`
	// PausedFirst are some of them.
	PausedFirst []control.Paused `json:"pausedFirst,omitempty"`
	// Sources are those of active versions, as the process knows. nil: there are none.
	Sources *sources.Summary `json:"sources,omitempty"`
	// CellAccount says what became of others, and what keeps some from running.
	CellAccount cells.Account `json:"cellAccount"`
	// Unconfined are the parts of the confinement of a supervisor's child that the system refuses, each with the reason.
	Unconfined []string  `json:"unconfined,omitempty"`
	Now        time.Time `json:"now,omitzero"` // the process's clock
}

type dispatchStats struct {
	Queued   int  `json:"queued"`  // events that wait for a thread
	Running  int  `json:"running"` // attempts that threads have taken
	Owners   int  `json:"owners"`  // owners that have a worker
	Draining bool `json:"draining"`
}

// add adds the figures of another process to s.
func (s *ProcessStats) add(o ProcessStats) {
	s.Stats.Add(o.Stats)
	s.Dispatch.Queued += o.Dispatch.Queued
	s.Dispatch.Running += o.Dispatch.Running
	s.Dispatch.Owners = max(s.Dispatch.Owners, o.Dispatch.Owners) // every process has all workers
	s.Dispatch.Draining = s.Dispatch.Draining || o.Dispatch.Draining
	s.Vanished = max(s.Vanished, o.Vanished)
	if s.Paused < o.Paused {
		s.Paused, s.PausedFirst = o.Paused, o.PausedFirst
	}
	if s.Sources == nil || o.Sources != nil && o.Sources.Failing > s.Sources.Failing {
		s.Sources = o.Sources // each process reads all
	}
	s.Secrets.add(o.Secrets)
	s.Compilers = cmp.Or(s.Compilers, o.Compilers) // children of one supervisor have the same
	s.Cell = cmp.Or(s.Cell, o.Cell)
	s.Cells = append(s.Cells, o.Cells...)
	s.CellAccount.Add(o.CellAccount)
	if len(s.Unconfined) == 0 {
		s.Unconfined = o.Unconfined
	}
	c := &s.Consumer
	c.Window += o.Consumer.Window
	c.Held += o.Consumer.Held
	c.Waiting += o.Consumer.Waiting
	c.Settling += o.Consumer.Settling
	c.Credits += o.Consumer.Credits
	c.Stalls += o.Consumer.Stalls
	c.SetAside += o.Consumer.SetAside
	c.Ready = c.Ready || o.Consumer.Ready
	c.Storage = cmp.Or(c.Storage, o.Consumer.Storage)
}

// maxPausedNamed is how many paused owners and workers ProcessStats names.
const maxPausedNamed = 3

// Stats returns the figures of the process.
func (p *Process) Stats() ProcessStats {
	d := p.rooms.dispatch.Figures().Stats()
	first, paused := p.deployed.paused(maxPausedNamed)
	return ProcessStats{
		Paused: paused, PausedFirst: first,
		Sources:  p.rooms.consumer.Sources().Summary(time.Now()),
		Stats:    p.rooms.pool.Stats(),
		Dispatch: dispatchStats{Queued: d.Queued, Running: d.Running, Owners: d.Owners, Draining: d.Draining},
		Consumer: p.rooms.consumer.Stats(),
		Vanished: p.deployed.watcher.Vanished(),
		Secrets:  p.secrets.gate.stats(),
		Deploys:  p.deployed.watcher.Seen(),
		Settings: p.settings, Compilers: workers.Compilers(p.cfg.Compilers), Cell: workers.Cell(p.cfg.Cell),
		Cells:       p.rooms.pool.Cells(),
		CellAccount: p.rooms.pool.Account(),
		Unconfined:  p.unconfined(),
		Now:         time.Now(),
	}
}

// unconfined are the parts of the confinement that are missing, where there should be one.
func (p *Process) unconfined() []string {
	if p.child == nil {
		return nil
	}
	return p.child.refused
}

// CheckHealth returns nil unless the process should be replaced.
func (p *Process) CheckHealth(context.Context) error { return p.condition.sick() }

// CheckReady returns nil when the process takes events.
func (p *Process) CheckReady(context.Context) error {
	if err := p.link.check(); err != nil {
		return err
	}
	if err := p.census.check(); err != nil {
		return err
	}
	if err := p.condition.sick(); err != nil && !p.condition.supervised { // otherwise it goes on until it is replaced
		return err
	}
	if err := p.rooms.consumer.Ready(); err != nil {
		return err
	}
	return p.rooms.consumer.Storage()
}

// Gatherer returns the metrics of the process.
func (p *Process) Gatherer() prometheus.Gatherer { return p.registry }

// PoolStats returns Stats, for the admin port.
func (p *Process) PoolStats(context.Context) any { return p.Stats() }

const (
	// healthEvery is how often a process checks its own health.
	healthEvery = time.Second
	// replacedWithin is how long a process under a supervisor goes on after it becomes unhealthy. Meanwhile its
	// replacement starts.
	replacedWithin = 2 * time.Minute
)

// condition knows whether a process should be replaced.
type condition struct {
	sick       func() error // why it should, or nil
	supervised bool         // a supervisor starts the replacement before it ends this process
	log        zerolog.Logger
}

// watch calls end when the process should be replaced.
func (c condition) watch(ctx context.Context, end func()) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	var since time.Time // when the process became unhealthy
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			err := c.sick()
			switch {
			case err == nil:
				since = time.Time{}
				continue
			case since.IsZero() && c.supervised:
				c.log.Error().Err(err).Msg("this process should be replaced: it goes on until another is ready")
			}
			if since.IsZero() {
				since = now
			}
			if !c.supervised || now.Sub(since) > replacedWithin {
				c.log.Error().Err(err).Msg("this process should be replaced: it drains and ends")
				end()
				return
			}
		}
	}
}
