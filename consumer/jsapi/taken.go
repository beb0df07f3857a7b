package jsapi

import (
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Taken finds whose event has the message id of an event of owner. JetStream has answered that event's publish with
// Duplicate and seq. Ids count for the whole stream, and publishers choose them, so the event of that id may be one of
// another owner. Taken calls done on the loop with that owner; "" = it is an event of owner, or it has ended.
func (c *Client) Taken(s events.Subjects, owner string, seq uint64, done func(by string, err error)) {
	c.Get(events.StreamEvents, stored.Request{Seq: seq}, func(m *stored.Message, err error) {
		by := ""
		if m != nil {
			if _, _, of, _, ok := s.ParseStored(m.Subject); !ok || of != owner {
				by = of
			}
		}
		done(by, err)
	})
}
