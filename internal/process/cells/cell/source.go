package cell

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// waiting are the attempts that have come for a thread.
type waiting struct {
	mu    sync.Mutex
	list  []*lifecycle.Attempt
	asked bool        // the broker knows that the thread takes attempts
	yield atomic.Bool // others wait for the thread
}

// put adds attempts that have come. The thread asks again when it has taken them.
func (q *waiting) put(all []*lifecycle.Attempt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list, q.asked = append(q.list, all...), false
}

// take takes at most free attempts. ask says that the broker must be asked for more.
func (q *waiting) take(free int) (all []*lifecycle.Attempt, ask bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := min(free, len(q.list)); n > 0 {
		all = q.list[:n:n]
		if q.list = q.list[n:]; len(q.list) == 0 {
			q.list = nil
		}
		return all, false
	}
	ask = !q.asked || free == 0
	q.asked = free > 0
	return nil, ask
}

// again has the thread ask in any case.
func (q *waiting) again() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = false
}

// some reports whether attempts wait.
func (q *waiting) some() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) > 0
}

// Next implements isolates.Source.
func (c *Cell) Next(thread, free int) []*lifecycle.Attempt {
	all, ask := c.waiting[thread].take(free)
	if ask {
		w := c.conn.Begin(wire.Next)
		w.Uint(uint64(thread))
		w.Uint(uint64(free))
		c.conn.End()
		c.conn.Flush()
	}
	return all
}

// Report implements isolates.Source.
func (c *Cell) Report(thread int, reports []lifecycle.Report) {
	ended := false
	for i := range reports {
		c.report(thread, &reports[i])
		ended = ended || reports[i].End != nil
	}
	if ended { // the thread may have asked before the broker knew of a free slot
		c.waiting[thread].again()
	}
	c.conn.Flush()
}

func (c *Cell) report(thread int, rep *lifecycle.Report) {
	if rep.Closed != nil {
		if number := c.given.number(rep.Closed); number != 0 {
			w := c.conn.Begin(wire.Closed)
			w.Uint(uint64(thread))
			w.Uint(number)
			c.conn.End()
		}
		return
	}
	a := rep.Attempt.Slot.(*wire.Attempt)
	if p := rep.Reply; p != nil && len(p.Body) > wire.MostBody {
		p.Dropped, p.Body = len(p.Body), nil
	}
	socket := uint64(0)
	if rep.Reply != nil && rep.Reply.Socket != nil {
		socket = c.sockets.add(rep.Reply.Socket)
	}
	if rep.End != nil {
		c.attempts.remove(a)
	}
	if rep.Reply != nil && rep.Reply.Stream != nil {
		c.streams.add(a.ID, rep.Reply.Stream) // first: the answer to the report may be a grant
	}
	wire.PutReport(c.conn.Begin(wire.Report), a.ID, rep, socket)
	c.conn.End()
	if rep.Reply != nil && rep.Reply.Stream != nil {
		c.send(a.ID, rep.Reply.Stream)
	}
}

// send sends the chunks of a body as they come.
func (c *Cell) send(id uint64, s *events.Stream) {
	s.OnChunks(func() {
		for _, chunk := range s.Take() {
			wire.PutChunk(c.conn.Begin(wire.Chunk), id, chunk)
			c.conn.End()
			if chunk.End || chunk.Failure != nil {
				c.streams.remove(id)
			}
		}
		c.conn.Flush()
	})
}

// number is that of an attempt; 0 = it stands for what a persistent context does between events.
func number(a *lifecycle.Attempt) uint64 {
	if of, ok := a.Slot.(*wire.Attempt); ok {
		return of.ID
	}
	return 0
}

// Running implements isolates.Source. What the broker answers comes later: the thread yields at the next call.
func (c *Cell) Running(thread int, a *lifecycle.Attempt, cpu time.Duration) (yield bool) {
	w := c.conn.Begin(wire.Running)
	w.Int(int64(thread))
	w.Uint(number(a))
	w.Duration(cpu)
	w.Uint(c.given.number(a.Worker))
	c.conn.End()
	c.conn.Flush()
	if thread < 0 {
		return false
	}
	q := &c.waiting[thread]
	return q.yield.Swap(false) || q.some()
}

// Charge implements isolates.Source.
func (c *Cell) Charge(owner string, cpu time.Duration) {
	w := c.conn.Begin(wire.Charge)
	w.Text(owner)
	w.Duration(cpu)
	c.conn.End()
	c.conn.Flush()
}

// Away implements isolates.Source.
func (c *Cell) Away(a *lifecycle.Attempt, is bool) { c.say(wire.Away, number(a), is) }

// Calling implements isolates.Source. The broker expects the thread to ask for more then.
func (c *Cell) Calling(a *lifecycle.Attempt, is bool) {
	if n := number(a); n != 0 {
		c.say(wire.Calling, n, is)
		if of, ok := a.Slot.(*wire.Attempt); ok && is {
			c.waiting[of.Thread].again()
		}
	}
}

// Overstays implements isolates.Source.
func (c *Cell) Overstays(w *workers.Worker, is bool) { c.say(wire.Overstays, c.given.number(w), is) }

// say sends a frame about an attempt or a worker, unless it has no number.
func (c *Cell) say(kind wire.Kind, number uint64, is bool) {
	if number == 0 {
		return
	}
	w := c.conn.Begin(kind)
	w.Uint(number)
	w.Bool(is)
	c.conn.End()
	c.conn.Flush()
}

// Lost implements isolates.Source.
func (c *Cell) Lost(of *workers.Worker, began time.Time) {
	if number := c.given.number(of); number != 0 {
		w := c.conn.Begin(wire.Lost)
		w.Uint(number)
		w.Time(began)
		c.conn.End()
		c.conn.Flush()
	}
}

// mostLines is how many bytes may wait to be written before lines of output are dropped: their number has no bound but
// that of their runs, and the broker may be slow.
const mostLines = 1 << 20

// Log implements isolates.Host.
func (c *Cell) Log(line events.LogLine) {
	if c.conn.Waiting() > mostLines {
		return
	}
	text, err := json.Marshal(line)
	if err != nil {
		return
	}
	c.conn.Begin(wire.Log).Bytes(text)
	c.conn.End()
	c.conn.Flush()
}
