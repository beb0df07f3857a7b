package lifecycle

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Observer sees what happens to the events of a process. The methods are called where it happens, by pinned threads and
// many goroutines at once, so they must not block. They must not change what they get, except Event.Trace in Delivered
// and Attempt.Trace in Started, and must keep no Report and no Settlement. Embed Unobserved to see only a part.
type Observer interface {
	// Delivered: the process has a new event, of the stream or a direct one. It is queued or ended next.
	Delivered(e *Delivery)
	// Queued: dispatch takes the event. That happens again before each further attempt.
	Queued(e *Delivery)
	// Started: a thread has taken an attempt, and will run it.
	Started(a *Attempt)
	// Replied: an attempt has a response. r.End is not nil when the attempt ended with it; Ended is called next then.
	Replied(r *Report)
	// Ended: nothing of an attempt runs any more. r.Reply is not nil when the response came with the end. An attempt that
	// was not started ends too, see End.
	Ended(r *Report)
	// Settled: dispatch has decided about an event, or only its reply is ready (Settlement.ReplyOnly).
	Settled(s *Settlement)
	// Cancelled: an event was cancelled while no attempt of it was in progress. Of one that runs, Ended says so.
	Cancelled(e *Delivery)
}

// Unobserved is an Observer that sees nothing.
type Unobserved struct{}

// Delivered implements Observer.
func (Unobserved) Delivered(*Delivery) {}

// Queued implements Observer.
func (Unobserved) Queued(*Delivery) {}

// Started implements Observer.
func (Unobserved) Started(*Attempt) {}

// Replied implements Observer.
func (Unobserved) Replied(*Report) {}

// Ended implements Observer.
func (Unobserved) Ended(*Report) {}

// Settled implements Observer.
func (Unobserved) Settled(*Settlement) {}

// Cancelled implements Observer.
func (Unobserved) Cancelled(*Delivery) {}

// Observers are the observers of a process. Any goroutine may use them. nil has none.
type Observers struct {
	mu   sync.Mutex
	list atomic.Pointer[[]Observer] // the slice is never changed
}

// All returns the observers of now. Without any it costs one load.
func (o *Observers) All() []Observer {
	if o == nil {
		return nil
	}
	if list := o.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Add adds an observer, unless it is one already. It may still be called a while after Remove.
func (o *Observers) Add(one Observer) {
	o.change(func(list []Observer) []Observer {
		if slices.Contains(list, one) {
			return list
		}
		return append(list, one)
	})
}

// Remove removes an observer.
func (o *Observers) Remove(one Observer) {
	o.change(func(list []Observer) []Observer {
		return slices.DeleteFunc(list, func(other Observer) bool { return other == one })
	})
}

func (o *Observers) change(f func(list []Observer) []Observer) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	list := f(slices.Clone(o.All()))
	if len(list) == 0 {
		o.list.Store(nil)
		return
	}
	o.list.Store(&list)
}
