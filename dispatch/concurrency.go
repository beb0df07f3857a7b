package dispatch

import (
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
)

// leaseState says what this process has of the lease of a worker.
type leaseState uint8

const (
	noLease   leaseState = iota // the worker has no exact limit
	unwanted                    // no event of it waits here
	wanted                      // Leases knows that events wait
	held                        // events may start
	givenBack                   // events that run end, no other one starts
)

// unlimited is the room of a worker that has no limit.
const unlimited = 1 << 30

// concurrency is the events of a worker in this process, and how many of them may run at once.
type concurrency struct {
	limit   int // of the fleet; 0 = none
	share   int // of this process
	lease   leaseState
	running int
	queued  int              // events in the owner's queue
	waiting queue            // events that there is no room for, in order
	leased  []*events.Signal // halt the attempts that began under a lease
	term    uint64           // of the lease, while it is held or givenBack
	asked   bool             // a watched event wants the lease, which waits in no queue of the owner
}

// room is how many more events may enter the owner's queue.
func (c *concurrency) room() int {
	switch {
	case c.limit == 0:
		return unlimited
	case c.lease != noLease && c.lease != held:
		return 0
	}
	return c.share - c.running - c.queued
}

// mayStart reports whether an event may start now, wherever it waited.
func (c *concurrency) mayStart() bool {
	return c.limit == 0 || c.running < c.share && (c.lease == noLease || c.lease == held)
}

func (c *concurrency) empty() bool { return c.running == 0 && c.queued == 0 && c.waiting.n == 0 }

// divide sets the share of one of so many processes. A limit that cannot be divided holds for the process that has the
// lease. A limit of 1 always needs it: processes do not learn at the same moment how many they are.
func (c *concurrency) divide(limit, processes int, leases bool) {
	c.limit, c.share = limit, max(1, limit/processes)
	exact := leases && limit > 0 && (limit == 1 || limit < processes)
	switch {
	case exact && c.lease == noLease:
		c.share, c.lease = limit, unwanted
	case exact:
		c.share = limit
	default:
		c.lease = noLease
	}
}

// joins counts an attempt of the worker. It returns what halts an attempt under a lease; nil for others.
func (c *concurrency) joins() *events.Signal {
	c.running++
	if c.lease == noLease {
		return nil
	}
	halt := &events.Signal{}
	c.leased = append(c.leased, halt)
	return halt
}

// leaves undoes joins.
func (c *concurrency) leaves(halt *events.Signal) {
	c.running--
	if i := slices.Index(c.leased, halt); i >= 0 {
		c.leased = slices.Delete(c.leased, i, i+1)
	}
}
