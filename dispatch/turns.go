package dispatch

import "time"

const (
	// maxPassed is how often an owner whose turn it is may be passed over for one whose context is warm.
	maxPassed = 3
	// lookahead is how many owners after the one whose turn it is are looked at for a warm context.
	lookahead = 8
)

// turns is deficit round robin over the owners that have an event to start, in CPU time.
//
// Each round grants every owner one quantum of credit, or as many as its weight says. An owner starts events while its credit is above
// zero, and each costs what it is expected to take, so that credit may fall below zero by one
// event; what an event really took is corrected when it ends. An owner that leaves keeps its credit or debt,
// and never has more than one quantum. So two owners that always have events differ in granted CPU time by at
// most two quanta and one event of each, whatever their events cost.
//
// An owner that comes with credit left goes to newcomers, who are served before the ring: a quiet
// owner does not wait for the round of the busy ones. It cannot gain by coming and going, because credit comes with
// rounds only, and the round goes on only when no newcomer is left. So whoever waits is served before each of
// the others got two quanta and one event.
type turns struct {
	round     int64
	newcomers ownerList
	ring      ownerList // in order of due
	looks     uint64    // at owners; for tests
}

// enter lets o, which has an event to start, take part.
func (t *turns) enter(o *owner) {
	t.grant(o)
	o.passed = 0
	if o.credit > 0 {
		t.newcomers.pushBack(o)
		return
	}
	o.due = t.round + 1
	t.ring.pushBack(o)
}

// leave takes out o, which has nothing to start.
func (t *turns) leave(o *owner) { o.list.remove(o) }

// grant gives o its credit for the rounds that began since it was last looked at.
func (t *turns) grant(o *owner) {
	t.looks++
	if rounds := t.round - o.seen; rounds > 0 {
		// Compared by division, because many rounds times quantum may overflow.
		if rounds > int64((o.quantum-o.credit)/o.quantum) {
			o.credit = o.quantum
		} else {
			o.credit += time.Duration(rounds) * o.quantum
		}
		o.seen = t.round
	}
}

// next is the owner whose turn it is, or nil. It has credit.
func (t *turns) next() *owner {
	for spins := 0; ; spins++ {
		if o := t.newcomers.first; o != nil {
			if t.grant(o); o.credit > 0 {
				return o
			}
			t.toBack(o)
			continue
		}
		o := t.ring.first
		if o == nil {
			return nil
		}
		t.round = max(t.round, o.due)
		if t.grant(o); o.credit > 0 {
			return o
		}
		t.toBack(o)
		if spins > 2*t.ring.n {
			t.forward() // all are deep in debt: no need to count it down round by round
			spins = 0
		}
	}
}

// forward skips the rounds in which nobody in the ring would have credit.
func (t *turns) forward() {
	least := int64(1 << 62)
	for o := t.ring.first; o != nil; o = o.next {
		t.grant(o)
		least = min(least, int64(-o.credit/o.quantum)+1)
	}
	t.round += least
}

// served must follow after o, which next or pick returned, was given its events. more: it has
// further events that could start.
func (t *turns) served(o *owner, more bool) {
	o.passed = 0
	switch {
	case !more:
		t.leave(o)
	case o.credit <= 0:
		t.toBack(o)
	}
}

func (t *turns) toBack(o *owner) {
	o.list.remove(o)
	o.due = t.round + 1
	t.ring.pushBack(o)
}

// pick is the owner that the thread shall serve: the one whose turn it is, unless that is warm on
// another thread only and one of the next few is warm on this one, or nowhere. An owner is passed over at most maxPassed
// times in a row. coming are threads that were woken and have not asked yet: an owner that is
// warm on one of them is left to it, so pick may return nil though owners wait.
func (t *turns) pick(thread, coming threadSet) *owner {
	head := t.next()
	if head == nil || head.passed >= maxPassed {
		return head
	}
	var other *owner // the first that no coming thread is warm for
	o, looked := head, 0
	for ; o != nil && looked < lookahead; o, looked = t.after(o), looked+1 {
		if t.grant(o); o.credit <= 0 {
			continue
		}
		warm := o.warm()
		if warm&thread != 0 || o == head && warm == 0 {
			other = o
			break
		}
		if other == nil && warm&coming == 0 {
			other = o
		}
	}
	if other == nil && o != nil {
		return head // the few looked at are all spoken for, and more wait
	}
	if other != head {
		head.passed++
	}
	return other
}

// after is the owner whose turn is after that of o, as things stand.
func (t *turns) after(o *owner) *owner {
	if o.next == nil && o.list == &t.newcomers {
		return t.ring.first
	}
	return o.next
}
