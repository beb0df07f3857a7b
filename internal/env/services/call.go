package services

import (
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// methodCall is the caller of an event that calls a method.
type methodCall struct {
	results  *results
	call     *lifecycle.ServiceCall
	answer   func(result []byte, err error)
	answered atomic.Bool
}

// Call implements bindings.Services.
func (s *Services) Call(c *lifecycle.ServiceCall, args []byte, answer func(result []byte, err error)) (cancel func()) {
	e := s.event(c)
	e.Body = args
	e.Requester = &events.Requester{Credit: window}
	m := &methodCall{results: &s.methods, call: c, answer: answer}
	s.submit(e, m)
	return func() {
		if m.answered.CompareAndSwap(false, true) {
			m.results.cancelled.Inc()
			e.Requester.Gone()
		}
	}
}

// Reply implements events.Caller.
func (m *methodCall) Reply(r *events.Reply) {
	if !m.answered.CompareAndSwap(false, true) {
		return
	}
	if m.results.count(r.Failure != nil); r.Failure != nil {
		m.answer(nil, lifecycle.FailureOf(r.Failure))
		return
	}
	if r.Dropped > 0 {
		m.answer(nil, errTooLarge)
		return
	}
	m.answer(r.Body, nil)
}

// End implements events.Caller.
func (m *methodCall) End() { m.call.End() }
