package dispatch

import (
	"slices"
	"time"
)

const (
	// shareWindow is the time over which the shares of owners are measured.
	shareWindow = time.Second
	// leastHeavy is the CPU time in a window below which no owner is heavy, however many others there are: so little
	// delays no other owner for long, and a move between classes costs an isolate.
	leastHeavy = shareWindow / 4
)

// shares knows which owners took more than their share of the CPU recently. These are heavy: their events run on
// background threads, which have a lower priority. So an event of any other owner finds a thread at once, and the
// system takes the processor for it from a heavy event in the middle. No processor is kept free for that.
//
// A share is the owner's part of all threads, by weight, among the owners that had an event in this window or the one
// before. An owner that took a quarter more in a window is heavy, until a window in which it took less than half of its
// share: then it has less to do, or does not get its share. So heavy owners lose only the others' share to the others.
type shares struct {
	pools  *pools
	cfg    Config
	number int64 // of the window
	start  time.Time
	weight int // of the owners that had events end in this window
	last   int // of those that had any in the window before, and not yet in this
	heavy  []*owner
}

// spend counts CPU time of an event of o. It must be cheap: every event calls it.
func (s *shares) spend(o *owner, cpu time.Duration) {
	if o.window != s.number {
		if o.window == s.number-1 {
			s.last -= o.weight()
		}
		s.weight += o.weight()
	}
	o.usage.add(cpu, s.number)
	if o.class == light && o.spent > leastHeavy && s.cfg.Background > 0 {
		if share, others := s.of(o, s.cfg.Threads); others && o.spent > share+share/4 {
			s.heavy = append(s.heavy, o)
			s.pools.move(o, o.pool, heavy)
		}
	}
}

// of returns the share of o, of so many threads, in a window, and whether there are other owners.
func (s *shares) of(o *owner, threads int) (share time.Duration, others bool) {
	weight := max(s.weight+s.last, 1)
	return shareWindow * time.Duration(threads*o.weight()) / time.Duration(weight), weight > o.weight()
}

// turnWindow begins a new window when the current one is over.
func (s *shares) turnWindow(now time.Time) {
	since := now.Sub(s.start)
	if since < shareWindow {
		return
	}
	for _, o := range slices.Clone(s.heavy) {
		if share, others := s.of(o, s.cfg.Threads); !others || 2*o.usage.in(s.number) < share {
			s.lighten(o)
		}
	}
	s.number, s.start, s.last, s.weight = s.number+1, now, s.weight, 0
	if since > 2*shareWindow {
		s.number, s.last = s.number+1, 0
	}
}

// lighten makes a heavy owner light.
func (s *shares) lighten(o *owner) {
	s.heavy = slices.DeleteFunc(s.heavy, func(other *owner) bool { return other == o })
	s.pools.move(o, o.pool, light)
}
