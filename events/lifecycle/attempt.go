package lifecycle

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Attempt is one run of an event by one version of its worker. A thread gets it.
type Attempt struct {
	Event  *events.Event
	Worker *events.Worker
	Number int       // 1 for the first
	Start  time.Time // when a thread took it; set by dispatch
	Own    bool      // it gets an isolate of its own, in any mode of the worker
	Status int       // of the reply that was reported before the end; set by dispatch
	// Halt is not nil when the process may lose the right to run the attempt: it fires then.
	Halt *events.Signal

	// Slot is for the maker of the attempt only.
	Slot any
}

// Report is what a thread reports of an attempt, in one or two parts: Reply when the response is ready, End when
// nothing of the attempt runs any more. Most events have both in one Report. An attempt gets exactly one Report with
// End, and at most one with Reply, never after End.
type Report struct {
	Attempt *Attempt
	Reply   *events.Reply
	End     *End
}

// End is how an attempt ended.
type End struct {
	// Failure is nil when the handler succeeded. It is also nil when a Reply was reported before: the event then counts
	// as handled, and waitUntil does not change that.
	Failure *events.Failure
	// Interrupted: the attempt was stopped or did not start, without a fault of its own: the process drains, or another
	// event ended the isolate that they shared. It runs again. Failure is nil.
	Interrupted bool
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
	// Lost: its thread is lost with it, because V8 could not continue or did not return. Other attempts that ended with
	// that thread do not have this.
	Lost bool
}
