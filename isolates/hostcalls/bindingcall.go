package hostcalls

import (
	"context"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// callBinding begins a call of a method of a binding. It waits in its goroutine while the run has as many calls of that
// kind under way as it may.
func (r *Calls) callBinding(in *v8x.Commands) {
	n := in.Left() + sendBytes
	c := r.register(in.Number())
	if r.session == nil {
		r.session = &bindings.Session{}
	}
	call, slots, err := r.session.Begin(in, r.run.Attempt())
	keeps, stored := in.Bool(), in.Number() // the answer's body stays in Go; what Go keeps is the body of the call, or -1
	if err == nil && call.Binding.Kind == workers.BindingService {
		r.callService(c, call, n)
		return
	}
	held, err := r.holdCall(call, n, stored, err)
	if err != nil {
		r.answer(c, true, called(c, lifecycle.Answer{}, err))
		return
	}
	n = held
	call.Hold = func(more int) error {
		err := r.run.Hold(more)
		if err == nil {
			n += more
		}
		return err
	}
	span := r.run.Attempt().Begin(operationOf(call))
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
			answer, err = r.process.Host.Call(ctx, call)
		case <-ctx.Done():
			err = ctx.Err()
		}
		lifecycle.EndSpan(span, err)
		// In one queued call: each may wake the thread.
		r.run.Later(func() {
			defer func() { // also if the turn goes away
				r.run.Drop(n) // the answer counts as held until JavaScript has it, and so does its slot
				release()
			}()
			c.deliver(r, true, func(into *v8x.Call) []byte {
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
func (r *Calls) holdCall(call *lifecycle.Call, n int, stored float64, failed error) (held int, err error) {
	given, ok := r.take(stored)
	switch {
	case failed != nil:
		err = failed
	case !ok && stored >= 0:
		err = errNoSource
	default:
		err = r.run.Hold(n)
	}
	if err != nil {
		r.run.Drop(given.held)
		return 0, err
	}
	if ok {
		call.Body = given.data
	}
	return n + given.held, nil
}

// keepAnswer keeps the body of an answer, and tells JavaScript its size in place of its bytes. It returns how many of
// the bytes that are charged for the call now belong to the body.
func (r *Calls) keepAnswer(into *v8x.Call, c *call, answer lifecycle.Answer) (held int) {
	size := len(answer.Body) // Hold has charged it
	r.keep(c.id, value{answer.Body, size})
	into.Reset(js.OpCalled).Number(c.id).Null().Strings(answer.Texts).Number(float64(size))
	return size
}

// called is the answer to a call of a binding.
func called(c *call, answer lifecycle.Answer, err error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(js.OpCalled).Number(c.id)
		if err != nil {
			call.String(err.Error())
			return nil
		}
		call.Null().Strings(answer.Texts).Body()
		return answer.Body
	}
}
