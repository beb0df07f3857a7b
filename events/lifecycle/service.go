package lifecycle

import (
	"net/http"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Thrown is the error of a service call whose handler threw: what it threw, as a text that begins with the name of the
// error.
type Thrown string

// Error is that text.
func (t Thrown) Error() string { return string(t) }

// FailureOf is the error for the caller of an event that failed.
func FailureOf(f *events.Failure) error {
	if f.Reason == events.ReasonException {
		return Thrown(f.Message)
	}
	return f
}

// ServiceCall is a call of a worker by another one of its owner, before it is an event.
type ServiceCall struct {
	*events.ServiceCall
	From    *Attempt // the caller
	Worker  string   // that answers
	Version string   // of it; "" = an active one
	// Deadline is the end of the caller's run.
	Deadline time.Time
	Trace    *events.TraceContext // of the event; nil = no spans are kept of it
	// Ended gives back the memory of the event, which is charged to the caller's run.
	Ended func()
}

// End says that nothing of the call runs any more. It is called once, by any goroutine.
func (c *ServiceCall) End() {
	c.ServiceCall.End()
	c.Ended()
}

// MaxShort is the longest body of a short response of a service, bytes: no more than egress passes without waiting
// (chunkBytes in isolates/egress).
const MaxShort = 64 << 10

// ServiceRequest is a request to another worker.
type ServiceRequest interface {
	// Start has the worker answer. A thread may call it, and it does not block. answer gets what writes the response, from
	// any goroutine, and must not block. short says that the response does not stream, and has a body of at most
	// MaxShort bytes. Errors of write are in words for the author of the caller.
	Start(answer func(short bool, write func(http.ResponseWriter) error))
	// Cancel says that the caller no longer waits. It returns false when answer was called, or is about to be. Otherwise
	// answer is not called.
	Cancel() bool
}
