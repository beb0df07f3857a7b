package cells

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/calls"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// cell is one process of a class, from its start to its end. mu guards what the broker knows of it.
type cell struct {
	pools   *Pools
	class   *class
	process *Process
	conn    *wire.Conn
	threads int // of its pool
	began   time.Time
	calls   *calls.Server
	served  sync.WaitGroup // calls
	over    chan struct{}  // is closed when it says nothing more
	gone    chan struct{}  // is closed when its process has ended

	mu       sync.Mutex
	assigned assigned
	given    given
	phase    phase
	how      string    // it ends, if it was told to: as in pinwheel_cell_ends_total
	lie      error     // what its calls asked for that no cell asks for
	rests    time.Time // since when it has had no attempt; zero = it has some
	sockets  clients   // of its WebSockets
	asked    questions
	last     isolates.Stats // the last answer
	overdue  *time.Timer    // kills a cell that was told to end, and does not
}

// Bounds of what waits between a broker and a cell, in bytes.
const (
	unread = 256 << 20 // that the cell has not read: a cell that reads nothing ends
	// beside is what a frame of a cell may have beside the body of a reply.
	beside = 4 << 20
)

// readyWithin is how long a cell may take until it is ready, also on a busy machine.
const readyWithin = time.Minute

// open starts the process of a cell, and waits until it is ready.
func open(ctx context.Context, of *class) (*cell, error) {
	p := of.pools
	process, err := p.cfg.Start(ctx)
	if err != nil {
		return nil, err
	}
	c := &cell{
		pools: p, class: of, process: process, began: time.Now(), rests: time.Now(),
		conn:    wire.NewConn(process.Events, max(p.cfg.Pool.MaxReply, wire.MostBody)+beside, unread),
		threads: p.cfg.Pool.Threads + p.cfg.Pool.Background,
		given:   newGiven(),
		over:    make(chan struct{}),
		gone:    make(chan struct{}),
	}
	answering := p.cfg.Calls
	answering.Given, answering.Lie = caller{c}, c.lied
	c.calls = calls.NewServer(answering)
	c.served.Go(func() { c.serveCalls(ctx) })
	if err := c.greet(ctx); err != nil {
		process.Kill()
		ending := process.Wait()
		c.conn.Close()
		_ = process.Calls.Close()
		c.served.Wait()
		return nil, fmt.Errorf("%w: %s %s", err, ending.Why, ending.Text)
	}
	return c, nil
}

// errReady ends Receive when the cell is ready.
var errReady = errors.New("the cell is ready")

// greet sends the configuration, and waits for the answer.
func (c *cell) greet(ctx context.Context) error {
	of := c.pools.cfg.Pool
	if of.Version = wire.Version; c.pools.cfg.Authorities != nil {
		of.Authorities = c.pools.cfg.Authorities()
	}
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	c.conn.Begin(wire.Hello).Bytes(text)
	c.conn.End()
	c.conn.Flush()
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	defer context.AfterFunc(ctx, c.process.Kill)()
	err = c.conn.Receive(func(kind wire.Kind, r *wire.Reader) error {
		if version := r.Uint(); kind != wire.Ready || version != wire.Version {
			return fmt.Errorf("the first frame of a cell is of kind %d and version %d", kind, version)
		}
		if err := r.Done(); err != nil {
			return err
		}
		return errReady
	}, func() {})
	if errors.Is(err, errReady) {
		return nil
	}
	return errors.Join(err, ctx.Err())
}

// serve passes on what the cell says, until it ends. The error says why; nil = it was told to.
func (c *cell) serve(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { c.watch(ctx) })
	r := newReceiver(c)
	err := c.conn.Receive(r.take, r.passOn)
	r.end()
	close(c.over)
	c.mu.Lock()
	told := c.phase == ending && c.lie == nil
	c.to(ending)
	if c.lie != nil {
		err = c.lie
	}
	c.mu.Unlock()
	if told && died(err) { // end has it killed if it stays
		err = nil
	} else {
		c.process.Kill()
	}
	_ = c.process.Calls.Close()
	c.served.Wait()
	group.Wait()
	return err
}

// watch ends the cell when it has rested for long, or when the process ends.
func (c *cell) watch(ctx context.Context) {
	idle := c.pools.cfg.IdleAfter
	tick := time.NewTicker(idle / 4)
	defer tick.Stop()
	for {
		select {
		case <-c.over:
			return
		case <-ctx.Done():
			c.end()
			return
		case <-tick.C:
			at := c.restsSince()
			rested := !at.IsZero() && (time.Since(at) >= idle || c.calls.Calls() > calls.WornAfter)
			if rested && c.idle() {
				c.stop()
			}
		}
	}
}

// lied ends the cell because its calls asked for what no cell asks for. Any goroutine may call it.
func (c *cell) lied(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lie == nil {
		c.lie = err
	}
	c.process.Kill()
}

// restsSince returns since when the cell has had no attempt; zero = it has some.
func (c *cell) restsSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.assigned.n > 0 {
		return time.Time{}
	}
	return c.rests
}

// idle asks the cell whether nothing would be lost with it: WebSockets and persistent contexts would.
func (c *cell) idle() bool {
	answer, err := c.ask(wire.AskIdle)
	return err == nil && string(answer) == "true"
}

// next asks the dispatcher for attempts for a thread, and hands them out. A cell that ends takes none: what was given
// back would wake the thread again, at once and as often as it is given. PoolEnded wakes it when the cell has ended.
func (c *cell) next(index, free int) (some bool) {
	c.mu.Lock()
	serves := c.phase == serving
	c.mu.Unlock()
	if !serves {
		return false
	}
	all := c.pools.dispatch.Next(c.class.thread(index), free)
	if len(all) > 0 {
		c.hand(index, all)
	}
	return len(all) > 0
}

// wake asks the dispatcher for attempts for a thread that it has woken. If there are none, the thread asks again
// itself: the dispatcher may have counted it as busy, and then relies on that.
func (c *cell) wake(index int) {
	if c.next(index, c.pools.cfg.Pool.Slots) {
		return
	}
	f := c.conn.Begin(wire.Attempts)
	f.Uint(uint64(index))
	f.Uint(0)
	c.conn.End()
	c.conn.Flush()
}

// hand hands attempts out to a thread. Those that cannot be are given back.
func (c *cell) hand(index int, all []*lifecycle.Attempt) {
	if sent, worn := c.send(index, all); sent {
		c.conn.Flush()
		if worn {
			c.replace()
		}
		return
	}
	reports := make([]lifecycle.Report, len(all))
	for i, a := range all {
		reports[i] = lifecycle.Report{Attempt: a, End: &lifecycle.End{Interrupted: true}}
	}
	c.pools.dispatch.Report(c.class.thread(index), reports)
}

// send sends attempts. sent is false when the cell ends. worn says that it is to be replaced.
func (c *cell) send(index int, all []*lifecycle.Attempt) (sent, worn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != serving {
		return false, false
	}
	for _, a := range all {
		c.giveWorker(a.Worker)
	}
	c.rests = time.Time{}
	f := c.conn.Begin(wire.Attempts)
	f.Uint(uint64(index))
	f.Uint(uint64(len(all)))
	var ids [1]uint64
	list := ids[:0]
	for _, a := range all {
		id := c.assigned.add(a, index)
		wire.PutAttempt(f, id, c.given.numbers[a.Worker], a)
		list = append(list, id)
	}
	c.conn.End()
	for i, a := range all {
		if a.Cancelled() { // since it was taken; see cancel
			c.conn.Begin(wire.CancelEvent).Uint(list[i])
			c.conn.End()
		}
		c.listen(list[i], a)
	}
	return true, c.given.worn(c.pools.cfg.Catalog)
}

// listen passes on what ends an attempt early. The functions may be called at once, so c.mu must not be needed by them.
func (c *cell) listen(id uint64, a *lifecycle.Attempt) {
	halt := func() { c.about(wire.Halt, id) }
	for _, h := range [...]*events.Signal{a.Event.Halt, a.Halt} {
		if h != nil {
			h.On(halt)
		}
	}
	if q := a.Event.Requester; q != nil {
		q.OnGone(func() { c.about(wire.Gone, id) })
	}
}

// unlisten undoes listen.
func unlisten(a *lifecycle.Attempt) {
	for _, h := range [...]*events.Signal{a.Event.Halt, a.Halt} {
		if h != nil {
			h.On(nil)
		}
	}
	if q := a.Event.Requester; q != nil {
		q.OnGone(nil)
	}
}

// cancel passes on that an event is cancelled, if the cell has an attempt of it alone. A cell that does not obey is
// ended by the limits of the run.
func (c *cell) cancel(e *lifecycle.Delivery) {
	id := uint64(0) // no attempt has it
	c.mu.Lock()
	c.assigned.all(func(one uint64, x *assignment) {
		if x.attempt.Event == e && x.attempt.Cancelled() {
			id = one
		}
	})
	c.mu.Unlock()
	if id != 0 {
		c.about(wire.CancelEvent, id)
	}
}

// about sends a frame about an attempt, a question or a WebSocket. Any goroutine may call it.
func (c *cell) about(kind wire.Kind, number uint64) {
	c.conn.Begin(kind).Uint(number)
	c.conn.End()
	c.conn.Flush()
}

// tell sends a frame about a worker, if the cell knows it.
func (c *cell) tell(kind wire.Kind, owner, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tellLocked(kind, owner, name)
}

func (c *cell) tellLocked(kind wire.Kind, owner, name string) {
	if !c.given.has(owner, name) {
		return
	}
	f := c.conn.Begin(kind)
	f.Text(owner)
	f.Text(name)
	c.conn.End()
	c.conn.Flush()
}

// renew sends the new secrets of a worker, and ends its contexts.
func (c *cell) renew(owner, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, w := range c.given.workers {
		if w.Owner == owner && w.Name == name && len(w.Secrets) > 0 {
			c.giveSecrets(w, number)
		}
	}
	c.tellLocked(wire.Renew, owner, name)
}

// setPolicy sends the policy of an owner that the cell knows. stays says that the owner has the class of the cell.
// Otherwise the cell is replaced: it must not keep what the owner has.
func (c *cell) setPolicy(owner string, p workers.Policy, stays bool) {
	c.mu.Lock()
	_, known := c.given.owners[owner]
	if known {
		c.givePolicy(owner, p)
		c.conn.Flush()
	}
	c.mu.Unlock()
	if known && !stays {
		c.replace()
	}
}

// closeContexts is isolates.Pool.CloseContexts.
func (c *cell) closeContexts(index int, w *workers.Worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.given.numbers[w]
	if number == 0 {
		return
	}
	f := c.conn.Begin(wire.CloseContexts)
	f.Uint(uint64(index))
	f.Uint(number)
	c.conn.End()
	c.conn.Flush()
}
