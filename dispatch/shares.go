package dispatch

import (
	"slices"
	"time"
)

// class says which threads run an owner's events.
type class uint8

const (
	light   class = iota // within its share, or alone
	heavy                // beyond it while others have events too
	classes              // how many there are
)

const (
	// shareWindow is over what time it is looked who takes more than its share.
	shareWindow = time.Second
	// leastHeavy is the CPU time in a window below which no owner is heavy, however many others there are: it holds nobody up for long, and a move
	// costs it an isolate.
	leastHeavy = shareWindow / 4
)

// shares knows which owners took more than their share of the CPU lately. Those are heavy: their events run on threads of a lower priority, of
// which there are as many again, so that an event of any other owner finds a thread at once and the system takes the processor for it from the
// heavy one in the middle of its event. No processor is kept free for that.
//
// A share is what an owner may have of all threads when all that had an event in this window or the last one get the same, by weight. Who took a
// quarter more in a window is heavy, until a window in which it took less than half of its share: it has less to do, or it does not
// get what it should. So heavy owners lose nothing to the others beyond what those may have.
type shares struct {
	number int64 // of the window
	start  time.Time
	weight int // of the owners that had events end in this window
	last   int // of those that had any in the window before, and not yet in this
	heavy  []*owner
}

// spend counts what an event of o took. Its cost must be small: it is part of every event.
func (d *Dispatcher) spend(o *owner, cpu time.Duration) {
	s := &d.shares
	if o.window != s.number {
		if o.window == s.number-1 {
			s.last -= o.weight()
		}
		o.window, o.spent = s.number, 0
		s.weight += o.weight()
	}
	o.spent += cpu
	if o.class == light && o.spent > leastHeavy && d.cfg.Background > 0 {
		if share, others := d.shareOf(o); others && o.spent > share+share/4 {
			s.heavy = append(s.heavy, o)
			d.move(o, heavy)
		}
	}
}

func (o *owner) weight() int { return int(o.quantum / quantum) }

// shareOf is what o may have in a window, and whether there are others.
func (d *Dispatcher) shareOf(o *owner) (share time.Duration, others bool) {
	weight := max(d.shares.weight+d.shares.last, 1)
	return shareWindow * time.Duration(d.cfg.Threads*o.weight()) / time.Duration(weight), weight > o.weight()
}

// turnWindow begins a new window when it is time.
func (d *Dispatcher) turnWindow(now time.Time) {
	s := &d.shares
	since := now.Sub(s.start)
	if since < shareWindow {
		return
	}
	for _, o := range slices.Clone(s.heavy) {
		spent := time.Duration(0)
		if o.window == s.number {
			spent = o.spent
		}
		if share, others := d.shareOf(o); !others || 2*spent < share {
			d.lighten(o)
		}
	}
	s.number, s.start, s.last, s.weight = s.number+1, now, s.weight, 0
	if since > 2*shareWindow {
		s.number, s.last = s.number+1, 0
	}
}

// lighten makes o light again.
func (d *Dispatcher) lighten(o *owner) {
	s := &d.shares
	s.heavy = slices.DeleteFunc(s.heavy, func(other *owner) bool { return other == o })
	d.move(o, light)
}

// move puts o, with what waits of it, into another class.
func (d *Dispatcher) move(o *owner, to class) {
	waits := o.list != nil
	if waits {
		d.turns[o.class].leave(o)
	}
	d.runnable[o.class] -= o.counted
	d.runnable[to] += o.counted
	// Rounds of the one are none of the other.
	d.turns[o.class].grant(o)
	o.class, o.seen = to, d.turns[to].round
	if waits {
		d.turns[to].enter(o)
	}
}

// threadsOf are the threads that run owners of each class. Heavy ones may have those of the others, too, as long as there are as many left
// that they may not have as they have of their own.
func (c Config) threadsOf() (of [classes]threadSet) {
	all := threadSet(1)<<c.Threads - 1
	of[light] = all
	if c.Background > 0 {
		kept := threadSet(1)<<min(c.Background, c.Threads) - 1
		of[heavy] = all&^kept | (1<<c.Background-1)<<c.Threads
	}
	return of
}

// pick is the owner whose events the thread shall start.
func (d *Dispatcher) pick(thread int) *owner {
	set := threadSet(1) << thread
	for c := range d.turns {
		if d.of[c]&set == 0 {
			continue
		}
		if o := d.turns[c].pick(set, d.nap.coming&d.of[c]); o != nil {
			return o
		}
	}
	return nil
}
