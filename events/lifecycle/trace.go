package lifecycle

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Trace notes what a sampled attempt does beside its JavaScript. Any goroutine may use it.
type Trace interface {
	// Context is the span of the attempt.
	Context() events.TraceContext
	// Begin begins a span below it. It returns nil when the attempt has as many as are kept.
	Begin(op Operation) Span
	// Record keeps a span of an operation that is over. Another process has made it.
	Record(op Operation, was Past)
}

// Past is an operation that is over.
type Past struct {
	ID           [8]byte // of its span
	Began, Ended time.Time
	Status       int    `json:",omitempty"` // of an HTTP response; 0 = none
	Error        string `json:",omitempty"` // "" = it succeeded
}

// Span is an operation under way. Any goroutine may use it.
type Span interface {
	// Context is what spans below it, in this process or behind a message, are children of.
	Context() events.TraceContext
	// Status notes the status of an HTTP response.
	Status(status int)
	// End ends the span. Calls after the first do nothing. err is nil when the operation succeeded.
	End(err error)
}

// Operation is something that a handler has done for it. JavaScript wrote the texts, unless a comment says otherwise.
type Operation struct {
	Kind    OperationKind
	Method  string              // of the request or the call
	Target  string              // Subrequest: the URL. Others: the name of the binding, which the worker has
	Binding workers.BindingKind // of a ServiceUse or a BindingCall
	// To is the worker that is called or sent to; the fleet has checked it. "" = none.
	To    string
	Count int // Send: how many messages
	Size  int // bytes of the body, or of all bodies
}

// OperationKind says what an Operation is.
type OperationKind uint8

// The kinds of operations.
const (
	Subrequest  OperationKind = iota // fetch() of a server
	FileRequest                      // fetch() of a binding of files
	ServiceUse                       // a request to a service, or a call of its method
	BindingCall                      // a call of a method of another binding
	SendTasks                        // send() or sendBatch() of a queue
)

// Begin begins a span for an operation of a, if a is sampled. The result may be nil; see EndSpan.
func (a *Attempt) Begin(op Operation) Span {
	if a == nil || a.Trace == nil {
		return nil
	}
	return a.Trace.Begin(op)
}

// EndSpan ends a span that may be nil.
func EndSpan(s Span, err error) {
	if s != nil {
		s.End(err)
	}
}
