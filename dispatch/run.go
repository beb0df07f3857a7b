package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// run is what dispatch keeps of an attempt that a thread has.
type run struct {
	lifecycle.Attempt
	one     [1]*lifecycle.Attempt // the batch of one, without an allocation of its own
	owner   *owner
	route   *route
	version *version
	since   time.Time     // when the event was submitted
	cost    time.Duration // what was taken from the owner's credit
	spent   time.Duration // what was counted in its share
	thread  int
	calls   int  // service calls under way; with any it has no place and no slot
	away    bool // it runs beside its thread
	replied bool
	ended   bool
	back    bool // it was not made, and its events go back to where they waited
}

// items are the events of an attempt, to be queued again.
func (r *run) items() []item {
	if len(r.Batch) < 2 {
		return []item{{event: r.Event, route: r.route, since: r.since}}
	}
	list := make([]item, len(r.Batch))
	for i, e := range r.Batch {
		list[i] = item{event: e, route: r.route, since: r.since}
	}
	return list
}
