// Package stacks turns the stacks of bundles into those of the author's files.
package stacks

import (
	"slices"
	"strings"
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
	"github.com/pinwheel-run/pinwheel/isolates/js"
)

// Maps maps stacks of bundles to the author's files. It keeps the parsed source maps of the workers that failed last.
// Few workers fail often.
type Maps struct {
	mu    sync.Mutex
	maps  map[string]*sourcemap.Map // by hash of the version
	bytes int                       // total size of the texts of these maps
}

// Bounds of what is kept and parsed. A handler can make stacks of any length.
const (
	maxKeptMaps     = 64
	maxKeptMapBytes = 32 << 20
	MaxRaw          = 16 << 10
)

// Author maps the frames of a stack to the author's files and removes those of the runtime. It cuts stacks that are too
// long.
func (s *Maps) Author(w *workers.Worker, stack string) string {
	if len(stack) > MaxRaw && !guard.LinearWork.Off() {
		stack = strings.ToValidUTF8(stack[:MaxRaw], "")
	}
	stack = withoutRuntime(stack)
	bundle := js.BundlePrefix + w.File
	if !strings.Contains(stack, bundle) {
		return stack
	}
	if len(w.SourceMap) > 0 {
		stack = withoutRuntime(s.mapOf(w).Stack(bundle, stack)) // a bundle has parts of the runtime too
	}
	return strings.ReplaceAll(stack, bundle, w.File) // what the map does not have
}

// mapOf returns the source map of a worker. A nil map maps nothing. Parsing takes long, so it is done without the lock.
func (s *Maps) mapOf(w *workers.Worker) *sourcemap.Map {
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

// withoutRuntime removes the runtime's own frames from a stack.
func withoutRuntime(stack string) string {
	if !strings.Contains(stack, js.Prefix) {
		return stack
	}
	lines := strings.Split(stack, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, js.Prefix) }), "\n")
}
