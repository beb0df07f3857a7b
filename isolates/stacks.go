package isolates

import (
	"strings"
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
)

// stacks maps stacks of bundles to the author's files. It keeps the parsed source maps of the workers that failed last.
// Few workers fail often.
type stacks struct {
	mu    sync.Mutex
	maps  map[string]*sourcemap.Map // by hash of the version
	bytes int                       // total size of the texts of these maps
}

// Bounds of what is kept and parsed. A handler can make stacks of any length.
const (
	maxKeptMaps     = 64
	maxKeptMapBytes = 32 << 20
	maxRawStack     = 16 << 10
)

// author maps the frames of a stack to the author's files and removes those of the runtime. It cuts stacks that are too
// long.
func (s *stacks) author(w *workers.Worker, stack string) string {
	if len(stack) > maxRawStack && !guard.LinearWork.Off() {
		stack = strings.ToValidUTF8(stack[:maxRawStack], "")
	}
	stack = withoutRuntime(stack)
	if stack == "" || len(w.SourceMap) == 0 {
		return stack
	}
	return s.mapOf(w).Stack(w.File, stack)
}

// mapOf returns the source map of a worker. A nil map maps nothing. Parsing takes long, so it is done without the lock.
func (s *stacks) mapOf(w *workers.Worker) *sourcemap.Map {
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

// author maps a stack for a run. The CPU time is charged to the run.
func (t *thread) author(r *run, stack string) string {
	if stack == "" {
		return ""
	}
	began := offload.CPU()
	stack = t.pool.stacks.author(r.attempt.Worker, stack)
	t.aside += offload.CPU() - began
	return stack
}

// reported returns the stack for a line of a run's output, or "" if the output has reached its limit.
func (t *thread) reported(r *run, stack string) string {
	if r.logged > r.limits.LogBytes {
		return ""
	}
	return t.author(r, stack)
}
