package isolates

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/js"
)

const (
	// callQuantum is the CPU time that an owner gets for its queued calls in each round of a thread. Dispatch gives as
	// much to new events at once.
	callQuantum = 500 * time.Microsecond
	// callRound is the CPU time after which a round is interrupted for new events. The next round continues with the
	// next owner.
	callRound = 2 * time.Millisecond
	// keptCalls is the longest list that an owner without queued calls keeps for reuse.
	keptCalls = 64
)

// queuedCall is a call into a run or a persistent context that waits: a timer that is due, or an answer that came.
type queuedCall struct {
	run   *run
	timer float64 // the JavaScript timer that is due, if do is nil
	do    func()  // makes the call
}

// ownerCalls are the queued calls of an owner on a thread. An owner without calls is kept while it is in debt.
type ownerCalls struct {
	owner  string
	list   []queuedCall
	first  int // index in list of the first queued call that is not done yet
	credit time.Duration
}

func (o *ownerCalls) n() int { return len(o.list) - o.first }

func (o *ownerCalls) pop() queuedCall {
	c := o.list[o.first]
	o.list[o.first] = queuedCall{}
	if o.first++; o.first == len(o.list) {
		o.list, o.first = o.list[:0], 0
		if cap(o.list) > keptCalls {
			o.list = nil
		}
	}
	return c
}

// queuedCalls are the waiting calls of a thread, by owner. They are served by deficit round robin in CPU time, as in
// dispatch. So the timers of one owner do not delay the answers of another, however many are due. Owner thread only.
//
// The queue of dispatch is another type: it has a debt for each installed owner, counts rounds for owners that it does
// not visit, and serves newcomers first. Here a round visits all owners, is interrupted for new events, and an owner is
// known only while it has calls or a debt.
type queuedCalls struct {
	of   map[string]*ownerCalls
	ring []*ownerCalls
	at   int         // index in ring of the owner to serve next
	idle *ownerCalls // kept for reuse
}

func (c *queuedCalls) add(x queuedCall) {
	owner := x.run.attempt.Worker.Owner
	o := c.of[owner]
	if o == nil {
		if o, c.idle = c.idle, nil; o == nil {
			o = &ownerCalls{}
		}
		o.owner, o.credit = owner, 0
		if c.of == nil {
			c.of = map[string]*ownerCalls{}
		}
		c.of[owner] = o
		c.ring = append(c.ring, o)
	}
	o.list = append(o.list, x)
}

// wait reports whether there are queued calls.
func (c *queuedCalls) wait() bool {
	return slices.ContainsFunc(c.ring, func(o *ownerCalls) bool { return o.n() > 0 })
}

// forget removes the owner at index i of the ring.
func (c *queuedCalls) forget(i int) {
	o := c.ring[i]
	delete(c.of, o.owner)
	c.ring = slices.Delete(c.ring, i, i+1)
	c.idle = o
}

// forgiveDebts reduces all debts until an owner with queued calls has none. It is called when there is nothing else to
// do. It returns false when no owner has queued calls.
func (c *queuedCalls) forgiveDebts() bool {
	least := time.Duration(1)
	for i := 0; i < len(c.ring); {
		o := c.ring[i]
		if o.n() == 0 {
			c.forget(i)
			continue
		}
		if least > 0 || o.credit > least {
			least = min(o.credit, 0)
		}
		i++
	}
	for _, o := range c.ring {
		o.credit -= least
	}
	return len(c.ring) > 0
}

// doQueuedCalls does one round: some queued calls of each owner that is not in debt. It returns false when it did none.
func (t *thread) doQueuedCalls() bool {
	c, began, did := &t.queuedCalls, t.turned, false
	for n := len(c.ring); n > 0 && (t.turned-began < callRound || guard.TimerBudget.Off()); n-- {
		if c.at >= len(c.ring) {
			c.at = 0
		}
		o := c.ring[c.at]
		c.at++
		o.credit = min(o.credit, 0) + callQuantum
		for (o.credit > 0 || guard.TimerBudget.Off()) && o.n() > 0 {
			did = true
			before := t.turned
			t.do(o.pop())
			o.credit -= t.turned - before
		}
		if o.n() == 0 && o.credit >= 0 {
			c.at--
			c.forget(c.at)
		}
	}
	return did
}

func (t *thread) do(c queuedCall) {
	if c.postpone() {
		return
	}
	r := c.run
	if c.do != nil {
		c.do()
		return
	}
	if r.timers[c.timer] == nil {
		return // the timer was cleared, or the run is over
	}
	delete(r.timers, c.timer)
	t.call.Reset(js.OpTimers).Numbers(c.timer)
	t.turn(r, t.call.Bytes(), nil)
}

func (t *thread) put(c queuedCall) {
	t.inbox.put(c)
	if t.lost.Load() { // it does no more calls, and Pool.replace may not have seen this one
		t.pool.holdings.forgetCalls(t.pool, c)
	}
}
