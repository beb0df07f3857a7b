package hostcalls

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
)

// A run calls another worker of its owner, or an export of its own. While it waits it takes no slot of the thread, so
// that what it calls finds one: dispatch counts in the same way (placer.lend in dispatch).

var errNoServices = errors.New("services cannot be called here: a handler calls them, not a module while it is loaded")

// errNoMethod refuses a call that would be a request: the response of one is bytes of the worker, and V8 would read
// them as a serialized value.
var errNoMethod = errors.New("the name of a method is empty")

// beginService counts a call of a service, unless it is refused. method is "" for a request. serviceOver follows. size
// is what the event of the call holds. The run is charged for it until the event ends, which may be after the run.
func (r *Calls) beginService(name, method string, size int) (*lifecycle.ServiceCall, lifecycle.Span, error) {
	w := r.run.Attempt().Worker
	target, own, ok := bindings.Service(w, name)
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("the worker has no service %q", name)
	case r.process.Services == nil:
		return nil, nil, errNoServices
	}
	var from *events.ServiceCall
	if e := r.run.Attempt().Event; e != nil {
		from = e.Service
	}
	if r.services.tree == nil {
		r.services.tree = &events.ServiceTree{}
	}
	if err := r.run.Hold(size); err != nil {
		return nil, nil, err
	}
	call, err := r.services.tree.Begin(from, w.Name, target, method)
	if err != nil {
		r.run.Drop(size)
		return nil, nil, err
	}
	c := &lifecycle.ServiceCall{ServiceCall: call, From: r.run.Attempt(), Worker: target.Worker,
		Deadline: r.run.Deadline(), Ended: func() { r.run.Drop(size) }}
	if own {
		c.Version = w.Version
	}
	span := r.run.Attempt().Begin(lifecycle.Operation{Kind: lifecycle.ServiceUse, Binding: workers.BindingService,
		Method: method, Target: name, To: target.Worker})
	if span != nil {
		c.Trace = new(span.Context())
	}
	r.services.calling++
	r.run.Calling(true, r.services.calling == 1)
	return c, span, nil
}

// services are the calls of a run to other workers.
type services struct {
	calling int                 // under way
	tree    *events.ServiceTree // of these calls, unless the run was called itself; nil until the first
}

// serviceOver says that the run no longer waits for a call. On the thread.
func (r *Calls) serviceOver() {
	if r.over { // it is no longer counted
		return
	}
	r.services.calling--
	r.run.Calling(false, r.services.calling == 0)
}

// fetchService begins a request to a service. Nothing waits for a short response, so that takes no goroutine.
func (r *Calls) fetchService(ctx context.Context, to response, q egress.Request, name string, size int,
	over func(error)) error {
	q.Bare = true
	local, err := egress.NewLocal(ctx, q, to)
	if err != nil {
		return err
	}
	s, span, err := r.beginService(name, "", size)
	if err != nil {
		return err
	}
	s.CF, to.c.span = to.c.cf, span
	to.c.ended = r.serviceOver
	x := to.r.process.Services.Fetch(local.Request, q.Body, s)
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
func (r *Calls) callService(c *call, what *lifecycle.Call, size int) {
	var s *lifecycle.ServiceCall
	var span lifecycle.Span
	err := errNoMethod
	if what.Method != "" {
		s, span, err = r.beginService(what.Binding.Name, what.Method, size)
	}
	if err != nil {
		r.answer(c, true, called(c, lifecycle.Answer{}, err))
		return
	}
	// The call may be over before Call returns.
	gone := r.process.Services.Call(s, what.Body, func(result []byte, err error) {
		lifecycle.EndSpan(span, err)
		if err == nil {
			err = r.run.Hold(len(result))
		}
		if err != nil {
			result = nil
		}
		r.run.Later(func() {
			r.serviceOver()               // first: give may not return
			defer r.run.Drop(len(result)) // also if the turn goes away
			c.deliver(r, true, called(c, lifecycle.Answer{Body: result}, err))
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
