package offload

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/isolates/offload/compression"
)

// Pool does work in goroutines: at most `workers` at once, and for the owners in turn. Safe for use by any goroutine.
type Pool struct {
	workers int

	mu      sync.Mutex
	free    int
	jobs    perowner.Lines[func()]
	running sync.WaitGroup

	compressors compression.Compressors
}

// NewPool makes a Pool with that number of workers.
func NewPool(workers int) *Pool { return &Pool{workers: workers, free: workers} }

// Submit has f run soon.
func (p *Pool) Submit(owner string, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free > 0 {
		p.free--
		p.running.Go(func() { p.work(f) })
		return
	}
	p.jobs.Push(owner, f)
}

// Wait returns when all submitted work is done.
func (p *Pool) Wait() { p.running.Wait() }

// Idle reports whether no work is under way or waits.
func (p *Pool) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free == p.workers
}

// work calls f, and then waiting work until there is none.
func (p *Pool) work(f func()) {
	for f != nil {
		f()
		f = p.next()
	}
}

func (p *Pool) next() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.jobs.Pop()
	if !ok {
		p.free++
	}
	return f
}
