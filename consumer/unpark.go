package consumer

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// parkedLanes is how many owners' parked events a process pulls at once: each has a JetStream consumer.
	parkedLanes = 64
	// parkedTurn is how long an owner keeps its place when others wait for one.
	parkedTurn = 30 * time.Second
)

// Througher is what a Dispatcher may implement beside Submit to learn that parked events are through, so that those that come
// need not go behind them any more.
type Througher interface {
	// Through says that of owner nothing is parked any more that was not submitted, when parks of its settlements with Park
	// were carried out.
	Through(owner string, parks uint64)
}

// ownParks are the events of an owner that this process was to park.
type ownParks struct {
	open int    // being stored
	done uint64 // stored, put off, or submitted again because they could not be
	last uint64 // stream sequence of the last one
	told uint64 // done when it was last said that all are through
}

// opened: e is going to be parked. Like dispatch it counts those only that were not parked before.
func (p *parking) opened(e *events.Event) {
	if e.Parked {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.own[e.Owner]
	if o == nil {
		o = &ownParks{}
		p.own[e.Owner] = o
	}
	o.open++
}

// closed: that is over. seq is where e is among the parked, 0 when it is not.
func (p *parking) closed(e *events.Event, seq uint64) {
	if e.Parked {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.own[e.Owner]
	o.open--
	o.done++
	o.last = max(o.last, seq)
}

// settledParks is, for each owner whose parked events are not known to be through, how many were parked here; those of which one is just being
// parked are left out.
func (p *parking) settledParks() map[string]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]uint64{}
	for owner, o := range p.own {
		if o.open == 0 && o.told != o.done {
			all[owner] = o.done
		}
	}
	return all
}

// emptied is told when the parked event seq of owner was submitted and the stream had none after it.
func (c *Consumer) emptied(owner string, seq uint64) {
	p := &c.parking
	p.mu.Lock()
	o, parks := p.own[owner], uint64(0)
	if o != nil {
		parks = o.done
	}
	if over := o == nil || o.open == 0 && seq >= o.last; !over {
		p.mu.Unlock()
		return
	}
	if len(p.waiting) > 0 { // another owner's turn
		delete(p.owners, owner)
		c.lookAgain()
	}
	p.mu.Unlock()
	c.through(owner, parks)
}

// through tells the dispatcher.
func (c *Consumer) through(owner string, parks uint64) {
	p := &c.parking
	p.mu.Lock()
	if o := p.own[owner]; o != nil {
		o.told = parks
	}
	p.mu.Unlock()
	if t, ok := c.dispatcher.(Througher); ok {
		t.Through(owner, parks)
	}
}

// found takes the owners that have parked events, sorted, and gives the places out: who has one keeps it for its turn, then come those
// that wait, in the order of their names, one after the other.
func (p *parking) found(owners []string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	crowded := len(owners) > parkedLanes
	for owner, o := range p.owners {
		if _, there := slices.BinarySearch(owners, owner); !there || crowded && now.Sub(o.since) > parkedTurn {
			delete(p.owners, owner)
		}
	}
	at, _ := slices.BinarySearch(owners, p.after)
	p.waiting = p.waiting[:0]
	for i := range owners {
		if owner := owners[(at+i)%len(owners)]; p.owners[owner] == nil && owner != p.after {
			p.waiting = append(p.waiting, owner)
		}
	}
	if _, there := slices.BinarySearch(owners, p.after); there && p.owners[p.after] == nil {
		p.waiting = append(p.waiting, p.after)
	}
}

// next is an owner that gets a free place now; "" when there is none.
func (p *parking) next() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.owners) >= parkedLanes || len(p.waiting) == 0 {
		return ""
	}
	p.after, p.waiting = p.waiting[0], p.waiting[1:]
	return p.after
}

// pulled lists the owners that have a place.
func (p *parking) pulled() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]string, 0, len(p.owners))
	for owner := range p.owners {
		all = append(all, owner)
	}
	return all
}

func (p *parking) has(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owners[owner] != nil
}

// forget takes an owner's place away.
func (p *parking) forget(owner string) {
	p.mu.Lock()
	delete(p.owners, owner)
	p.mu.Unlock()
}
