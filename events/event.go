package events

import (
	"strings"
	"time"
)

// Event is one decoded message of the event stream, or a direct event. Its holder owns it. Body and header values never
// change. It has what its publisher and JetStream said of it. What one process knows of it is in lifecycle.Delivery.
type Event struct {
	Kind   Kind
	Owner  string
	Worker string

	ID      string // from the publisher: header Event-Id, else Nats-Msg-Id, else the stream sequence
	Version string // the version or alias the publisher asked for; "" = an active one
	// VersionKey chooses the version in a split; "" = ID does.
	VersionKey string
	ReplyTo    string // where the reply goes; "" = no requester waits
	// Credit is the number of bytes of the reply's body that the requester takes before it grants more; 0 = it does not
	// take the body in chunks.
	Credit   int64
	Deadline time.Time // after it no requester waits; zero = none
	Stored   time.Time // when the stream stored it

	Header Header // as sent
	Body   []byte

	Request // of a fetch event
	Tick    // of a scheduled event

	// Sourced: the fleet took the event from a source, and wrote where from in its headers.
	Sourced bool

	Origin Origin
	// First is where the event was stored first, if that is not Origin: it was parked or delayed since.
	First Stored
	// Key names the event in the stream of schedules; "" = it was never there.
	Key string
	// DeliverAt is when the event is to run, as its publisher wants; zero = now. It is later than Stored.
	DeliverAt time.Time

	// Parts is not nil when the body was stored apart, and Body is empty.
	Parts *Parts
}

// Request is the HTTP request of a fetch event, without its body.
type Request struct {
	Method      string
	URL         string   // absolute
	HTTPHeaders []string // name, value, name, value …
}

// Tick is what a scheduled event says of its schedule.
type Tick struct {
	ScheduledTime int64 // milliseconds since the epoch
	Cron          string
}

// Runs counts the runs of an event. It is kept when the event is parked or delayed.
type Runs struct {
	// Attempt is the number of the next run, 1 for the first. It counts started runs, not deliveries.
	Attempt int
	// Crashes is the number of earlier runs that ended with the process they ran in. The first of them is not certain:
	// the event may only have waited in that process.
	Crashes int
}

// FirstRun is the Runs of an event that has not run.
var FirstRun = Runs{Attempt: 1}

// Origin is where in JetStream an event came from, and how to answer for it.
type Origin struct {
	Stream     string
	Consumer   string
	Subject    string // as stored, with the lane
	Seq        uint64 // stream sequence
	Deliveries int    // the server's count, 1 for the first
	AckSubject string // one message there settles the delivery
	// HeaderBytes is the size of the message's header block, 0 when it has none or when that is not known.
	HeaderBytes int
}

// HeadersLost reports whether the event's message has a header block that nats.go could not read. Header is then nil.
func (e *Event) HeadersLost() bool { return e.Header == nil && e.Origin.HeaderBytes > 0 }

// Stored is a message in JetStream.
type Stored struct {
	Stream string
	Seq    uint64
}

// FirstStored is where the event was stored first. It stays the same when the event is parked or delayed.
func (e *Event) FirstStored() Stored {
	if e.First.Stream != "" {
		return e.First
	}
	return Stored{e.Origin.Stream, e.Origin.Seq}
}

// Target is "owner/worker", as people name a worker.
func (e *Event) Target() string { return e.Owner + "/" + e.Worker }

// UserHeaders calls yield for each header of the event that its handler may see: all but those that steer NATS,
// Reply-To, which only Pinwheel needs, and those of a source that the fleet did not write.
func (e *Event) UserHeaders(yield func(name, value string)) {
	for name, values := range e.Header {
		if serverHonoured(name) || strings.EqualFold(name, HeaderReplyTo) || hasPrefixFold(name, deadPrefix) ||
			!e.Sourced && isSourceHeader(name) {
			continue
		}
		for _, v := range values {
			yield(name, v)
		}
	}
}
