//go:build !linux

package confine

import (
	"errors"
	"syscall"
)

var errOther = errors.New("only Linux confines processes")

func isFirstThread() bool { return false }

func inheritNone() {}

// Enter does nothing.
func (p Plan) Enter() (r Report) {
	for _, part := range Parts {
		r = append(r, Refused{part, errOther})
	}
	return r
}

// Self does nothing.
func Self() error { return errOther }

// Hide does nothing.
func Hide() error { return errOther }

func isRoot() bool { return false }

// attributes keeps signals of a terminal from a process.
func (s *Started) attributes(way, string) { s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (c Cell) enter(way) (r Report, err error) {
	for _, part := range CellParts {
		r = append(r, Refused{part, errOther})
	}
	return r, nil
}

// CellSelf does nothing: Cell.Start has said so.
func CellSelf(bool, uint64) Report { return nil }
