package jsapi

import (
	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// AsideHeader returns the headers of e as it is parked or delayed. They leave room for so many more bytes, when a
// message has at most maxPayload bytes. If e's own headers leave no room, it loses those that steered NATS, which its
// handler does not see.
func AsideHeader(e *events.Event, runs events.Runs, room int, maxPayload int64) nats.Header {
	h := nats.Header(events.EncodeParked(e, runs))
	if n := HeaderSize(h) + room; n <= MaxStoredHeaders && int64(n+len(e.Body)) < maxPayload-SteeringSize {
		return h
	}
	lean := *e
	lean.Header = e.Header.WithoutSteering()
	return nats.Header(events.EncodeParked(&lean, runs))
}
