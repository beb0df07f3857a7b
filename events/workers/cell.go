package workers

import (
	"fmt"

	"github.com/pinwheel-run/pinwheel/events"
)

// Cell says in which process JavaScript runs: in that of the fleet, or in a cell, which has nothing but that. Beside
// the constants it is a name, of a cell that owners share. "" is CellShared, and in a policy what the fleet has.
type Cell string

// The values of Cell that are no names.
const (
	CellShared Cell = "shared" // in the process of the fleet, with all others
	CellOwn    Cell = "own"    // in a cell for the owner alone, or for its group
)

// Check returns an error that says what a cell is.
func (c Cell) Check() error {
	if c == "" {
		return nil
	}
	if err := events.CheckName("cell", string(c)); err != nil {
		return fmt.Errorf("%w; %s is with all others, and %s apart", err, CellShared, CellOwn)
	}
	return nil
}

// OrOf is c, or what the fleet has. The fleet's own default is CellShared.
func (c Cell) OrOf(fleet Cell) Cell {
	switch {
	case c != "":
		return c
	case fleet != "":
		return fleet
	}
	return CellShared
}

// CellOf returns the name of the cell of an owner with that policy. Owners with the same name share one. It is "" for
// the process of the fleet. fleet is the value for owners whose policy has none.
func CellOf(owner string, p Policy, fleet Cell) string {
	switch c := p.Cell.OrOf(fleet); c {
	case CellShared:
		return ""
	case CellOwn:
		// No name has a colon, and no owner the name of a group.
		if p.Group != "" {
			return "own:@" + p.Group
		}
		return "own:" + owner
	default:
		return string(c)
	}
}
