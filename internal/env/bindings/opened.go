package bindings

import (
	"context"
	"sync"
)

// opened opens the stream of each owner once, and again when its policy has another bound. Any goroutine may use it.
type opened[T any] struct {
	create func(ctx context.Context, owner string) (T, error)
	bound  func(owner string) int // of the bytes that the owner may store, by its policy; nil = there is none

	mu     sync.Mutex
	owners map[string]*opening[T]
}

// opening is a stream that is open when done is closed.
type opening[T any] struct {
	done  chan struct{}
	bound int
	value T
	err   error
}

// forget has the stream of an owner opened again at the next call.
func (s *opened[T]) forget(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owners, owner)
}

// of returns the stream of an owner. It creates the stream when it is not there.
func (s *opened[T]) of(ctx context.Context, owner string) (T, error) {
	bound := 0
	if s.bound != nil {
		bound = s.bound(owner)
	}
	s.mu.Lock()
	o := s.owners[owner]
	if o != nil && o.bound == bound {
		s.mu.Unlock()
		select {
		case <-o.done:
			return o.value, o.err
		case <-ctx.Done():
			return o.value, ctx.Err()
		}
	}
	o = &opening[T]{done: make(chan struct{}), bound: bound}
	if s.owners == nil {
		s.owners = map[string]*opening[T]{}
	}
	s.owners[owner] = o
	s.mu.Unlock()
	defer close(o.done)
	if o.value, o.err = s.create(ctx, owner); o.err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owners[owner] == o {
			delete(s.owners, owner)
		}
	}
	return o.value, o.err
}
