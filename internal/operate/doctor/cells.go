package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// cellsOf is what a process reports of its cells.
type cellsOf struct {
	// Cell is that of owners whose policy has none. "" = an earlier release, which has no cells.
	Cell  string `json:"cell"`
	Cells []struct {
		Unconfined []string `json:"unconfined"`
	} `json:"cells"`
	CellAccount struct {
		Confine     string    `json:"confine"`
		Cgroups     bool      `json:"cgroups"`   // each has one. Earlier releases have none
		NoCgroups   string    `json:"noCgroups"` // why they have none
		Most        int       `json:"most"`
		Probed      bool      `json:"probed"`
		Unconfined  []string  `json:"unconfined"`
		Fault       string    `json:"fault"`
		Waiting     []string  `json:"waiting"`
		MoreWaiting int       `json:"moreWaiting"`
		Ends        []cellEnd `json:"ends"`
	} `json:"cellAccount"`
}

// cellEnd is the bad end of a cell in the last hour.
type cellEnd struct {
	At     time.Time `json:"at"`
	How    string    `json:"how"`
	Class  string    `json:"class"`
	Owners []string  `json:"owners"`
	More   int       `json:"more"`
	Why    string    `json:"why"`
}

// noCell is PINWHEEL_CELL of a process that runs the JavaScript of all owners itself, unless policies say otherwise.
const noCell = "shared"

// cellsFound is what all processes report of their cells.
type cellsFound struct {
	by      map[string]int // processes, by PINWHEEL_CELL
	running int            // cells
	lack    bool           // some lack a part of the confinement
	without bool           // some have no cgroups
}

// take checks the cells of one process.
func (f *cellsFound) take(p *checker, node string, of cellsOf) {
	if f.by == nil {
		f.by = map[string]int{}
	}
	f.by[cmp.Or(of.Cell, noCell)]++
	f.running += len(of.Cells)
	f.confined(p, node, of)
	f.without = f.without || len(of.Cells) > 0 && !of.CellAccount.Cgroups
	if why := of.CellAccount.NoCgroups; why != "" && len(of.Cells) > 0 {
		p.ok("cells", "the cells of process %s have no cgroups: %s", node, why)
	}
	cellEnds(p, node, of.CellAccount.Ends)
	if n := len(of.CellAccount.Waiting) + of.CellAccount.MoreWaiting; n > 0 {
		p.warn("cells", "raise PINWHEEL_MAX_CELLS or PINWHEEL_HEAP_MAX, or start more processes: events wait until another cell has nothing to run",
			"process %s has %d of at most %d cells, and no room or no memory for %d more that are wanted: %s",
			node, len(of.Cells), of.CellAccount.Most, n, named(of.CellAccount.Waiting, of.CellAccount.MoreWaiting))
	}
}

// What to do about cells that lack a part.
const (
	kernelForCells = "run it on a kernel with Landlock (5.13 and later), seccomp and user namespaces, which containers may deny"
	cellsWait      = "until then events of owners that are in a cell wait"
)

// confined says what the cells of a process lack: those that run, or the next one.
func (f *cellsFound) confined(p *checker, node string, of cellsOf) {
	a, missing := of.CellAccount, map[string]bool{}
	for _, part := range a.Unconfined {
		missing[part] = true
	}
	for _, c := range of.Cells {
		for _, part := range c.Unconfined {
			missing[part] = true
		}
	}
	parts := strings.Join(slices.Sorted(maps.Keys(missing)), "; ")
	switch {
	case a.Confine == "off" && (a.Probed || len(of.Cells) > 0):
		p.warn("cells", "set PINWHEEL_CELL_CONFINE=on: a flaw of V8 reaches all that the process may do",
			"the cells of process %s are not confined (PINWHEEL_CELL_CONFINE=off)", node)
	case parts != "" && a.Confine == "require":
		p.bad("cells", kernelForCells+", or set PINWHEEL_CELL_CONFINE=on: "+cellsWait,
			"process %s starts no cell, because its system refuses a part of the confinement: %s", node, parts)
	case parts != "":
		p.warn("cells", kernelForCells+": a flaw of V8 reaches more there",
			"the cells of process %s are not confined in all parts: %s", node, parts)
	case a.Fault != "":
		p.bad("cells", "see its log: "+cellsWait, "the last cell of process %s did not start: %s", node, a.Fault)
	default:
		return
	}
	f.lack = true
}

// cellEnds says which cells of a process ended badly. Each that lied is told, and those that died together.
func cellEnds(p *checker, node string, all []cellEnd) {
	died, memory := map[string]int{}, map[string]int{}
	for _, e := range all {
		switch e.How {
		case "lie":
			p.bad("cells", "look at what these owners have deployed, and at cells.end in the audit: their code may have broken out of V8",
				"a cell of process %s was ended at %s, because it sent what none sends: cell %s, owners %s: %s", node,
				e.At.UTC().Format(time.RFC3339), e.Class, named(e.Owners, e.More), e.Why)
		case "died":
			died[e.Class]++
		case "memory":
			memory[e.Class]++
		}
	}
	if len(died) > 0 {
		p.warn("cells", "see its log, which has what they wrote: their events run again",
			"cells of process %s died in the last hour: %s", node, counts(died))
	}
	if len(memory) > 0 {
		p.warn("cells", "look at what their owners have deployed, and at the machine's memory: limits of heaps have not held this",
			"cells of process %s used more memory than they may in the last hour: %s", node, counts(memory))
	}
}

// named names some of a list that has more.
func named(list []string, more int) string {
	text := strings.Join(list, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return cmp.Or(text, "none")
}

// report says where the JavaScript of owners runs whose policy does not say it, unless it is in processes of the fleet,
// and that all cells are confined.
func (f *cellsFound) report(p *checker) {
	switch {
	case len(f.by) > 1:
		p.warn("cells", "set PINWHEEL_CELL for all alike, once a rolling restart is over",
			"owners without a cell of their policy are in other cells in some processes: %s", counts(f.by))
	case f.by[noCell] == 0:
		p.ok("cells", "owners without a cell of their policy are in the one that PINWHEEL_CELL names: %s", counts(f.by))
	}
	if f.running > 0 && !f.lack {
		with := ", with cgroups of their own"
		if f.without {
			with = ""
		}
		p.ok("cells", "%d run, and are confined in all parts%s", f.running, with)
	}
}
