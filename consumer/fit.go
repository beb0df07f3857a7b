package consumer

import (
	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// maxStoredHeaders is what JetStream stores of headers, 65535 bytes, less room for those by which it is asked to check before it stores.
	maxStoredHeaders = 1<<16 - 1 - 1<<10
	// steeringSize is room for those in a message.
	steeringSize = 512
)

// headerSize is how many bytes of a message are headers.
func headerSize(h nats.Header) int {
	const line = len("NATS/1.0\r\n")
	n := line + 2
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}

// fits reports whether JetStream takes m, with what is put to its headers to steer it.
func (c *Consumer) fits(m *nats.Msg) bool {
	headers := headerSize(m.Header)
	return headers <= maxStoredHeaders && int64(headers+len(m.Data)) < c.nc.MaxPayload()-steeringSize
}

// asideHeader is the headers under which e waits where it is set aside, with room for so many bytes more. Where its own leave none, it loses those that
// steered NATS, which its handler does not see.
func (c *Consumer) asideHeader(e *events.Event, room int) nats.Header {
	h := nats.Header(events.EncodeParked(e))
	if n := headerSize(h) + room; n <= maxStoredHeaders && int64(n+len(e.Body)) < c.nc.MaxPayload()-steeringSize {
		return h
	}
	lean := *e
	lean.Header = e.Header.WithoutSteering()
	return nats.Header(events.EncodeParked(&lean))
}
