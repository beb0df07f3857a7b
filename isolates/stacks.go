package isolates

import (
	"strings"
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
	"github.com/pinwheel-run/pinwheel/internal/sourcemap"
)

// stacks turns stacks of bundles into stacks of the author's files. It keeps the parsed source maps of the
// workers that failed last: those that fail often are few.
type stacks struct {
	mu    sync.Mutex
	maps  map[string]*sourcemap.Map // by hash of the version
	bytes int                       // of what they were parsed from
}

// Bounds of what is kept, and of what is looked at: a handler writes stacks as long as it likes.
const (
	maxKeptMaps     = 64
	maxKeptMapBytes = 32 << 20
	maxRawStack     = 16 << 10
)

// author maps the frames of a stack to the author's files and drops those of the runtime. What is too long is cut.
func (s *stacks) author(w *events.Worker, stack string) string {
	if len(stack) > maxRawStack && !guard.LinearWork.Off() {
		stack = strings.ToValidUTF8(stack[:maxRawStack], "")
	}
	stack = withoutRuntime(stack)
	if stack == "" || len(w.SourceMap) == 0 {
		return stack
	}
	return s.mapOf(w).Stack(w.File, stack)
}

// mapOf is the source map of a worker; nil maps nothing. Parsing takes long: others do not wait for it.
func (s *stacks) mapOf(w *events.Worker) *sourcemap.Map {
	s.mu.Lock()
	m, ok := s.maps[w.Hash]
	s.mu.Unlock()
	if ok {
		return m
	}
	m, _ = sourcemap.Parse(w.SourceMap)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.maps[w.Hash]; ok {
		return m
	}
	if s.maps == nil || len(s.maps) >= maxKeptMaps || s.bytes+len(w.SourceMap) > maxKeptMapBytes {
		s.maps, s.bytes = map[string]*sourcemap.Map{}, 0
	}
	s.maps[w.Hash] = m
	s.bytes += len(w.SourceMap)
	return m
}

// author does it for a run, to which the CPU time that it takes is charged.
func (t *thread) author(r *run, stack string) string {
	if stack == "" {
		return ""
	}
	began := ownCPU()
	stack = t.pool.stacks.author(r.attempt.Worker, stack)
	t.aside += ownCPU() - began
	return stack
}

// reported is the stack of what a run says, "" when its output is at its limit already.
func (t *thread) reported(r *run, stack string) string {
	if r.logged > r.limits.LogBytes {
		return ""
	}
	return t.author(r, stack)
}
