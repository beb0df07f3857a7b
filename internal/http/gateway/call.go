package gateway

import "github.com/pinwheel-run/pinwheel/events"

// call waits for the reply to an event. It is its events.Caller.
type call struct {
	reply chan *events.Reply // takes one
	end   chan struct{}      // closed when the event is over
	drop  func()             // gives back the memory of the event's body
}

func newCall(drop func()) *call { return &call{make(chan *events.Reply, 1), make(chan struct{}), drop} }

// Reply implements events.Caller.
func (c *call) Reply(r *events.Reply) {
	select {
	case c.reply <- r:
	default:
	}
}

// End implements events.Caller.
func (c *call) End() {
	c.drop()
	close(c.end)
}
