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
	parkedTurn = 6 * time.Second
	// parkedOpening is how many consumers of owners are made at once. More are no faster: nats-server makes one after the other.
	parkedOpening = 3
	// parkedConsumers is how many consumers of owners there may be, those included whose owner has nothing any more and that vanish after
	// parkedInactive: a stream has 1000 at most.
	parkedConsumers = 800
)

// Througher is what a Dispatcher may implement beside Submit to learn that parked events are through, so that those that come
// need not go behind them any more.
type Througher interface {
	// Through says that of owner nothing is parked any more that was not submitted, when parks of its settlements with Park
	// were carried out. It returns whether that are all: then both sides count anew.
	Through(owner string, parks uint64) bool
}

// ownParks are the events of an owner that this process was to park, since they were all through.
type ownParks struct {
	open int    // being stored
	done uint64 // stored, put off, or submitted again because they could not be
	last uint64 // stream sequence of the last one
	told uint64 // done when it was last said that all are through
	life uint64 // another for each time the count began anew
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
		p.lives++
		o = &ownParks{life: p.lives}
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

// settledParks are, of each owner whose parked events are not known to be through, those that were parked here; owners of which one is just being
// parked are left out.
func (p *parking) settledParks() map[string]ownParks {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]ownParks{}
	for owner, o := range p.own {
		if o.open == 0 && o.told != o.done {
			all[owner] = *o
		}
	}
	return all
}

// emptied is told when the parked event seq of owner was submitted and the stream had none after it.
func (c *Consumer) emptied(owner string, seq uint64) {
	p := &c.parking
	p.telling.Lock()
	defer p.telling.Unlock()
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
		signal(p.place)
	}
	p.mu.Unlock()
	c.tellThrough(owner, parks)
}

// through is told when the stream had nothing of owner any more after was was seen.
func (c *Consumer) through(owner string, was ownParks) {
	p := &c.parking
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	o := p.own[owner]
	same := o != nil && o.life == was.life
	p.mu.Unlock()
	if same {
		c.tellThrough(owner, was.done)
	}
}

// tellThrough tells the dispatcher, and forgets what is through. The caller holds telling, so that a number means the same to both sides.
func (c *Consumer) tellThrough(owner string, parks uint64) {
	t, ok := c.dispatcher.(Througher)
	if !ok {
		return
	}
	all := t.Through(owner, parks)
	p := &c.parking
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.own[owner]
	switch {
	case o == nil:
	case !all:
		o.told = parks
	case o.done == parks && o.open == 0:
		delete(p.own, owner)
	default: // more was parked since dispatch was asked
		p.lives++
		o.done, o.told, o.life = o.done-parks, 0, p.lives
	}
}

// found takes the owners that have parked events, sorted, with the number of those, and gives the places out: who has one keeps it for its
// turn, then come those that wait, in the order of their names, one after the other.
func (p *parking) found(owners []string, counts map[string]uint64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = counts
	crowded := len(owners) > parkedLanes
	for owner, o := range p.owners {
		if _, there := slices.BinarySearch(owners, owner); !there || crowded && now.Sub(o.since) > parkedTurn {
			delete(p.owners, owner)
		}
	}
	at, _ := slices.BinarySearch(owners, p.after)
	p.waiting = nil // next has given parts of it away
	for i := range owners {
		if owner := owners[(at+i)%len(owners)]; p.owners[owner] == nil && owner != p.after {
			p.waiting = append(p.waiting, owner)
		}
	}
	if _, there := slices.BinarySearch(owners, p.after); there && p.owners[p.after] == nil {
		p.waiting = append(p.waiting, p.after)
	}
}

// next are owners that get a free place now, at most parkedOpening.
func (p *parking) next() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := max(0, min(parkedLanes-len(p.owners), len(p.waiting), parkedOpening))
	owners := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	if n > 0 {
		p.after = owners[n-1]
	}
	return owners
}

// ask is how many events of an owner are worth asking for at first: when others wait for its place, no more than it had.
func (p *parking) ask(owner string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return parkedRoom
	}
	return int(min(p.counts[owner], parkedRoom)) //nolint:gosec // small
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

// wants reports whether owner, who has parked events now, would get a place if it were looked for.
func (p *parking) wants(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owners[owner] == nil && len(p.owners) < parkedLanes && len(p.waiting) == 0
}

// unspent gives an owner back the room of an event that dispatch never saw, so it cannot tell of it.
func (p *parking) unspent(owner string) { p.use(owner, func(room int) int { return room + 1 }) }

// forget takes an owner's place away.
func (p *parking) forget(owner string) {
	p.mu.Lock()
	delete(p.owners, owner)
	p.mu.Unlock()
}
