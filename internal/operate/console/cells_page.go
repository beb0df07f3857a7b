package console

import (
	"context"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// cellsPage is the data of the page Cells.
type cellsPage struct {
	Pools   []control.Pool
	Missing []control.Member
}

func showCells(ctx context.Context, fleet *control.Client, _ inputs) (*page, error) {
	pools, missing, err := fleet.Pools(ctx)
	if err != nil {
		return nil, err
	}
	return &page{view: "cells", title: "Cells", place: "isolates", data: cellsPage{pools, missing}}, nil
}

// Bytes is the memory of all cells of a process.
func (cellsPage) Bytes(p control.Pool) (n int64) {
	for _, c := range p.Cells {
		n += c.Bytes
	}
	return n
}

// Attempts is how many attempts run in all cells of a process.
func (cellsPage) Attempts(p control.Pool) (n int) {
	for _, c := range p.Cells {
		n += c.Attempts
	}
	return n
}

// Lies is how many cells of a process were ended lately because of what they sent.
func (cellsPage) Lies(p control.Pool) (n int) {
	for _, e := range p.CellAccount.Ends {
		if e.How == "lie" {
			n++
		}
	}
	return n
}

// Confined says how far cells are confined that lack these parts: how grave it is, and the words for it.
func (cellsPage) Confined(p control.Pool, missing []string) pair {
	switch {
	case p.CellAccount.Confine == "off":
		return pair{"warn", "not confined"}
	case len(missing) > 0:
		return pair{"warn", "in part"}
	}
	return pair{"ok", "all parts"}
}

// How says how a cell ended: how grave it is, and the words for it.
func (cellsPage) How(e control.CellEnd) pair {
	switch e.How {
	case "lie":
		return pair{"bad", "sent what none sends"}
	case "start":
		return pair{"bad", "did not start"}
	case "memory":
		return pair{"bad", "used too much memory"}
	}
	return pair{"warn", "died"}
}
