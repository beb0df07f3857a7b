package parking

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

const (
	// parkedLanes is the maximum number of owners whose parked events a process pulls at once. Each owner has a
	// JetStream consumer.
	parkedLanes = 64
	// parkedTurn is how long an owner keeps its place when others wait for one.
	parkedTurn = 6 * time.Second
	// parkedOpening is how many consumers of owners are created at once. More would not be faster, because nats-server
	// creates them one after the other.
	parkedOpening = 3
	// parkedConsumers is the maximum number of consumers of owners, including those of owners without parked events,
	// which are removed after parkedInactive. A stream can have at most 1000 consumers.
	parkedConsumers = 800
)

// places knows the owners that have parked events, and whose events are pulled. Only the goroutine of Owners.Run gives
// places, so no owner is in owners and in waiting.
type places struct {
	mu        sync.Mutex
	owners    map[string]*place    // owners whose events are pulled, at most parkedLanes
	waiting   []string             // owners that wait for a place
	after     string               // the last owner that got a place
	counts    map[string]uint64    // of parked events, by owner, at the last look
	own       map[string]*ownParks // owners of which this process was to park events
	countings uint64               // number of entries of own made so far
	notifying sync.Mutex           // held while dispatch is notified that all of an owner was submitted; locked before mu
	free      chan struct{}        // a place is free, and an owner waits for it
}

func newPlaces() places {
	return places{owners: make(map[string]*place), own: make(map[string]*ownParks), free: make(chan struct{}, 1)}
}

// place is the state of an owner whose parked events are pulled.
type place struct {
	room     int  // events the owner may still get; events asked for are subtracted
	reported bool // dispatch has reported the room
	since    time.Time
}

// set notes how much room an owner has. It returns false when the owner's parked events are not pulled.
func (p *places) set(owner string, room int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.owners[owner]
	if o != nil {
		o.room, o.reported = room, true
	}
	return o != nil
}

// add gives an owner a place.
func (p *places) add(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owners[owner] = &place{room: parkedRoom, since: time.Now()}
}

// use changes the owner's room, if the owner has a place.
func (p *places) use(owner string, change func(room int) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.owners[owner]; o != nil {
		o.room = change(o.room)
	}
}

// refill gives an owner without room a little room, in case dispatch does not report any.
func (p *places) refill(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.owners[owner]; o != nil && o.room <= 0 {
		if o.room = 1; !o.reported {
			o.room = parkedRoom
		}
	}
}

// ownParks counts the events of an owner that this process was to park, since the last time that all of them had been
// submitted.
type ownParks struct {
	open     int    // being stored
	done     uint64 // stored, delayed, or submitted again because they could not be parked
	last     uint64 // stream sequence of the last one
	reported uint64 // value of done when dispatch was last notified that all were submitted
	counting uint64 // a new number each time the count begins again
}

// opened notes that e is going to be parked. Like dispatch, it counts only events that were not parked before.
func (p *places) opened(e *lifecycle.Delivery) {
	if e.Parked {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.own[e.Owner]
	if o == nil {
		p.countings++
		o = &ownParks{counting: p.countings}
		p.own[e.Owner] = o
	}
	o.open++
}

// closed notes that parking e is over. seq is e's sequence among the parked events, 0 when e is not there.
func (p *places) closed(e *lifecycle.Delivery, seq uint64) {
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

// unconfirmedParks returns the counts of each owner whose parked events may not all be submitted yet. It leaves out
// owners of which an event is being parked.
func (p *places) unconfirmedParks() map[string]ownParks {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]ownParks{}
	for owner, o := range p.own {
		if o.open == 0 && o.reported != o.done {
			all[owner] = *o
		}
	}
	return all
}

// found takes the owners that have parked events, sorted, and the number of events of each, and decides which of them
// have a place. An owner that has a place keeps it for its turn. Then the waiting owners follow, one after the other,
// in the order of their names.
func (p *places) found(owners []string, counts map[string]uint64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = counts
	tooMany := len(owners) > parkedLanes
	for owner, o := range p.owners {
		if _, there := slices.BinarySearch(owners, owner); !there || tooMany && now.Sub(o.since) > parkedTurn {
			delete(p.owners, owner)
		}
	}
	at, _ := slices.BinarySearch(owners, p.after)
	p.waiting = nil // next has returned parts of this slice
	for i := range owners {
		if owner := owners[(at+i)%len(owners)]; p.owners[owner] == nil && owner != p.after {
			p.waiting = append(p.waiting, owner)
		}
	}
	if _, there := slices.BinarySearch(owners, p.after); there && p.owners[p.after] == nil {
		p.waiting = append(p.waiting, p.after)
	}
}

// next returns owners that get a free place now, at most parkedOpening.
func (p *places) next() []string {
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

// ask is how many events of an owner the first request asks for: when others wait for its place, at most as many as it
// had at the last look.
func (p *places) ask(owner string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return parkedRoom
	}
	return int(min(p.counts[owner], parkedRoom))
}

// pulled lists the owners that have a place.
func (p *places) pulled() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.owners))
}

func (p *places) has(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owners[owner] != nil
}

// wants reports whether owner, which has parked events now, would get a place at a look.
func (p *places) wants(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owners[owner] == nil && len(p.owners) < parkedLanes && len(p.waiting) == 0
}

// forget takes an owner's place away.
func (p *places) forget(owner string) {
	p.mu.Lock()
	delete(p.owners, owner)
	p.mu.Unlock()
}
