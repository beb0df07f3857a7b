package isolates

import (
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// inbox has what other goroutines hand to a thread. Any goroutine may call its methods, except take.
type inbox struct {
	wake  chan struct{} // capacity 1: the thread has something to do
	asked atomic.Bool   // the Source expects a call of Next

	mu       sync.Mutex
	calls    []queuedCall         // a call without a run is for the thread itself
	adopted  []*lifecycle.Attempt // from other threads, of persistent workers whose context is here
	refuses  bool                 // it takes no more attempts
	returned []returnedTurn       // turns that were away and have ended
	closed   bool                 // it takes no more returned turns
}

// nudge wakes the thread.
func (b *inbox) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// put adds a call.
func (b *inbox) put(c queuedCall) {
	b.mu.Lock()
	b.calls = append(b.calls, c)
	b.mu.Unlock()
	b.nudge()
}

// adopt adds an attempt from another thread. It returns false when this thread takes no more.
func (b *inbox) adopt(a *lifecycle.Attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses {
		return false
	}
	b.adopted = append(b.adopted, a)
	b.nudge()
	return true
}

// addReturned adds a turn that was away. It returns false when the thread has ended.
func (b *inbox) addReturned(x returnedTurn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.returned = append(b.returned, x)
	b.nudge()
	return true
}

// take empties the inbox. It adds the attempts to waiting. Only the thread calls it.
func (b *inbox) take(waiting *[]*lifecycle.Attempt) (calls []queuedCall, adopted int, returned []returnedTurn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, adopted, returned = b.calls, len(b.adopted), b.returned
	*waiting = append(*waiting, b.adopted...) // with the lock held: Pool.replace reads both
	b.calls, b.adopted, b.returned = nil, nil, nil
	return calls, adopted, returned
}

// full reports whether it has anything.
func (b *inbox) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)+len(b.adopted)+len(b.returned) > 0
}

// refuse stops the adoption of attempts, and returns those that the thread has not taken.
func (b *inbox) refuse() []*lifecycle.Attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = true
	left := b.adopted
	b.adopted = nil
	return left
}

// lost returns the calls of a thread that does no more calls.
func (b *inbox) lost() []queuedCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// close returns the turns that the thread has not taken. Turns that come back later free their isolates themselves.
func (b *inbox) close() []returnedTurn {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	late := b.returned
	b.returned = nil
	return late
}
