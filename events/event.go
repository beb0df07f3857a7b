package events

import (
	"strings"
	"time"
)

// Event is one message of the event stream, decoded. It belongs to whoever holds it; Body and
// the header values are never changed after Decode.
type Event struct {
	Kind   Kind
	Owner  string
	Worker string

	ID       string    // the publisher's: header Event-Id, else Nats-Msg-Id, else the stream sequence
	Version  string    // the version the publisher asked for; "" = the active one
	ReplyTo  string    // where the reply goes; "" = nobody waits
	Deadline time.Time // past it nobody waits; zero = none. By the clock of the process that has the event
	Stored   time.Time // when the stream stored it

	Header Header // as sent
	Body   []byte

	Method      string   // fetch
	URL         string   // fetch: absolute
	HTTPHeaders []string // fetch: name, value, name, value …

	ScheduledTime int64  // scheduled: milliseconds since the epoch
	Cron          string // scheduled

	// Attempt is the number of the run that comes next, 1 for the first. It counts started
	// runs, not deliveries.
	Attempt int
	// Crashes is how many of the earlier runs ended with the process they ran in. Of the first of them nobody knows: the
	// event may only have waited there.
	Crashes int
	// CrashedAlone: one of them was while nothing else ran in its process.
	CrashedAlone bool
	// Watched: it is noted that the event runs, or is about to.
	Watched bool
	// Parked: it was set aside, and comes from there. Events that came after it wait behind it.
	Parked bool
	// Interrupted is how many of its runs in this process were cut short by another event, which took their isolate with it.
	Interrupted int

	Origin Origin
	// First is where the event was stored first, if that is not Origin: it was set aside since.
	First Stored
	// Key names the event in the stream of schedules; "" for one that was never there.
	Key string
	// DeliverAt is when the event shall run, as its publisher wants; zero = now. It is later than Stored.
	DeliverAt time.Time

	// Parts is not nil when the body was stored apart, and Body is empty.
	Parts *Parts

	// Requester is not nil when somebody waits who takes the reply's body in chunks.
	Requester *Requester

	// Halt is not nil when the run may have to end before its time: when it fires.
	Halt *Signal

	// Held is consumer's own note on the event. Nobody else reads or writes it.
	Held any
}

// Origin is where in JetStream an event came from, and how to answer for it.
type Origin struct {
	Stream     string
	Consumer   string
	Subject    string // as stored, with the lane
	Seq        uint64 // stream sequence
	Deliveries int    // the server's count, 1 for the first
	AckSubject string // one message there settles the delivery
}

// Stored is a message in JetStream.
type Stored struct {
	Stream string
	Seq    uint64
}

// FirstStored is where the event was stored first: that stays when it is parked or put off.
func (e *Event) FirstStored() Stored {
	if e.First.Stream != "" {
		return e.First
	}
	return Stored{e.Origin.Stream, e.Origin.Seq}
}

// Target is "owner/worker", as people name a worker.
func (e *Event) Target() string { return e.Owner + "/" + e.Worker }

// UserHeaders calls yield for each header of the event that its handler may see: all but those
// that steer NATS, and Reply-To, which is between the publisher and Pinwheel.
func (e *Event) UserHeaders(yield func(name, value string)) {
	for name, values := range e.Header {
		if serverHonoured(name) || strings.EqualFold(name, HeaderReplyTo) || hasPrefixFold(name, deadPrefix) {
			continue
		}
		for _, v := range values {
			yield(name, v)
		}
	}
}
