package isolates

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/sourcemap"
)

// stacks turns stacks of bundles into stacks of the author's files. It keeps the parsed source maps of the
// workers that failed last: those that fail often are few.
type stacks struct {
	mu   sync.Mutex
	maps map[string]*sourcemap.Map // by hash of the version
}

const maxKeptMaps = 64

// author maps the frames of a stack to the author's files and drops those of the runtime.
func (s *stacks) author(w *events.Worker, stack string) string {
	stack = withoutRuntime(stack)
	if stack == "" || len(w.SourceMap) == 0 {
		return stack
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.maps[w.Hash]
	if !ok {
		m, _ = sourcemap.Parse(w.SourceMap) // nil maps nothing
		if len(s.maps) >= maxKeptMaps || s.maps == nil {
			s.maps = map[string]*sourcemap.Map{}
		}
		s.maps[w.Hash] = m
	}
	return m.Stack(w.File, stack)
}
