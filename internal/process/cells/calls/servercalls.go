package calls

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// call carries out a call of a binding. The worker has the binding, and what it names is the broker's.
func (s *Server) call(x *exchange) error {
	from, over, err := s.caller(x)
	if err != nil {
		return err
	}
	kind, name := workers.BindingKind(x.text()), x.text()
	c := &lifecycle.Call{From: from.Attempt, Method: x.text(), Texts: x.list(), Body: x.body, Wrote: &atomic.Bool{}}
	c.Wrote.Store(x.flag())
	if err := x.done(); err != nil {
		return err
	}
	if over != nil {
		return x.reply(over, nil, nil)
	}
	var ok bool
	c.Owner = from.Worker.Owner
	if c.Binding, ok = from.Worker.Find(kind, name); kind == workers.BindingCache {
		c.Binding, ok = workers.Binding{Kind: kind}, true
	}
	if !ok || kind == workers.BindingService || kind.Budget().Calls == 0 {
		return lie("%s has no binding %.80q of kind %.20q with methods", from.Worker.Target(), name, kind)
	}
	hold := 0
	c.Hold = func(n int) error {
		err := x.answer.take(x.r.Context(), n)
		if err == nil {
			hold += n
		}
		return err
	}
	span := from.Begin(lifecycle.Operation{Kind: lifecycle.BindingCall, Binding: kind, Method: c.Method, Target: name,
		Size: len(c.Body)})
	if span != nil {
		c.Trace = new(span.Context())
	}
	answer, err := s.cfg.Host.Call(x.r.Context(), c)
	lifecycle.EndSpan(span, err)
	var h head
	h.flag(c.Wrote.Load())
	h.failure(err)
	h.number(uint64(hold))
	h.list(answer.Texts)
	return x.reply(nil, h, answer.Body)
}

// enqueue stores tasks for a worker of an owner.
func (s *Server) enqueue(x *exchange) error {
	owner, worker, n := x.text(), x.text(), x.count(maxHead)
	body := x.body
	var tasks []bindings.Message
	for ; n > 0 && x.err == nil; n-- {
		size := x.count(len(body))
		tasks = append(tasks, bindings.Message{Body: body[:size:size], ContentType: x.text(), Headers: x.list()})
		body = body[size:]
	}
	if err := x.done(); err != nil {
		return err
	}
	switch wrong := events.CheckName("worker", worker); {
	case len(body) > 0 || len(tasks) == 0:
		return lie("the sizes of %d tasks are wrong", len(tasks))
	case wrong != nil:
		return lie("%v", wrong)
	case !s.cfg.Given.Owner(owner):
		return lie("the cell was given no worker of %.80q", owner)
	}
	return x.reply(s.cfg.Host.Enqueue(x.r.Context(), owner, worker, tasks), nil, nil)
}

// part reads a part of the body of an attempt's event. One at a time is read.
func (s *Server) part(x *exchange) error {
	from, over, err := s.caller(x)
	if err != nil {
		return err
	}
	i := x.count(1 << 40)
	if err := x.done(); err != nil {
		return err
	}
	if over != nil {
		return x.reply(over, nil, nil)
	}
	if from.Event == nil || from.Event.Parts == nil || !from.Event.Parts.Live && i >= from.Event.Parts.N {
		return lie("the body of the event has no part %d", i)
	}
	ctx, parts := x.r.Context(), from.Event.Parts
	select {
	case from.shared.reading <- struct{}{}:
		defer func() { <-from.shared.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	data, err := parts.Read(ctx, i)
	if err == nil {
		err = x.answer.take(ctx, len(data))
	}
	if err != nil {
		return x.reply(err, nil, nil)
	}
	if err = x.reply(nil, nil, data); err == nil && parts.Free != nil { // otherwise a frame may still have it
		parts.Free(data)
	}
	return err
}

// isEnd reports whether a stream of the cell ended where it may end.
func isEnd(err error) bool { return err == nil || errors.Is(err, io.EOF) }

// isLast reports whether io.ReadFull came to the end of what it read.
func isLast(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
