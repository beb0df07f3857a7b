package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// frames has what a cell does with a frame, by its kind.
var frames = [...]func(*Cell, *wire.Reader) error{
	wire.Hello: func(c *Cell, r *wire.Reader) error {
		var of wire.Pool
		if err := json.Unmarshal(r.Bytes(), &of); err != nil {
			return err
		}
		return c.open(of)
	},
	wire.Worker:   (*Cell).takeWorker,
	wire.Secrets:  (*Cell).takeSecrets,
	wire.Policy:   (*Cell).takePolicy,
	wire.Attempts: (*Cell).takeAttempts,
	wire.Yield: func(c *Cell, r *wire.Reader) error {
		c.waiting[c.thread(r)].yield.Store(true)
		return nil
	},
	wire.Halt: func(c *Cell, r *wire.Reader) error {
		if a := c.attempts.find(r.Uint()); a != nil && a.Halt != nil {
			a.Halt.Fire()
		}
		return nil
	},
	wire.Gone: func(c *Cell, r *wire.Reader) error {
		if a := c.attempts.find(r.Uint()); a != nil && a.Event.Requester != nil {
			a.Event.Requester.Gone()
		}
		return nil
	},
	wire.Grant: func(c *Cell, r *wire.Reader) error {
		id, upTo := r.Uint(), r.Int()
		if s := c.streams.find(id); s != nil {
			s.Grant(upTo)
		}
		return nil
	},
	wire.Cancel: func(c *Cell, r *wire.Reader) error {
		id, why := r.Uint(), r.Text()
		if s := c.streams.find(id); s != nil {
			s.Cancel(why)
		}
		return nil
	},
	wire.Serve: (*Cell).takeSocket,
	wire.Unserve: func(c *Cell, r *wire.Reader) error {
		c.sockets.end(r.Uint())
		return nil
	},
	wire.CloseContexts: func(c *Cell, r *wire.Reader) error {
		thread := c.thread(r)
		if w := c.given.worker(r.Uint()); w != nil {
			c.pool.CloseContexts(thread, w)
		}
		return nil
	},
	wire.Retire: func(c *Cell, r *wire.Reader) error { c.pool.Retire(r.Text(), r.Text()); return nil },
	wire.Renew:  func(c *Cell, r *wire.Reader) error { c.pool.Renew(r.Text(), r.Text()); return nil },
	wire.Reset:  func(c *Cell, r *wire.Reader) error { isolates.Reset(c.pool, r.Text(), r.Text()); return nil },
	wire.Ask:    (*Cell).takeQuestion,
	wire.End:    func(*Cell, *wire.Reader) error { return errEnd },
	wire.CancelEvent: func(c *Cell, r *wire.Reader) error {
		if a := c.attempts.find(r.Uint()); a != nil {
			c.pool.Cancel(a.Event)
		}
		return nil
	},
}

// take handles a frame of the broker.
func (c *Cell) take(kind wire.Kind, r *wire.Reader) error {
	if int(kind) >= len(frames) || frames[kind] == nil {
		return fmt.Errorf("there is no such frame: %d", kind)
	}
	if c.pool == nil && kind != wire.Hello && kind != wire.End {
		return errors.New("the first frame is not Hello")
	}
	return frames[kind](c, r)
}

// thread takes the number of a thread.
func (c *Cell) thread(r *wire.Reader) int {
	n := r.Uint()
	if n >= uint64(len(c.waiting)) {
		r.Fail(fmt.Errorf("there is no thread %d", n))
		return 0
	}
	return int(n)
}

func (c *Cell) takeWorker(r *wire.Reader) error {
	number, w := r.Uint(), &workers.Worker{}
	if err := json.Unmarshal(r.Bytes(), w); err != nil {
		return err
	}
	c.given.add(number, w)
	return nil
}

func (c *Cell) takeSecrets(r *wire.Reader) error {
	number, why, list := r.Uint(), r.Text(), r.Texts()
	if why != "" {
		return c.given.setSecrets(number, secrets{err: errors.New(why)})
	}
	values := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		values[list[i]] = list[i+1]
	}
	return c.given.setSecrets(number, secrets{values: isolates.NewSecrets(values)})
}

func (c *Cell) takePolicy(r *wire.Reader) error {
	owner := r.Text()
	var p workers.Policy
	if err := json.Unmarshal(r.Bytes(), &p); err != nil {
		return err
	}
	c.pool.SetPolicy(owner, p)
	return nil
}

func (c *Cell) takeAttempts(r *wire.Reader) error {
	thread := c.thread(r)
	n := r.Uint()
	var all []*lifecycle.Attempt
	for range n {
		a := wire.ReadAttempt(r)
		if r.Err() != nil {
			return r.Err()
		}
		if a.Attempt.Worker = c.given.worker(a.Worker); a.Attempt.Worker == nil {
			return fmt.Errorf("an attempt of worker %d, which is not there", a.Worker)
		}
		c.prepare(a, thread)
		all = append(all, &a.Attempt)
	}
	c.waiting[thread].put(all)
	c.pool.Wake(thread)
	return nil
}

// prepare gives an attempt what does not come in a frame.
func (c *Cell) prepare(a *wire.Attempt, thread int) {
	a.Slot, a.Thread = a, thread
	of := []*lifecycle.Delivery{a.Event}
	if a.Batch != nil {
		of = a.Batch
	}
	for _, e := range of {
		e.Owner, e.Worker = a.Attempt.Worker.Owner, a.Attempt.Worker.Name
	}
	if p := a.Event.Parts; p != nil {
		p.Read = c.Part(a.ID)
	}
	if a.Traced {
		a.Trace = &trace{cell: c, attempt: a.ID, context: a.Context}
	}
	c.attempts.add(a)
}

// takeSocket takes the number of a client's end of a WebSocket.
func (c *Cell) takeSocket(r *wire.Reader) error {
	number, client := r.Uint(), r.Uint()
	var open func(context.Context) (events.SocketConn, error)
	if client != 0 {
		open = func(ctx context.Context) (events.SocketConn, error) { return c.Socket(ctx, client) }
	}
	c.sockets.serve(number, open)
	return nil
}

// takeQuestion answers a question of the broker.
func (c *Cell) takeQuestion(r *wire.Reader) error {
	number, what := r.Uint(), r.Text()
	answer, err := c.answer(what)
	if err != nil {
		return err
	}
	w := c.conn.Begin(wire.Answer)
	w.Uint(number)
	w.Bytes(answer)
	c.conn.End()
	return nil
}

func (c *Cell) answer(what string) ([]byte, error) {
	switch what {
	case wire.AskStats:
		return json.Marshal(c.pool.Stats())
	case wire.AskIdle:
		return json.Marshal(c.sockets.open() == 0 && c.pool.Persistent() == 0)
	}
	return nil, fmt.Errorf("there is no such question: %q", what)
}
