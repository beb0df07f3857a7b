package consumer

import "time"

const (
	// ableLook is how often it is looked how long this process was able to run events, while a lane waits for some to end.
	ableLook = stuckAfter / 4
	// ableMost is the most that counts of the time between two looks: of a process that stood still no more than that passed.
	ableMost = ableLook + ableLook/3
)

// able counts the time in which this process could run events: neither stood it still, nor did all threads that run events wait for a
// processor. It belongs to the puller.
type able struct {
	passed time.Duration // so far
	looked time.Time
	delays func(into []time.Duration) []time.Duration // see SetRunDelays; nil: not known
	were   []time.Duration                            // at the latest look
	are    []time.Duration                            // scratch
}

// SetRunDelays says how to read how long each pinned thread has waited for a processor so far, always in the same order. It is called before
// Start. A process that other programs keep from running its events does not take their owners for slow then, and parks none of their
// events for it.
func (c *Consumer) SetRunDelays(read func(into []time.Duration) []time.Duration) {
	c.puller.able.delays = read
}

// look counts the time since the latest look, if that is a while ago.
func (a *able) look(now time.Time) {
	since := now.Sub(a.looked)
	if since < ableLook/2 {
		return
	}
	a.looked = now
	a.passed += max(0, min(since, ableMost)-a.delayed())
}

// delayed is how long the thread that waited least for a processor has waited for one since the latest look: who sleeps waits for none.
func (a *able) delayed() time.Duration {
	if a.delays == nil {
		return 0
	}
	a.are = a.delays(a.are[:0])
	least := time.Duration(0)
	for i, is := range a.are {
		if i == len(a.were) {
			least = 0 // the first look
			break
		}
		if waited := max(0, is-a.were[i]); i == 0 || waited < least {
			least = waited
		}
	}
	a.were, a.are = a.are, a.were
	return least
}
