package events

import "time"

// Attempt is one run of an event by one version of its worker: what a thread is given.
type Attempt struct {
	Event  *Event
	Worker *Worker
	Number int       // 1 for the first
	Start  time.Time // when a thread took it; set by dispatch
	Own    bool      // it shall have an isolate to itself, whatever the worker's mode

	// Slot is a note of whoever made the attempt, and theirs alone.
	Slot any
}

// Report is what a thread says of an attempt, in one or two parts: Reply when the response is
// ready, End when nothing of the attempt is left running. Most events have both in one Report.
// An attempt gets exactly one Report with End, and at most one with Reply, never after End.
type Report struct {
	Attempt *Attempt
	Reply   *Reply
	End     *End
}

// End is how an attempt ended.
type End struct {
	// Failure is nil when the handler succeeded. After a Reply was reported the event counts as
	// handled whatever happens in waitUntil, so then it is nil too.
	Failure *Failure
	// Interrupted: the attempt was stopped or never begun through no fault of its own (drain, or
	// another event killed the isolate they shared). It runs again. Failure is nil.
	Interrupted bool
	// Started is false when no line of the handler ran, so that it was no attempt.
	Started bool
	// NoRetry: the handler said event.noRetry().
	NoRetry bool
	// Retry: the handler said event.retry(): run again even though it did not throw.
	Retry bool
	// RetryDelay is the delay asked for by event.retry({delaySeconds}); negative = by policy.
	RetryDelay time.Duration
	// CPU is the CPU time the attempt took on its thread.
	CPU time.Duration
	// Waited: it was not over when its handler had first run, but waited for something.
	Waited bool
	// Warm: it ran in a context that had run before.
	Warm bool
	// Lost: the thread that ran it is lost with it, because V8 could not go on, or did not come back. So it is with no other attempt that ended then.
	Lost bool
}
