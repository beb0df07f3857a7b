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
	// heldLanes is how many of an owner's workers that were paused have a place at once. The others follow.
	heldLanes = 2
	// parkedConsumers is the maximum number of consumers of owners, including those of owners without parked events,
	// which are removed after parkedInactive. A stream can have at most 1000 consumers.
	parkedConsumers = 800
)

// places knows the owners that have parked events, and whose events are pulled. Only the goroutine of Owners.Run gives
// places, so no owner is in owners and in waiting.
type places struct {
	mu        sync.Mutex
	owners    map[string]*place    // by name: whose events are pulled, at most parkedLanes
	waiting   []string             // owners that wait for a place
	after     string               // the last owner that got a place
	counts    map[string]uint64    // of parked events, by owner, at the last look
	resumed   map[string][]string  // names of workers with a place, by owner; nearly always empty
	turns     map[string]string    // the last worker's name that got a turn, of owners with more than heldLanes such names
	shared    int                  // how often room was shared
	own       map[string]*ownParks // owners of which this process was to park events
	countings uint64               // number of entries of own made so far
	notifying sync.Mutex           // held while dispatch is notified that all of an owner was submitted; locked before mu
	free      chan struct{}        // a place is free, and an owner waits for it
}

func newPlaces() places {
	return places{owners: make(map[string]*place), own: make(map[string]*ownParks),
		resumed: make(map[string][]string), turns: make(map[string]string), free: make(chan struct{}, 1)}
}

// place is the state of an owner whose parked events are pulled.
type place struct {
	room     int  // events the owner may still get; events asked for are subtracted
	reported bool // dispatch has reported the room
	since    time.Time
}

// set notes how much room an owner has. It returns false when the owner's parked events are not pulled. Those of its
// workers that were paused share the room with the others.
func (p *places) set(owner string, room int) (pulled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all [1 + heldLanes]*place
	sharing := all[:0]
	if o := p.owners[owner]; o != nil {
		sharing = append(sharing, o)
	}
	for _, name := range p.resumed[owner] {
		if o := p.owners[name]; o != nil {
			sharing = append(sharing, o)
		}
	}
	p.shared++
	for i, o := range sharing {
		n := len(sharing)
		o.room, o.reported = room/n, true
		if (i+p.shared)%n < room%n { // what is left goes to another one each time
			o.room++
		}
	}
	return len(sharing) > 0
}

// takeTurns leaves out workers of an owner that were paused, so that at most heldLanes of them have a place. names are
// sorted. A worker keeps its place for its turn.
func (p *places) takeTurns(names []string, now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := map[string][]string{}
	for _, name := range names {
		if owner, _, held := SplitName(name); held {
			of[owner] = append(of[owner], name)
		}
	}
	maps.DeleteFunc(p.turns, func(owner, _ string) bool { return len(of[owner]) <= heldLanes })
	left := map[string]bool{}
	for owner, all := range of {
		if len(all) <= heldLanes {
			continue
		}
		chosen := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			o := p.owners[name]
			return o == nil || now.Sub(o.since) > parkedTurn
		})
		at, found := slices.BinarySearch(all, p.turns[owner])
		if found {
			at++
		}
		for _, name := range slices.Concat(all[at:], all[:at]) {
			if len(chosen) >= heldLanes {
				break
			}
			if !slices.Contains(chosen, name) {
				chosen, p.turns[owner] = append(chosen, name), name
			}
		}
		for _, name := range all {
			left[name] = !slices.Contains(chosen[:heldLanes], name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return left[name] })
}

// passOn takes the place of a worker whose held events were submitted, if others of its owner wait for their turn.
func (p *places) passOn(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	owner, _, held := SplitName(name)
	if _, more := p.turns[owner]; !held || !more || p.owners[name] == nil {
		return false
	}
	delete(p.owners, name)
	return true
}

// namesOf lists the names of an owner under which events are pulled.
func (p *places) namesOf(owner string) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.owners {
		if of, _, _ := SplitName(name); of == owner {
			names = append(names, name)
		}
	}
	return names
}

// add gives an owner a place.
func (p *places) add(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owners[owner] = &place{room: parkedRoom, since: time.Now()}
	if of, _, held := SplitName(owner); held && !slices.Contains(p.resumed[of], owner) {
		p.resumed[of] = append(p.resumed[of], owner)
	}
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
	for of, names := range p.resumed {
		if names = slices.DeleteFunc(names, func(name string) bool { return counts[name] == 0 }); len(names) == 0 {
			delete(p.resumed, of)
		} else {
			p.resumed[of] = names
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
