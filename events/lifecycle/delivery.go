package lifecycle

import (
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
)

// Delivery is an Event with what one process knows of it. The room that has it writes it: consumer or gateway before
// dispatch gets it, dispatch until it is settled.
type Delivery struct {
	events.Event // Deadline is by the clock of this process
	events.Runs

	// BySplit: Version is what the split gave to the event before it was submitted. Its publisher named none.
	BySplit bool
	// Upgrade: of a fetch event, the client wants a WebSocket, and its connection can become one.
	Upgrade bool

	// CrashedAlone: it is the reason of its crashes, because it ran alone in a process that died.
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

	began     int64 // see Begins; a plain number, so that deliveries can be copied
	cancelled int32 // see Cancel; 1 = it is

	// Requester is not nil when a requester waits and takes the reply's body in chunks.
	Requester *events.Requester
	// Caller is not nil for a direct event. It has no Origin.
	Caller Caller
	// Service is not nil when another worker of the owner called this one. The event is a direct one.
	Service *events.ServiceCall
	// Halt is not nil when something may end the run early: it fires then.
	Halt *events.Signal
	// Trace is not nil when spans are kept of the event: it is what those of its attempts are children of.
	Trace *events.TraceContext

	// Holder is the record of the room that delivered the event, for that room only; nil for a direct one.
	Holder Holder
}

// Holder is what a room keeps about a Delivery that it made.
type Holder interface {
	// Holds returns that Delivery.
	Holds() *Delivery
}

// Caller takes the reply to a direct event: one that did not come from the stream, for example an HTTP request. Nothing
// of a direct event is stored. It runs at most once, and when it fails its reply says so. Any goroutine may call the
// methods. They must not block.
type Caller interface {
	// Reply takes the reply. It is called at most once.
	Reply(r *events.Reply)
	// End says that nothing of the event runs any more. It is called once, after Reply.
	End()
}

// Begins notes when the attempt in progress began, Unix time in nanoseconds; 0 = none is in progress.
func (d *Delivery) Begins(at int64) { atomic.StoreInt64(&d.began, at) }

// Began is what Begins noted last. Any goroutine may call it.
func (d *Delivery) Began() int64 { return atomic.LoadInt64(&d.began) }

// Cancel notes that somebody cancels the event while it runs. An attempt that has not begun then does not begin.
func (d *Delivery) Cancel() { atomic.StoreInt32(&d.cancelled, 1) }

// Cancelled reports whether Cancel was called. Any goroutine may call it.
func (d *Delivery) Cancelled() bool { return atomic.LoadInt32(&d.cancelled) != 0 }

// Direct reports whether the event is a direct one.
func (d *Delivery) Direct() bool { return d.Caller != nil }

// FailureReply is the reply that reports a failure of the next run.
func (d *Delivery) FailureReply(f *events.Failure) *events.Reply {
	return events.FailureReply(&d.Event, d.Attempt, f)
}

// Waits reports whether somebody waits for the reply.
func (d *Delivery) Waits() bool { return d.ReplyTo != "" || d.Caller != nil }
