package jsapi

import (
	"sync"
	"time"
)

// Loop is a queue of functions that one goroutine calls, one after the other. Make it with NewLoop. The owner of the
// goroutine waits for Wake, and calls what Take returns.
type Loop struct {
	// Wake has room for one signal: there is something to do.
	Wake chan struct{}

	mu    sync.Mutex
	tasks []func()
}

// NewLoop makes a Loop.
func NewLoop() *Loop { return &Loop{Wake: make(chan struct{}, 1)} }

// Do queues f, to be called on the loop's goroutine after the functions queued before.
func (l *Loop) Do(f func()) {
	l.mu.Lock()
	l.tasks = append(l.tasks, f)
	l.mu.Unlock()
	Signal(l.Wake)
}

// DoIn is Do after a while.
func (l *Loop) DoIn(wait time.Duration, f func()) {
	time.AfterFunc(wait, func() { l.Do(f) })
}

// Retry is DoIn after the delay of r. It returns false when r has given up.
func (l *Loop) Retry(r *Retrier, f func()) bool {
	wait, ok := r.Next()
	if ok {
		l.DoIn(wait, f)
	}
	return ok
}

// Take removes and returns the queued functions. The loop reuses the memory of scratch.
func (l *Loop) Take(scratch []func()) []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	tasks := l.tasks
	l.tasks = scratch[:0]
	return tasks
}

// Signal wakes the goroutine that receives from wake, which has room for one signal.
func Signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
