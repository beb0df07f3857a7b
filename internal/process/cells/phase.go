package cells

import (
	"cmp"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// phase is how far a cell is from its end. No cell goes back.
type phase uint8

const (
	serving   phase = iota // it gets attempts
	unhealthy              // it gets none any more, and is told to end when it has none
	ending                 // it was told to end, or has ended
)

// unhealthyFor is how long the attempts of a cell that is replaced may go on. Then they are interrupted, and run again.
const unhealthyFor = 5 * time.Second

// replace has the cell get no attempt any more. It ends when it has none, or after a while.
func (c *cell) replace() {
	c.mu.Lock()
	c.to(unhealthy)
	c.mu.Unlock()
	time.AfterFunc(unhealthyFor, c.end)
	c.stop()
}

// endWithin is how long a cell may take to end when it is told to.
const endWithin = 15 * time.Second

// stop ends the cell if it has no attempt, and reports that.
func (c *cell) stop() (ends bool) {
	c.mu.Lock()
	rests := c.assigned.n == 0
	c.mu.Unlock()
	if rests {
		c.end()
	}
	return rests
}

// end tells the cell to end. It gets no attempt any more. A cell that was broken into need not listen: its class would
// stand still, and so would classes that wait for its room, so it is killed after a time.
func (c *cell) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to(ending)
}

// to has the cell enter a phase, unless it is further. c.mu must be held.
func (c *cell) to(p phase) {
	if p <= c.phase {
		return
	}
	c.phase = p
	if p == unhealthy {
		c.how = "replaced"
		return
	}
	c.how = cmp.Or(c.how, "idle")
	c.overdue = time.AfterFunc(c.pools.endWithin, c.process.Kill)
	c.conn.Begin(wire.End)
	c.conn.End()
	c.conn.Flush()
}
