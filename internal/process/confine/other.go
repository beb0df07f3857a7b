//go:build !linux

package confine

import "errors"

var errOther = errors.New("only Linux confines processes")

func isFirstThread() bool { return false }

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
