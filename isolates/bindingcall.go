package isolates

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// callBinding begins a call of a method of a binding. It waits in its goroutine while the run has as many calls of that
// kind under way as it may.
func (r *run) callBinding(t *thread, in *v8x.Commands) {
	n := in.Left() + sendBytes
	c := r.register(in.Number())
	if r.session == nil {
		r.session = &bindings.Session{}
	}
	call, slots, err := r.session.Begin(in, r.attempt.Worker)
	keeps, stored := in.Bool(), in.Number() // the answer's body stays in Go; what Go keeps is the body of the call, or -1
	if err == nil && call.Binding.Kind == workers.BindingService {
		r.callService(t, c, call, n)
		return
	}
	held, err := r.holdCall(t.pool, call, n, stored, err)
	if err != nil {
		t.answer(r, c, true, called(c, lifecycle.Answer{}, err))
		return
	}
	n = held
	call.Hold = func(more int) error {
		err := t.pool.hold(r, more)
		if err == nil {
			n += more
		}
		return err
	}
	span := r.attempt.Begin(operationOf(call))
	if span != nil {
		call.Trace = new(span.Context())
	}
	ctx, cancel := context.WithCancel(r.callContext())
	c.cancel = cancel
	go func() {
		defer cancel()
		var answer lifecycle.Answer
		var err error
		release := func() {}
		select {
		case slots <- struct{}{}:
			release = func() { <-slots }
			answer, err = t.pool.host.Call(ctx, call)
		case <-ctx.Done():
			err = ctx.Err()
		}
		lifecycle.EndSpan(span, err)
		// In one queued call: each may wake the thread.
		t.postTo(r, func(t *thread) {
			defer func() { // also if the turn goes away
				t.pool.drop(r, n) // the answer counts as held until JavaScript has it, and so does its slot
				release()
			}()
			c.give(t, r, true, func(into *v8x.Call) []byte {
				if err == nil && keeps && r.mayKeep(len(answer.Body)) {
					n -= r.keepAnswer(into, c, answer)
					return nil
				}
				return called(c, answer, err)(into)
			})
		})
	}()
}

// operationOf is what a span says about a call.
func operationOf(call *lifecycle.Call) lifecycle.Operation {
	return lifecycle.Operation{
		Kind:    lifecycle.BindingCall,
		Binding: call.Binding.Kind,
		Method:  call.Method,
		Target:  call.Binding.Name,
		Size:    len(call.Body),
	}
}

// holdCall charges n bytes for a call, and gives it the body that Go keeps, if it names one. It returns what is charged
// in all. A call that has failed already takes that body too: nothing else will.
func (r *run) holdCall(p *Pool, call *lifecycle.Call, n int, stored float64, failed error) (held int, err error) {
	given, ok := r.take(stored)
	switch {
	case failed != nil:
		err = failed
	case !ok && stored >= 0:
		err = errNoSource
	default:
		err = p.hold(r, n)
	}
	if err != nil {
		p.drop(r, given.held)
		return 0, err
	}
	if ok {
		call.Body = given.data
	}
	return n + given.held, nil
}

// keepAnswer keeps the body of an answer, and tells JavaScript its size in place of its bytes. It returns how many of
// the bytes that are charged for the call now belong to the body.
func (r *run) keepAnswer(into *v8x.Call, c *call, answer lifecycle.Answer) (held int) {
	size := len(answer.Body) // Hold has charged it
	r.keep(c.id, value{answer.Body, size})
	into.Reset(opCalled).Number(c.id).Null().Strings(answer.Texts).Number(float64(size))
	return size
}

// called is the answer to a call of a binding.
func called(c *call, answer lifecycle.Answer, err error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(opCalled).Number(c.id)
		if err != nil {
			call.String(err.Error())
			return nil
		}
		call.Null().Strings(answer.Texts).Body()
		return answer.Body
	}
}

// A run calls another worker of its owner, or an export of its own. While it waits it takes no slot of the thread, so
// that what it calls finds one: dispatch counts in the same way (placer.lend in dispatch).

var errNoServices = errors.New("services cannot be called here: a handler calls them, not a module while it is loaded")

// errNoMethod refuses a call that would be a request: the response of one is bytes of the worker, and V8 would read
// them as a serialized value.
var errNoMethod = errors.New("the name of a method is empty")

// beginService counts a call of a service, unless it is refused. method is "" for a request. serviceOver follows. size
// is what the event of the call holds. The run is charged for it until the event ends, which may be after the run.
func (r *run) beginService(t *thread, name, method string, size int) (*lifecycle.ServiceCall, lifecycle.Span, error) {
	w := r.attempt.Worker
	target, own, ok := bindings.Service(w, name)
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("the worker has no service %q", name)
	case t.pool.cfg.Services == nil:
		return nil, nil, errNoServices
	}
	var from *events.ServiceCall
	if e := r.attempt.Event; e != nil {
		from = e.Service
	}
	if r.services.tree == nil {
		r.services.tree = &events.ServiceTree{}
	}
	if err := t.pool.hold(r, size); err != nil {
		return nil, nil, err
	}
	call, err := r.services.tree.Begin(from, w.Name, target, method)
	if err != nil {
		t.pool.drop(r, size)
		return nil, nil, err
	}
	c := &lifecycle.ServiceCall{ServiceCall: call, From: r.attempt, Worker: target.Worker, Deadline: r.wall,
		Ended: func() { t.pool.drop(r, size) }}
	if own {
		c.Version = w.Version
	}
	span := r.attempt.Begin(lifecycle.Operation{Kind: lifecycle.ServiceUse, Binding: workers.BindingService,
		Method: method,
		Target: name, To: target.Worker})
	if span != nil {
		c.Trace = new(span.Context())
	}
	t.pool.source.Calling(r.attempt, true)
	t.inbox.asked.Store(true)
	if r.services.calling++; r.services.calling == 1 && !r.betweenEvents { // it has no slot
		t.callers++
	}
	return c, span, nil
}

// services are the calls of a run to other workers.
type services struct {
	calling int                 // under way
	tree    *events.ServiceTree // of these calls, unless the run was called itself; nil until the first
}

// serviceOver says that the run no longer waits for a call. On the thread.
func (r *run) serviceOver(t *thread) {
	if r.over { // it is not counted any more
		return
	}
	t.pool.source.Calling(r.attempt, false)
	if r.services.calling--; r.services.calling == 0 && !r.betweenEvents {
		t.callers--
	}
}

// fetchService begins a request to a service. Nothing waits for a short response, so that takes no goroutine.
func (r *run) fetchService(ctx context.Context, to response, q egress.Request, name string, size int,
	over func(error)) error {
	local, err := egress.NewLocal(ctx, q, to)
	if err != nil {
		return err
	}
	s, span, err := r.beginService(to.t, name, "", size)
	if err != nil {
		return err
	}
	to.c.span = span
	to.c.ended = r.serviceOver
	x := to.t.pool.cfg.Services.Fetch(local.Request, q.Body, s)
	unwatch := context.AfterFunc(ctx, func() {
		if x.Cancel() {
			local.Close()
			over(ctx.Err())
		}
	})
	x.Start(func(short bool, write func(http.ResponseWriter) error) {
		unwatch()
		pass := func() { over(local.Respond(write)) }
		if short {
			pass()
		} else {
			go pass() // it waits for its reader; it ends with ctx
		}
	})
	return nil
}

// callService begins a call of a method of a service. size is what the call holds.
func (r *run) callService(t *thread, c *call, what *lifecycle.Call, size int) {
	var s *lifecycle.ServiceCall
	var span lifecycle.Span
	err := errNoMethod
	if what.Method != "" {
		s, span, err = r.beginService(t, what.Binding.Name, what.Method, size)
	}
	if err != nil {
		t.answer(r, c, true, called(c, lifecycle.Answer{}, err))
		return
	}
	// The call may be over before Call returns.
	gone := t.pool.cfg.Services.Call(s, what.Body, func(result []byte, err error) {
		lifecycle.EndSpan(span, err)
		if err == nil {
			err = t.pool.hold(r, len(result))
		}
		if err != nil {
			result = nil
		}
		t.postTo(r, func(t *thread) {
			r.serviceOver(t)                  // first: give may not return
			defer t.pool.drop(r, len(result)) // also if the turn goes away
			c.give(t, r, true, called(c, lifecycle.Answer{Body: result}, err))
		})
	})
	if c.gone = gone; span != nil {
		c.gone = func() {
			span.End(errCallerEnded)
			gone()
		}
	}
}

// errCallerEnded is how a call ends for which its caller did not wait.
var errCallerEnded = errors.New("the caller ended before the call")

// waitsForItself reports whether a call finds no room, and all runs of its owner on the thread wait for calls too: then
// none of them makes room.
func waitsForItself(t *thread, a *lifecycle.Attempt) bool {
	if a.Event == nil || a.Event.Service == nil {
		return false
	}
	for r := range t.running {
		if r.attempt.Worker.Owner == a.Worker.Owner && r.services.calling == 0 && r.attempt != a {
			return false
		}
	}
	return true
}
