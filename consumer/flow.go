package consumer

import (
	"sync/atomic"
	"time"
)

// flow counts the events of a source that come and go. When a source's events are brief, the rest is held back in the
// stream: the lane asks only for as many as will end soon, so that their owner's queue does not overflow. Parking such
// events would take longer than running them. When a source's events are slow or do not end, the lane asks for more
// than an owner may have queued. What is too much for an owner is parked, and the owners behind it continue.
type flow struct {
	held    atomic.Int64
	acking  atomic.Int64  // of held: events that have ended, and whose ack NATS has not confirmed
	changes atomic.Uint64 // events that came, ended or left, so far
	slow    atomic.Int32  // about how many of 65536 events that ended were not brief; written by the settle goroutine
}

const (
	// slowFlow is how many of 65536 events must be slow for a source to count as slow. A worker whose events are
	// usually brief has slow first runs and garbage collections too.
	slowFlow = 65536 / 2
	// laneBytes is about how many bytes of one lane may be on their way to this process, and allBytes how many of all
	// lanes. nats-server closes a connection with 64 MB of unread data.
	laneBytes = 4 << 20
	allBytes  = 32 << 20
	// stuckAfter is after how long a source counts as slow when it holds as many events as it may and none of them
	// ends. Only time in which this process could run events counts.
	stuckAfter = 300 * time.Millisecond
)

// comes notes that one more event is in flight.
func (f *flow) comes() {
	f.held.Add(1)
	f.changes.Add(1)
}

// leaves notes that an event is no longer in flight. ended is whether it has ended.
func (f *flow) leaves(ended bool) {
	f.held.Add(-1)
	if ended {
		f.acking.Add(-1)
	}
	f.changes.Add(1)
}

// ended notes how an event ended. About the last hundred events make up half of the average.
func (f *flow) ended(brief bool) {
	slow := f.slow.Load()
	if brief {
		slow -= slow / 128
	} else {
		slow += (65536 - slow) / 128
	}
	f.slow.Store(slow)
	f.acking.Add(1)
	f.changes.Add(1)
}

const (
	// activeCheck is how often the puller checks how long this process could run events, while a lane waits for events
	// to end.
	activeCheck = stuckAfter / 4
	// activeMost is the maximum that counts of the time between two checks. It limits what counts when the process
	// stood still.
	activeMost = activeCheck + activeCheck/3
)

// activeTime counts the time in which this process could run events: the process did not stand still, and not all
// threads that run events waited for a processor. It counts while a lane waits for events to end. It belongs to the
// puller.
type activeTime struct {
	total  time.Duration // so far
	looked time.Time
	delays func(into []time.Duration) []time.Duration // see SetRunDelays; nil when not known
	were   []time.Duration                            // at the latest check
	are    []time.Duration                            // scratch
}

// count counts the time since the latest check, if that was at least half of activeCheck ago.
func (a *activeTime) count(now time.Time) {
	since := now.Sub(a.looked)
	if since < activeCheck/2 {
		return
	}
	a.looked = now
	a.total += max(0, min(since, activeMost)-a.runDelay())
}

// skip leaves out the time since the latest check: no lane waited.
func (a *activeTime) skip(now time.Time) { a.looked = now }

// runDelay is how long the thread that waited least for a processor has waited since the latest check. A sleeping
// thread does not wait for a processor.
func (a *activeTime) runDelay() time.Duration {
	if a.delays == nil {
		return 0
	}
	a.are = a.delays(a.are[:0])
	least := time.Duration(0)
	for i, is := range a.are {
		if i == len(a.were) {
			least = 0 // the first check
			break
		}
		if waited := max(0, is-a.were[i]); i == 0 || waited < least {
			least = waited
		}
	}
	a.were, a.are = a.are, a.were
	return least
}
