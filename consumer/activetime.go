package consumer

import (
	"time"
)

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

// SetRunDelays sets how to read how long each pinned thread has waited for a processor so far, always in the same
// order. Call it before Start. With it, a process that other programs keep from running events does not count the
// owners as slow, and so does not park their events.
func (c *Consumer) SetRunDelays(read func(into []time.Duration) []time.Duration) {
	c.puller.active.delays = read
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
