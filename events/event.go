package events

import (
	"strings"
	"time"
)

// Event is one decoded message of the event stream, or a direct event. Its holder owns it. Body and header values never
// change after Decode.
type Event struct {
	Kind   Kind
	Owner  string
	Worker string

	ID      string // from the publisher: header Event-Id, else Nats-Msg-Id, else the stream sequence
	Version string // the version or alias the publisher asked for; "" = an active one
	// BySplit: Version is what the split gave to the event before it was submitted. Its publisher named none.
	BySplit bool
	// VersionKey chooses the version in a split; "" = ID does.
	VersionKey string
	ReplyTo    string    // where the reply goes; "" = no requester waits
	Deadline   time.Time // after it no requester waits; zero = none. By the clock of the process that has the event
	Stored     time.Time // when the stream stored it

	Header Header // as sent
	Body   []byte

	Method      string   // fetch
	URL         string   // fetch: absolute
	HTTPHeaders []string // fetch: name, value, name, value …
	Upgrade     bool     // fetch: the client wants a WebSocket, and its connection can become one

	ScheduledTime int64  // scheduled: milliseconds since the epoch
	Cron          string // scheduled

	// Attempt is the number of the next run, 1 for the first. It counts started runs, not deliveries.
	Attempt int
	// Crashes is the number of earlier runs that ended with the process they ran in. The first of them is not certain:
	// the event may only have waited in that process.
	Crashes int
	// CrashedAlone: it is the reason of these crashes, because it ran alone in a process that died.
	CrashedAlone bool
	// Spared is the number of earlier runs that ended because somebody killed their process. They do not count in
	// maxAttempts.
	Spared int
	// Watched: a record says that the event runs, or will soon.
	Watched bool
	// Parked: the event was parked and comes from there. Later events wait behind it.
	Parked bool
	// Asked: its last run ended because the handler asked for another one. It may run in a batch again. Other events that
	// failed run alone.
	Asked bool
	// Interrupted is the number of its runs in this process that ended because another event ended their isolate.
	Interrupted int

	Origin Origin
	// First is where the event was stored first, if that is not Origin: it was parked or delayed since.
	First Stored
	// Key names the event in the stream of schedules; "" = it was never there.
	Key string
	// DeliverAt is when the event is to run, as its publisher wants; zero = now. It is later than Stored.
	DeliverAt time.Time

	// Parts is not nil when the body was stored apart, and Body is empty.
	Parts *Parts

	// Requester is not nil when a requester waits and takes the reply's body in chunks.
	Requester *Requester

	// Caller is not nil for a direct event. It has no Origin.
	Caller Caller

	// Service is not nil when another worker of the owner called this one. The event is a direct one.
	Service *ServiceCall

	// Halt is not nil when something may end the run early: it fires then.
	Halt *Signal

	// Trace is not nil when spans are kept of the event: it is what those of its attempts are children of.
	Trace *TraceContext

	// Held is consumer's own note on the event. No other room reads or writes it.
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

// UserHeaders calls yield for each header of the event that its handler may see: all but those that steer NATS, and
// Reply-To, which only Pinwheel needs.
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

// Caller takes the reply to a direct event: one that did not come from the stream, for example an HTTP request. Nothing
// of a direct event is stored. It runs at most once, and when it fails its reply says so. Any goroutine may call the
// methods. They must not block.
type Caller interface {
	// Reply takes the reply. It is called at most once.
	Reply(r *Reply)
	// End says that nothing of the event runs any more. It is called once, after Reply.
	End()
}

// Direct reports whether the event is a direct one.
func (e *Event) Direct() bool { return e.Caller != nil }

// Waits reports whether somebody waits for the reply.
func (e *Event) Waits() bool { return e.ReplyTo != "" || e.Caller != nil }
