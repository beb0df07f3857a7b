package calls

import (
	"errors"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// betweenPeriod is the period in which what a persistent context does between events may have as many calls of services
// as one event (isolates).
const betweenPeriod = time.Second

// running has what the calls of an attempt share. The zero value is ready to use.
type running struct {
	mu       sync.Mutex
	attempts map[uint64]*attempt
	between  map[*workers.Worker]*attempt
}

// attempt is what the calls of an attempt, or of a worker between events, share.
type attempt struct {
	tree    events.ServiceTree // of the services that it calls, unless it was called itself
	reading chan struct{}      // capacity 1; has an element while a part of the body of its event is read
	since   time.Time          // between events
}

// of returns the attempt with a number. The caller looks afterwards whether the cell has it still: over may have been
// called before.
func (r *running) of(id uint64) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempts[id]
	if a == nil {
		if r.attempts == nil {
			r.attempts = map[uint64]*attempt{}
		}
		a = &attempt{reading: make(chan struct{}, 1)}
		r.attempts[id] = a
	}
	return a
}

func (r *running) over(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, id)
}

// apart returns what the calls of a worker between events share in this period.
func (r *running) apart(w *workers.Worker, now time.Time) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.between[w]
	if a != nil && now.Sub(a.since) < betweenPeriod {
		return a
	}
	for other, old := range r.between {
		if now.Sub(old.since) >= betweenPeriod {
			delete(r.between, other)
		}
	}
	if r.between == nil {
		r.between = map[*workers.Worker]*attempt{}
	}
	a = &attempt{since: now}
	r.between[w] = a
	return a
}

// errOver is the answer to a call of a run whose end was reported. Its handler does not see it.
var errOver = errors.New("the event is over")

// caller is who makes a call.
type caller struct {
	*lifecycle.Attempt
	shared *attempt
}

// caller reads who makes a call: an attempt that the cell has, or a worker that it was given. over says that the
// attempt has ended, and that the call is answered.
func (s *Server) caller(x *exchange) (c caller, over error, err error) {
	id := x.number()
	if id == 0 { // or it is malformed, and so is the worker
		w, err := s.given(x)
		if err != nil {
			return c, nil, err
		}
		return caller{&lifecycle.Attempt{Worker: w}, s.running.apart(w, time.Now())}, nil, nil
	}
	a, was := s.cfg.Given.Attempt(id)
	if a != nil {
		c = caller{a, s.running.of(id)}
		a, was = s.cfg.Given.Attempt(id)
	}
	switch {
	case a != nil:
		return c, nil, nil
	case was:
		s.running.over(id)
		return c, errOver, nil
	}
	return c, nil, lie("the cell has no attempt %d", id)
}
