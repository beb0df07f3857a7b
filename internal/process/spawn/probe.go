package spawn

import (
	"context"
	"strings"
)

// UnconfinedError says which parts of the confinement of a cell the system has refused, where all are required.
type UnconfinedError struct{ Refused []string }

// Error implements error.
func (e *UnconfinedError) Error() string {
	return "this system refuses a part of its confinement: " + strings.Join(e.Refused, "; ")
}

// Probe starts a cell that runs nothing, and returns which parts of its confinement the system has refused, each with
// the reason. An error says why none starts. Any goroutine may call it. It takes as long as a cell takes to begin.
func (s *Spawner) Probe(ctx context.Context) (refused []string, err error) {
	p, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	p.discard()
	return p.Refused(), nil
}
