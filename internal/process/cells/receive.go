package cells

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// receiver takes the frames of a cell. Only the goroutine that receives uses it.
type receiver struct {
	*cell
	reports  [][]lifecycle.Report    // by thread, not passed on yet
	overstay map[*workers.Worker]int // turns that overstay
	lost     int                     // threads
	output   *rate.Limiter           // bytes of lines and spans
	frames   *rate.Limiter           // of all kinds: each costs CPU time here
	taken    int                     // frames that are not counted yet
}

func newReceiver(c *cell) *receiver {
	return &receiver{
		cell: c, reports: make([][]lifecycle.Report, c.threads), overstay: map[*workers.Worker]int{},
		output: rate.NewLimiter(outputRate, outputBurst),
		frames: rate.NewLimiter(c.pools.frameRate, frameBurst),
	}
}

// Bounds of the lines and spans of a cell: its runs have bounds of their own, but it need not keep them.
const (
	outputRate  = 4 << 20  // bytes a second
	outputBurst = 32 << 20 // bytes
)

// Bounds of the frames of a cell: each costs the broker a microsecond or two, whatever it says. A cell that works sends
// a few for each event, and two a millisecond for each thread.
const (
	frameRate  = rate.Limit(500_000) // a second
	frameBurst = 1_000_000
)

// frames has what a broker does with a frame of a cell, by its kind. An error is a lie: no cell that works sends this.
var frames = [...]func(*receiver, *wire.Reader) error{
	wire.Next:      (*receiver).takeNext,
	wire.Report:    (*receiver).takeReport,
	wire.Closed:    (*receiver).takeClosed,
	wire.Chunk:     (*receiver).takeChunk,
	wire.Running:   (*receiver).takeRunning,
	wire.Charge:    (*receiver).takeCharge,
	wire.Away:      (*receiver).takeAway,
	wire.Calling:   (*receiver).takeCalling,
	wire.Overstays: (*receiver).takeOverstays,
	wire.Lost:      (*receiver).takeLost,
	wire.Log:       (*receiver).takeLog,
	wire.Span:      (*receiver).takeSpan,
	wire.Answer:    (*receiver).takeAnswer,
	wire.Unhealthy: (*receiver).takeUnhealthy,
}

// take handles a frame.
func (c *receiver) take(kind wire.Kind, r *wire.Reader) error {
	if int(kind) >= len(frames) || frames[kind] == nil {
		return fmt.Errorf("a cell sends no frame of kind %d", kind)
	}
	if c.taken++; c.taken >= countEvery {
		if !c.frames.AllowN(time.Now(), c.taken) {
			return fmt.Errorf("more than %g frames a second", float64(c.frames.Limit()))
		}
		c.taken = 0
	}
	return frames[kind](c, r)
}

// countEvery is how many frames are counted at once.
const countEvery = 256

// passOn passes the reports on that came, and writes what is to be sent.
func (c *receiver) passOn() {
	for index := range c.reports {
		c.passOnOf(index)
	}
	c.conn.Flush()
}

func (c *receiver) passOnOf(index int) {
	if len(c.reports[index]) == 0 {
		return
	}
	c.pools.dispatch.Report(c.class.thread(index), c.reports[index])
	clear(c.reports[index])
	c.reports[index] = c.reports[index][:0]
}

// thread takes the number of a thread of the cell.
func (c *receiver) thread(r *wire.Reader) int {
	n := r.Uint()
	if n >= uint64(len(c.reports)) {
		r.Fail(fmt.Errorf("a cell has threads 0 to %d, and not %d", len(c.reports)-1, n))
		return 0
	}
	return int(n)
}

// worker takes the number of a worker that the cell was given.
func (c *receiver) worker(r *wire.Reader) (*workers.Worker, error) {
	number := r.Uint()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.given.workers[number]
	if w == nil {
		return nil, fmt.Errorf("the cell has no worker %d", number)
	}
	return w, nil
}

// attempt takes the number of an attempt. It is nil without an error if the cell has reported its end: goroutines of a
// cell that works may still speak of it.
func (c *receiver) attempt(r *wire.Reader) (*assignment, error) {
	id := r.Uint()
	c.mu.Lock()
	defer c.mu.Unlock()
	x, known := c.assigned.find(id)
	if !known && r.Err() == nil {
		return nil, errForeign
	}
	return x, nil
}

func (c *receiver) takeNext(r *wire.Reader) error {
	index, free := c.thread(r), r.Uint()
	if err := r.Done(); err != nil {
		return err
	}
	c.passOnOf(index)
	c.next(index, int(min(free, uint64(c.pools.cfg.Pool.Slots))))
	return nil
}

func (c *receiver) takeReport(r *wire.Reader) error {
	s := wire.ReadReport(r)
	if err := r.Done(); err != nil {
		return err
	}
	body, err := c.noteReport(&s)
	if err == nil && s.End != nil {
		c.calls.Over(s.ID)
	}
	if err == nil {
		body.breakOff(events.Fail(events.ReasonException, "the run ended before its body"))
	}
	return err
}

// noteReport notes a report that is passed on soon. It returns the body that ends with the attempt, if there is one.
func (c *receiver) noteReport(s *wire.SentReport) (body *stream, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, _ := c.assigned.find(s.ID)
	if x == nil {
		return nil, errForeign
	}
	rep := lifecycle.Report{Attempt: x.attempt, Reply: s.Reply, End: s.End}
	if s.Reply != nil {
		if err := c.reply(s, x); err != nil {
			return nil, err
		}
	}
	index := x.thread
	if s.End != nil {
		if n := len(s.End.Items); n > 0 && n != len(x.attempt.Batch) {
			return nil, fmt.Errorf("an end decides about %d events, and its batch has %d", n, len(x.attempt.Batch))
		}
		s.End.CPU = min(s.End.CPU, c.mostCPU())
		body = x.stream
		unlisten(x.attempt)
		if c.assigned.remove(s.ID); c.assigned.n == 0 {
			c.rests = time.Now()
			if c.phase == unhealthy {
				c.to(ending)
			}
		}
	}
	c.reports[index] = append(c.reports[index], rep)
	return body, nil
}

// mostCPU is how much CPU time all threads of the cell can have used since it began.
func (c *receiver) mostCPU() time.Duration { return time.Since(c.began) * time.Duration(c.threads) }

// reply gives a reply what stays in the broker. c.mu must be held.
func (c *cell) reply(s *wire.SentReport, x *assignment) error {
	e := x.attempt.Event
	switch {
	case x.replied:
		return errors.New("an attempt has two replies")
	case x.attempt.Batch != nil:
		return errors.New("a batch has a reply, and its events have those of the broker")
	case e.Service == nil && c.pools.cfg.Pool.MaxReply > 0 && len(s.Reply.Body) > c.pools.cfg.Pool.MaxReply:
		return fmt.Errorf("a reply has a body of %d bytes: at most %d", len(s.Reply.Body), c.pools.cfg.Pool.MaxReply)
	case (s.Reply.Status != 0) != (e.Kind == events.Fetch):
		return fmt.Errorf("the reply to an event of the kind %s has the status %d", e.Kind, s.Reply.Status)
	case s.Socket != 0 && !e.Upgrade:
		return errors.New("a reply has a WebSocket, and its request asked for none")
	case s.Stream && (e.Requester == nil || s.Socket != 0 || len(s.Reply.Body) > 0):
		return errors.New("a reply has a body in chunks, and no such reply can have one")
	}
	x.replied = true
	if s.Socket != 0 {
		s.Reply.Socket = c.socket(s.Socket)
	}
	if s.Stream {
		id := s.ID
		x.stream = &stream{}
		of := x.stream
		of.Stream = &events.Stream{
			Grant: func(upTo int64) { c.grant(id, of, upTo) },
			Cancel: func(why string) {
				f := c.conn.Begin(wire.Cancel)
				f.Uint(id)
				f.Text(why)
				c.conn.End()
				c.conn.Flush()
			},
		}
		s.Reply.Stream = of.Stream
	}
	return nil
}

// grant lets the body of a reply grow. Any goroutine may call it.
func (c *cell) grant(id uint64, s *stream, upTo int64) {
	s.granted.Store(max(s.granted.Load(), upTo)) // one publisher grants
	f := c.conn.Begin(wire.Grant)
	f.Uint(id)
	f.Int(upTo)
	c.conn.End()
	c.conn.Flush()
}

func (c *receiver) takeClosed(r *wire.Reader) error {
	index := c.thread(r)
	w, err := c.worker(r)
	if r.Err() != nil {
		return nil // Receive says why
	}
	if err == nil {
		c.reports[index] = append(c.reports[index], lifecycle.Report{Closed: w})
	}
	return err
}

func (c *receiver) takeChunk(r *wire.Reader) error {
	id, chunk := wire.ReadChunk(r)
	if err := r.Done(); err != nil {
		return err
	}
	c.mu.Lock()
	x, known := c.assigned.find(id)
	switch {
	case !known:
		c.mu.Unlock()
		return errForeign
	case x == nil: // it has ended, and so has its body
		c.mu.Unlock()
		return nil
	case x.stream == nil:
		c.mu.Unlock()
		return errors.New("a body in chunks has no reply")
	}
	s := x.stream
	index := x.thread
	c.mu.Unlock()
	c.passOnOf(index) // the reply comes before its body
	return s.push(chunk)
}

func (c *receiver) takeRunning(r *wire.Reader) error {
	index := int(r.Number(-1, int64(len(c.reports)-1)))
	id, cpu, number := r.Uint(), r.Duration(math.MaxInt64), r.Uint()
	if err := r.Done(); err != nil {
		return err
	}
	c.mu.Lock()
	x, known := c.assigned.find(id)
	w := c.given.workers[number]
	c.mu.Unlock()
	if id != 0 && !known || w == nil {
		return errForeign
	}
	a := &lifecycle.Attempt{Worker: w}
	switch {
	case id != 0 && x == nil:
		return nil
	case id != 0:
		a = x.attempt
	}
	thread := -1
	if index >= 0 {
		thread = c.class.thread(index)
	}
	if c.pools.dispatch.Running(thread, a, min(cpu, c.mostCPU())) && index >= 0 {
		c.about(wire.Yield, uint64(index))
	}
	return nil
}

func (c *receiver) takeCharge(r *wire.Reader) error {
	owner, cpu := r.Text(), r.Duration(math.MaxInt64)
	if err := r.Done(); err != nil {
		return err
	}
	c.mu.Lock()
	_, known := c.given.owners[owner]
	c.mu.Unlock()
	if !known {
		return fmt.Errorf("the cell runs nothing of the owner %.40q", owner)
	}
	c.pools.dispatch.Charge(owner, min(cpu, c.mostCPU()))
	return nil
}

func (c *receiver) takeAway(r *wire.Reader) error {
	x, err := c.attempt(r)
	is := r.Bool()
	if err != nil || x == nil || x.away == is {
		return err
	}
	x.away = is
	c.pools.dispatch.Away(x.attempt, is)
	return nil
}
