package lifecycle

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Attempt is one run of an event by one version of its worker, or of a batch of events. A thread gets it.
type Attempt struct {
	Event *Delivery
	// Batch are the events of a run of a queue handler, also when there is only one; Event is the first of them. It is
	// nil for the other handlers.
	Batch  []*Delivery
	Worker *workers.Worker
	Number int       // 1 for the first; of a batch, that of Event
	Start  time.Time // when a thread took it; set by dispatch
	Own    bool      // it gets an isolate of its own, in any mode of the worker
	// Status, Sent and Replied are of the reply that was reported before the end: its status, the bytes of its body that
	// came with it (at most what fits), and how long after Start that was. dispatch sets them.
	Status  uint16
	Sent    uint32
	Replied time.Duration
	// Halt is not nil when the process may lose the right to run the attempt: it fires then.
	Halt *events.Signal
	// Trace is not nil when spans of the attempt are kept. An Observer sets it.
	Trace Trace

	// Slot is for the maker of the attempt only.
	Slot any
}

// Cancelled reports whether somebody cancels its event. A run of several events does not end for one of them.
func (a *Attempt) Cancelled() bool { return a.Event != nil && len(a.Batch) < 2 && a.Event.Cancelled() }

// Report is what a thread reports of an attempt, in one or two parts: Reply when the response is ready, End when
// nothing of the attempt runs any more. Most events have both in one Report. An attempt gets exactly one Report with
// End, and at most one with Reply, never after End.
//
// A Report with Closed is of no attempt: the thread has no context of that version of the worker any more.
type Report struct {
	Attempt *Attempt
	Reply   *events.Reply
	End     *End
	Closed  *workers.Worker
}

// End is how an attempt ended.
type End struct {
	// Failure is nil when the handler succeeded. It is also nil when a Reply was reported before: the event then counts
	// as handled, and waitUntil does not change that.
	Failure *events.Failure
	// Broken is why the body of the reply ended before it was complete, after its head was reported. Nothing else is
	// known of it then: Failure is nil, and the event counts as handled. It is nil when the requester did not wait for the
	// rest.
	Broken *events.Failure
	// Interrupted: the attempt was stopped or did not start, without a fault of its own: the process drains, or another
	// event ended the isolate that they shared. It runs again. Failure is nil.
	Interrupted bool
	// Died: it was interrupted because the process has ended that ran it. It runs again also when a Reply was reported
	// before, as after the end of a process of the fleet: what waitUntil had left did not run.
	Died bool
	// Started is false when no line of the handler ran. Then it does not count as an attempt.
	Started bool
	// NoRetry: the handler called event.noRetry().
	NoRetry bool
	// Retry: the handler called event.retry(): run again although it did not throw.
	Retry bool
	// RetryDelay is the delay in event.retry({delaySeconds}); negative = that of the retry policy.
	RetryDelay time.Duration
	// CPU is the CPU time of the attempt on its thread.
	CPU time.Duration
	// Waited: the attempt waited for something after the first run of its code.
	Waited bool
	// Warm: the attempt ran in a context that had run before.
	Warm bool
	// Items are what the handler decided about each event of a batch, in the order of the batch; nil = nothing.
	Items []Item
	// Lost: its thread is lost with it, because V8 could not continue or did not return. Other attempts that ended with
	// that thread do not have this.
	Lost bool
}

// Cancelled reports whether the attempt was ended because somebody cancelled its event.
func (e *End) Cancelled() bool { return e.Failure != nil && e.Failure.Reason == events.ReasonCancelled }

// NotRun reports whether no attempt was made: the event runs later.
func (e *End) NotRun() bool { return e.Interrupted && !e.Started }

// Item is what a queue handler decided about one event of its batch.
type Item struct {
	Decision Decision
	Delay    time.Duration   // Again: how long to wait; negative = as the retry policy says
	Failure  *events.Failure // Failed: why
}

// Decision is a decision about an event of a batch.
type Decision uint8

// The decisions.
const (
	Undecided Decision = iota // the event ends as the run does
	Acked                     // the event is handled, however the run ends
	Again                     // the event runs again, however the run ends
	Failed                    // the event failed, however the run ends
)

// Of returns how event i of a batch ended. open says that this is how the run ended: nothing was decided about the
// event itself.
func (e *End) Of(i int) (end End, open bool) {
	end = *e
	end.Items = nil
	if i >= len(e.Items) || e.Items[i].Decision == Undecided {
		return end, true
	}
	it := &e.Items[i]
	end.Failure, end.Interrupted, end.Lost = nil, false, false
	switch it.Decision {
	case Again:
		end.Retry, end.RetryDelay = true, it.Delay
	case Failed:
		end.Failure = it.Failure
	case Acked, Undecided:
	}
	return end, false
}
