package bindings

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Caller carries out calls of bindings. Call is called from a goroutine of its own, and ctx ends with the run. Its
// error becomes an exception in JavaScript: an Error with its text.
type Caller interface {
	Call(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error)
}

// Session is what a run has called so far. The zero Session is ready to use. It is for the thread of the run.
type Session struct {
	made  map[workers.BindingKind]int
	slots map[workers.BindingKind]chan struct{}
	wrote atomic.Bool
}

// Begin reads a call of a run from the commands of a turn, and counts it, unless it is one of a service. The channel
// bounds how many calls of its kind are under way: a call sends to it before it begins, and receives from it when it is
// over. The error says that the worker has no such binding with methods, or that the run has used its budget.
func (s *Session) Begin(in *v8x.Commands, from *lifecycle.Attempt) (c *lifecycle.Call, slots chan struct{}, err error) {
	w := from.Worker
	kind, name := workers.BindingKind(in.Text()), in.Text()
	c = &lifecycle.Call{Owner: w.Owner, From: from, Method: in.Text(), Texts: in.Strings(), Body: slices.Clone(in.View()),
		Wrote: &s.wrote}
	if kind == workers.BindingService { // Service says whether there is one, and events.ServiceTree bounds the calls
		c.Binding = workers.Binding{Kind: kind, Name: name}
		return c, nil, nil
	}
	budget := kind.Budget()
	b, ok := w.Find(kind, name)
	if kind == workers.BindingCache {
		b, ok = workers.Binding{Kind: kind}, true
	}
	if budget.Calls == 0 || !ok {
		return nil, nil, fmt.Errorf("the worker has no binding %q of kind %q", name, kind)
	}
	c.Binding = b
	if s.made == nil {
		s.made, s.slots = map[workers.BindingKind]int{}, map[workers.BindingKind]chan struct{}{}
	}
	if s.made[kind] >= budget.Calls {
		return nil, nil, fmt.Errorf("too many calls of %s bindings: at most %d per event", kind, budget.Calls)
	}
	s.made[kind]++
	if s.slots[kind] == nil {
		s.slots[kind] = make(chan struct{}, budget.AtOnce)
	}
	return c, s.slots[kind], nil
}
