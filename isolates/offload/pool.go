package offload

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/isolates/offload/compression"
)

// Pool does work in goroutines: at most `workers` at once, and for the owners in turn. Safe for use by any goroutine.
type Pool struct {
	workers int

	mu      sync.Mutex
	free    int
	jobs    map[string][]func() // by owner; none is empty
	turns   []string            // the owners of jobs, the next one first
	running sync.WaitGroup

	compressors compression.Compressors
}

// NewPool makes a Pool with that number of workers.
func NewPool(workers int) *Pool {
	return &Pool{workers: workers, free: workers, jobs: map[string][]func(){}}
}

// Submit has f run soon.
func (p *Pool) Submit(owner string, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free > 0 {
		p.free--
		p.running.Go(func() { p.work(f) })
		return
	}
	if len(p.jobs[owner]) == 0 {
		p.turns = append(p.turns, owner)
	}
	p.jobs[owner] = append(p.jobs[owner], f)
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
	if len(p.turns) == 0 {
		p.free++
		return nil
	}
	owner := p.turns[0]
	p.turns = p.turns[1:]
	list := p.jobs[owner]
	if len(list) == 1 {
		delete(p.jobs, owner)
	} else {
		p.jobs[owner] = list[1:]
		p.turns = append(p.turns, owner)
	}
	return list[0]
}
