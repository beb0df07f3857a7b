package calls

import (
	"context"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// Call implements bindings.Caller. It charges the run for the answer before it reads it.
func (c *Client) Call(ctx context.Context, call *lifecycle.Call) (lifecycle.Answer, error) {
	h := newHead()
	c.caller(&h, call.From)
	h.text(string(call.Binding.Kind))
	h.text(call.Binding.Name)
	h.text(call.Method)
	h.list(call.Texts)
	h.flag(call.Wrote.Load())
	a, err := c.ask(ctx, "/call", h, call.Body)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	defer a.close()
	if a.flag() {
		call.Wrote.Store(true)
	}
	failure, hold, texts := a.failure(), a.count(maxBody), a.list()
	switch {
	case a.end() != nil:
		return lifecycle.Answer{}, errAnswer
	case failure != nil:
		return lifecycle.Answer{}, failure
	}
	if hold > 0 {
		if err := call.Hold(hold); err != nil {
			return lifecycle.Answer{}, err
		}
	}
	body, err := a.whole()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return lifecycle.Answer{Texts: texts, Body: body}, err
}

// Enqueue implements bindings.Queues.
func (c *Client) Enqueue(ctx context.Context, owner, worker string, tasks []bindings.Message) error {
	h := newHead()
	h.text(owner)
	h.text(worker)
	h.number(uint64(len(tasks)))
	var body []byte
	for _, t := range tasks {
		h.number(uint64(len(t.Body)))
		h.text(t.ContentType)
		h.list(t.Headers)
		if len(tasks) == 1 {
			body = t.Body
		} else {
			body = append(body, t.Body...)
		}
	}
	a, err := c.ask(ctx, "/enqueue", h, body)
	if err == nil {
		a.close()
	}
	return err
}

// Part returns what reads the parts of the body of the event of an attempt: the Read of its events.Parts. id is the
// number that the broker gave the attempt.
func (c *Client) Part(id uint64) func(ctx context.Context, i int) ([]byte, error) {
	return func(ctx context.Context, i int) ([]byte, error) {
		h := newHead()
		h.number(id)
		h.number(uint64(i))
		a, err := c.ask(ctx, "/part", h, nil)
		if err != nil {
			return nil, err
		}
		defer a.close()
		part, err := a.whole()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return part, err
	}
}
