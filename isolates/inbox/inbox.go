// Package inbox has what other goroutines hand to a thread.
package inbox

import (
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Inbox has what other goroutines hand to a thread. Any goroutine may call its methods, except Take.
//
// C is a call, and R is a turn that was away from the thread and has ended. Make an Inbox with a Wake of capacity 1.
type Inbox[C, R any] struct {
	Wake  chan struct{} // capacity 1: the thread has something to do
	Asked atomic.Bool   // the Source expects a call of Next

	mu        sync.Mutex
	calls     []C
	forwarded []*lifecycle.Attempt // from other threads, of persistent workers whose context is here
	refuses   bool                 // it takes no more attempts
	returned  []R                  // turns that were away and have ended
	closed    bool                 // it takes no more returned turns
}

// Signal wakes the thread.
func (b *Inbox[C, R]) Signal() {
	select {
	case b.Wake <- struct{}{}:
	default:
	}
}

// Put adds a call.
func (b *Inbox[C, R]) Put(c C) {
	b.mu.Lock()
	b.calls = append(b.calls, c)
	b.mu.Unlock()
	b.Signal()
}

// Forward adds an attempt from another thread. It returns false when the thread takes no more.
func (b *Inbox[C, R]) Forward(a *lifecycle.Attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses {
		return false
	}
	b.forwarded = append(b.forwarded, a)
	b.Signal()
	return true
}

// AddReturned adds a turn that was away. It returns false when the thread has ended.
func (b *Inbox[C, R]) AddReturned(x R) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.returned = append(b.returned, x)
	b.Signal()
	return true
}

// Take empties the inbox. It adds the attempts to waiting. Only the thread calls it.
func (b *Inbox[C, R]) Take(waiting *[]*lifecycle.Attempt) (calls []C, forwarded int, returned []R) {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, forwarded, returned = b.calls, len(b.forwarded), b.returned
	*waiting = append(*waiting, b.forwarded...) // with the lock held: Pool.replace reads both
	b.calls, b.forwarded, b.returned = nil, nil, nil
	return calls, forwarded, returned
}

// Full reports whether it has anything.
func (b *Inbox[C, R]) Full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)+len(b.forwarded)+len(b.returned) > 0
}

// Refuse stops the adoption of attempts, and returns those that the thread has not taken.
func (b *Inbox[C, R]) Refuse() []*lifecycle.Attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = true
	left := b.forwarded
	b.forwarded = nil
	return left
}

// Lost returns the calls of a thread that does no more calls.
func (b *Inbox[C, R]) Lost() []C {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// Close returns the turns that the thread has not taken. Turns that come back later free their isolates themselves.
func (b *Inbox[C, R]) Close() []R {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	late := b.returned
	b.returned = nil
	return late
}

// Calls returns how many calls wait.
func (b *Inbox[C, R]) Calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}
