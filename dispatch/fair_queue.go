package dispatch

const (
	// maxPassed is how often the dispatcher may pass over the next owner for one whose context is warm.
	maxPassed = 3
	// lookahead is how many owners after the next one are checked for a warm context.
	lookahead = 8
	// farLookahead is how many are checked if all of these are left to other threads.
	farLookahead = 32
)

// fairQueue is deficit round robin over the owners that have an event to start, in CPU time.
//
// Each round grants every owner one quantum of credit, or as many as its weight. An owner starts events while its
// credit is above zero. Each event costs its expected CPU time, so credit may fall below zero by one event; the
// difference to the measured time is corrected when the event ends. An owner that leaves keeps its credit or debt, and
// never has more than one quantum. So two owners that always have events differ in granted CPU time by at most two
// quanta and one event of each, whatever their events cost.
//
// An owner that enters with credit left goes to newcomers, which are served before the ring. So a quiet owner does not
// wait for the round of the busy ones. It gains nothing by leaving and entering, because credit comes with rounds only,
// and the round goes on only when no newcomer is left. So each waiting owner is served before any other got two quanta
// and one event.
type fairQueue struct {
	round     int64
	newcomers ownerList
	ring      ownerList // in order of due
	looks     uint64    // how many owners were checked; for tests
}

// enter adds o, which has an event to start.
func (t *fairQueue) enter(o *owner) {
	t.grant(o)
	o.passed = 0
	if o.credit > 0 {
		t.newcomers.pushBack(o)
		return
	}
	o.due = t.round + 1
	t.ring.pushBack(o)
}

// leave removes o, which has nothing to start.
func (t *fairQueue) leave(o *owner) { o.list.remove(o) }

// grant gives o its credit for the rounds that began since the last grant.
func (t *fairQueue) grant(o *owner) {
	t.looks++
	o.account.grant(t.round)
}

// next returns the owner to serve next, or nil. It has credit.
func (t *fairQueue) next() *owner {
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
			t.forward() // all are deep in debt: do not count down round by round
			spins = 0
		}
	}
}

// forward skips the rounds in which no owner in the ring would have credit.
func (t *fairQueue) forward() {
	least := int64(1 << 62)
	for o := t.ring.first; o != nil; o = o.next {
		t.grant(o)
		least = min(least, int64(-o.credit/o.quantum)+1)
	}
	t.round += least
}

// served must be called after o, which next or pick returned, got its events. more says that it has
// further events that could start.
func (t *fairQueue) served(o *owner, more bool) {
	o.passed = 0
	switch {
	case !more:
		t.leave(o)
	case o.credit <= 0:
		t.toBack(o)
	}
}

func (t *fairQueue) toBack(o *owner) {
	o.list.remove(o)
	o.due = t.round + 1
	t.ring.pushBack(o)
}

// pick returns the owner that the thread serves. This is the next owner, unless that one is warm only on another thread
// and one of the following few is warm on this thread, or on none. An owner is passed over at most maxPassed times in a
// row for that. soon are threads that take events soon: owners that are left to them are passed over without a limit.
// So pick may return nil though owners wait.
func (t *fairQueue) pick(thread, soon threadSet) *owner {
	soon &^= thread
	head := t.next()
	if head == nil {
		return nil
	}
	if head.passed >= maxPassed && !head.leftTo(soon, head.first()) {
		return head
	}
	var other *owner // the first that is not left to another thread
	for o, looked := head, 0; o != nil && (looked < lookahead || other == nil && looked < farLookahead); o, looked =
		t.after(o), looked+1 {
		if t.grant(o); o.credit <= 0 {
			continue
		}
		v := o.first()
		if v.warm&thread != 0 || o == head && v.warm == 0 {
			other = o
			break
		}
		if other == nil && !o.leftTo(soon, v) {
			other = o
		}
	}
	if other != head {
		head.passed++
	}
	return other
}

// after returns the owner that would be served after o.
func (t *fairQueue) after(o *owner) *owner {
	if o.next == nil && o.list == &t.newcomers {
		return t.ring.first
	}
	return o.next
}
