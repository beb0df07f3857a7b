package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cgroup"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
)

// probeTime is how long a probe may take, also on a busy machine.
const probeTime = 2 * time.Minute

// cellProbe knows how far the system confines cells, before the first one runs. It is asked once.
type cellProbe struct {
	cfg     config.Config
	log     zerolog.Logger
	spawner *spawn.Spawner
	wanted  chan struct{} // capacity 1: a policy wants a cell
	// noCgroups says why cells have no cgroups; "" = they have.
	noCgroups string

	known   bool
	refused []string // parts that the system refuses, each with the reason
	err     error    // why no cell starts
}

func newCellProbe(cfg config.Config, s *spawn.Spawner, noCgroups string, log zerolog.Logger) *cellProbe {
	return &cellProbe{cfg: cfg, spawner: s, log: log, noCgroups: noCgroups, wanted: make(chan struct{}, 1)}
}

// unsupervised says why cells have no cgroups that no supervisor starts: this process may be one of many in its cgroup.
const unsupervised = "PINWHEEL_PROCESSES is 0: only the cells of a supervisor have some"

// openCgroups has a supervisor make cgroups for cells, where it may. whyNot says why it does not; "" = it does.
func openCgroups(cfg config.Config) (tree *cgroup.Tree, whyNot string) {
	if cfg.CellConfine == config.ConfineOff {
		return nil, "PINWHEEL_CELL_CONFINE is off"
	}
	tree, err := cgroup.Open(spawn.CellLimits(int64(cfg.HeapMax)))
	if err != nil {
		return nil, err.Error()
	}
	return tree, ""
}

// wantsCells reports whether owners without a policy are in cells.
func wantsCells(cfg config.Config) bool { return workers.Cell(cfg.Cell).OrOf("") != workers.CellShared }

// open asks when PINWHEEL_CELL wants cells. The error is of PINWHEEL_CELL_CONFINE=require: no process starts that would
// run nothing. A child of a supervisor knows the answer from it, and refuses nothing.
func (p *cellProbe) open(ctx context.Context, c *Child) error {
	if !wantsCells(p.cfg) {
		return nil
	}
	if c != nil {
		p.known, p.refused = c.cells != nil, c.cells
		return nil
	}
	p.ask(ctx)
	if p.cfg.CellConfine != config.ConfineRequire {
		return nil
	}
	if err := p.missing(); err != nil {
		return &inventory.FaultError{Err: fmt.Errorf("PINWHEEL_CELL_CONFINE is require: %w", err)}
	}
	return nil
}

// openCells opens what starts cells. The error is that of cellProbe.open.
func (p *Process) openCells(c *Child) error {
	p.spawner = openSpawner(p.cfg, c, p.log)
	noCgroups := unsupervised
	if c != nil {
		noCgroups = c.noCgroups
	}
	p.probe = newCellProbe(p.cfg, p.spawner, noCgroups, p.log)
	err := p.probe.open(context.Background(), c)
	if err != nil {
		p.spawner.Close()
	}
	return err
}

// missing says what cells lack, where all is required.
func (p *cellProbe) missing() error {
	if p.err != nil {
		return p.err
	}
	if len(p.refused) > 0 {
		return errors.New("this system refuses a part of the confinement of cells: " + strings.Join(p.refused, "; "))
	}
	return nil
}

// ask starts a cell to find out, and logs what is missing.
func (p *cellProbe) ask(ctx context.Context) {
	p.known = true
	if p.cfg.CellConfine == config.ConfineOff {
		p.log.Warn().Msg("cells are not confined (PINWHEEL_CELL_CONFINE=off)")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p.refused, p.err = p.spawner.Probe(ctx)
	if p.noCgroups != "" {
		p.log.Info().Str("why", p.noCgroups).Msg("cells have no cgroups, which would bound all of their memory")
	}
	switch {
	case p.err != nil:
		p.log.Error().Err(p.err).Msg("no cell starts: events of owners that are in one wait")
	case len(p.refused) == 0:
	case p.cfg.CellConfine == config.ConfineRequire:
		p.log.Error().Strs("refused", p.refused).Msg("no cell starts, because this system refuses a part of the confinement " +
			"(PINWHEEL_CELL_CONFINE=require): events of owners that are in one wait")
	default:
		p.log.Warn().Strs("refused", p.refused).Msg("cells are confined in part: this system refuses the rest")
	}
}

// want has await ask. It never blocks.
func (p *cellProbe) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// await asks when the first policy wants a cell, unless the answer is known, and tells it.
func (p *cellProbe) await(ctx context.Context, tell func(refused []string, err error)) {
	if !p.known {
		select {
		case <-p.wanted:
		case <-ctx.Done():
			return
		}
		p.ask(ctx)
	}
	if ctx.Err() == nil {
		tell(p.refused, p.err)
	}
}

// probeForChildren asks once for all children of a supervisor, when PINWHEEL_CELL wants cells. They hear what it
// returns; nil = it is not known.
func probeForChildren(cfg config.Config, l *launcher, log zerolog.Logger) ([]string, error) {
	s := spawn.Local(l.starter)
	defer s.Close()
	p := newCellProbe(cfg, s, l.noCgroups, log)
	if err := p.open(context.Background(), nil); err != nil || !p.known || p.err != nil {
		return nil, err
	}
	return append([]string{}, p.refused...), nil
}

// noCgroupsVariable says why cells have no cgroups. Without it they have.
const noCgroupsVariable = "_PINWHEEL_NO_CGROUPS"

// cellsRefusedVariable says which parts of the confinement of cells the system has refused, a line each. Without it, it
// is not known.
const cellsRefusedVariable = "_PINWHEEL_CELLS_REFUSED"

// heardCells returns what the supervisor of this process knows of cells; nil = nothing.
func heardCells() []string {
	text, known := os.LookupEnv(cellsRefusedVariable)
	switch {
	case !known:
		return nil
	case text == "":
		return []string{}
	}
	return strings.Split(text, "\n")
}

// queuedOwners are the owners that have events which wait for a thread.
func (r *rooms) queuedOwners() (list []string) {
	for _, o := range r.dispatch.Figures().BusyOwners() {
		if o.Queued > 0 {
			list = append(list, o.Owner)
		}
	}
	return list
}
