package schedule

import (
	"maps"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// admitted are the events that may wait and are not stored yet, however many come at once. Each counts for its owner
// until it is stored, or ends without that.
type admitted struct {
	events map[*lifecycle.Delivery]admission
	owners map[string]size
	bytes  int // of all
}

// admission is one of these events.
type admission struct {
	owner string
	bytes int
	held  func() bool // reports whether the process still holds the event
}

// size is what some events of an owner amount to.
type size struct{ events, bytes int }

func (a *admitted) add(e *lifecycle.Delivery, held func() bool) {
	if a.events == nil {
		a.events, a.owners = make(map[*lifecycle.Delivery]admission), make(map[string]size)
	}
	a.remove(e)
	n := len(e.Body) + jsapi.HeaderSize(nats.Header(e.Header))
	a.events[e] = admission{e.Owner, n, held}
	of := a.owners[e.Owner]
	a.owners[e.Owner] = size{of.events + 1, of.bytes + n}
	a.bytes += n
}

func (a *admitted) remove(e *lifecycle.Delivery) {
	x, ok := a.events[e]
	if !ok {
		return
	}
	delete(a.events, e)
	a.bytes -= x.bytes
	of := a.owners[x.owner]
	if of = (size{of.events - 1, of.bytes - x.bytes}); of.events == 0 {
		delete(a.owners, x.owner)
		return
	}
	a.owners[x.owner] = of
}

// sweep removes the events that the process has lost.
func (a *admitted) sweep() {
	for e, x := range maps.All(a.events) {
		if !x.held() {
			a.remove(e)
		}
	}
}
