package lifecycle

import "github.com/pinwheel-run/pinwheel/events"

// Settlement is what dispatch tells consumer to do about an event: publish Reply if there is one, and then carry out
// the Outcome or the Order. At most one of these two says something. When neither does, the attempt goes on, and only
// its reply was ready early.
//
// Both are values in one struct, so that a batch of settlements is one slice in the order of the decisions, and an
// event costs no allocation here.
type Settlement struct {
	Event   *Delivery
	Reply   *events.Reply
	Outcome Outcome
	Order   Order
	// Brief: the attempt that ended took less of the processor than to set its event aside would, and waited for
	// nothing.
	Brief bool
}

// ReplyOnly reports whether nothing is decided about the event: its attempt goes on.
func (s *Settlement) ReplyOnly() bool { return s.Outcome.Verdict == None && s.Order == NoOrder }

// String is the verdict or the order, as it stands in logs.
func (s *Settlement) String() string {
	if s.Order != NoOrder {
		return s.Order.String()
	}
	return s.Outcome.Verdict.String()
}
