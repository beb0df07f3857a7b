// Package callqueue queues calls into runs, by owner, and serves owners in turn.
package callqueue

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

const (
	// quantum is the CPU time that an owner gets for its queued calls in each round of a thread. Dispatch gives as
	// much to new events at once.
	quantum = 500 * time.Microsecond
	// kept is the longest list that an owner without queued calls keeps for reuse.
	kept = 64
)

// Owner has the queued calls of an owner on a thread. An owner without calls is kept while it is in debt.
type Owner[C any] struct {
	owner  string
	list   []C
	first  int           // index in list of the first queued call that is not done yet
	credit time.Duration // CPU time; below 0 it is a debt
}

func (o *Owner[C]) n() int { return len(o.list) - o.first }

// Pop takes the first call. There must be one (MayCall).
func (o *Owner[C]) Pop() C {
	c := o.list[o.first]
	o.list[o.first] = *new(C)
	if o.first++; o.first == len(o.list) {
		o.list, o.first = o.list[:0], 0
		if cap(o.list) > kept {
			o.list = nil
		}
	}
	return c
}

// Queue has the waiting calls of a thread, by owner. They are served by deficit round robin in CPU time, as in
// dispatch. So the timers of one owner do not delay the answers of another, however many are due. Owner thread only.
//
// The queue of dispatch is another type: it has a debt for each installed owner, counts rounds for owners that it does
// not visit, and serves newcomers first. Here a round visits all owners, is interrupted for new events, and an owner is
// known only while it has calls or a debt.
type Queue[C any] struct {
	of   map[string]*Owner[C]
	ring []*Owner[C]
	at   int       // index in ring of the owner to serve next
	idle *Owner[C] // kept for reuse
}

// Add adds a call of an owner.
func (c *Queue[C]) Add(owner string, x C) {
	o := c.of[owner]
	if o == nil {
		if o, c.idle = c.idle, nil; o == nil {
			o = &Owner[C]{}
		}
		o.owner, o.credit = owner, 0
		if c.of == nil {
			c.of = map[string]*Owner[C]{}
		}
		c.of[owner] = o
		c.ring = append(c.ring, o)
	}
	o.list = append(o.list, x)
}

// Wait reports whether there are queued calls.
func (c *Queue[C]) Wait() bool {
	return slices.ContainsFunc(c.ring, func(o *Owner[C]) bool { return o.n() > 0 })
}

// NextOwner returns the owner to serve now, with its credit for one more round.
func (c *Queue[C]) NextOwner() *Owner[C] {
	if c.at >= len(c.ring) {
		c.at = 0
	}
	o := c.ring[c.at]
	c.at++
	o.credit = min(o.credit, 0) + quantum
	return o
}

// MayCall reports whether the owner has another call, and credit for it.
func (o *Owner[C]) MayCall() bool { return (o.credit > 0 || guard.TimerBudget.Off()) && o.n() > 0 }

// Served ends the service of o, the owner that NextOwner returned last. It is forgotten if it has neither calls nor
// debts.
func (c *Queue[C]) Served(o *Owner[C]) {
	if o.n() == 0 && o.credit >= 0 {
		c.at--
		c.forget(c.at)
	}
}

// forget removes the owner at index i of the ring.
func (c *Queue[C]) forget(i int) {
	o := c.ring[i]
	delete(c.of, o.owner)
	c.ring = slices.Delete(c.ring, i, i+1)
	c.idle = o
}

// ForgiveDebts reduces all debts until an owner with queued calls has none. It is called when there is nothing else to
// do. It returns false when no owner has queued calls.
func (c *Queue[C]) ForgiveDebts() bool {
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

// Charge takes CPU time that a call used from the credit of the owner.
func (o *Owner[C]) Charge(cpu time.Duration) { o.credit -= cpu }

// Len returns how many owners have calls or debts.
func (c *Queue[C]) Len() int { return len(c.ring) }

// All calls f for every call.
func (c *Queue[C]) All(f func(C)) {
	for _, o := range c.ring {
		for _, x := range o.list[o.first:] {
			f(x)
		}
	}
}
