// Package services carries out service calls: a worker calls another one of its owner by a binding in env.
//
//	isolates (env.NAME.fetch, env.NAME.method) → Services → a direct event → dispatch → isolates → the reply → Services
//
// The event runs in this process, which has every worker. Owner, worker, version and depth come from Go: JavaScript
// names a binding, and what it names was deployed.
package services

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/eventid"
)

// Dispatcher runs the events of calls; *dispatch.Dispatcher is one.
type Dispatcher interface {
	Submit(batch []*lifecycle.Delivery)
}

// Services carries out calls. Any goroutine may use it.
type Services struct {
	dispatcher Dispatcher
	ids        *eventid.Maker

	requests, methods results
}

// results counts calls of one form by how they ended.
type results struct{ ok, failed, cancelled prometheus.Counter }

// count counts a call whose event had a reply; failed says that it is a failure.
func (r *results) count(failed bool) {
	if failed {
		r.failed.Inc()
	} else {
		r.ok.Inc()
	}
}

// New returns Services that run events with d.
func New(d Dispatcher, reg prometheus.Registerer) (*Services, error) {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_service_calls_total",
		Help: "Calls of workers by others of their owner, by form (fetch or method) and result (ok, failed, or cancelled because the caller ended).",
	}, []string{"form", "result"})
	of := func(form string) results {
		return results{calls.WithLabelValues(form, "ok"), calls.WithLabelValues(form, "failed"),
			calls.WithLabelValues(form, "cancelled")}
	}
	return &Services{d, eventid.New("call"), of("fetch"), of("method")}, reg.Register(calls)
}

// event makes the event of a call, without what is called.
func (s *Services) event(c *lifecycle.ServiceCall) *lifecycle.Delivery {
	e := &lifecycle.Delivery{Event: events.Event{Kind: events.Fetch, Owner: c.From.Worker.Owner,
		Worker: c.Worker, Version: c.Version, ID: s.ids.Next(), Stored: time.Now(),
		Deadline: c.Deadline}, Runs: events.Runs{Attempt: 1}, Service: c.ServiceCall, Trace: c.Trace}
	if from := c.From.Event; from != nil { // in a split, all calls of one event get the same version
		if e.VersionKey = from.VersionKey; e.VersionKey == "" {
			e.VersionKey = from.ID
		}
	}
	return e
}

// submit has an event run. caller gets its reply.
func (s *Services) submit(e *lifecycle.Delivery, caller lifecycle.Caller) {
	e.Caller = caller
	s.dispatcher.Submit([]*lifecycle.Delivery{e})
}
