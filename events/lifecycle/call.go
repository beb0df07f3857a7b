package lifecycle

import (
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Call is a call of a method of a binding in env.
type Call struct {
	Owner   string
	From    *Attempt        // the run that calls
	Binding workers.Binding // of the worker that runs: JavaScript named it, and the worker has it
	Method  string
	// Texts and Body are the arguments. JavaScript wrote them.
	Texts []string
	Body  []byte
	// Wrote says whether a call of the same run has changed data. All calls of a run share it.
	Wrote *atomic.Bool
	// Hold charges n bytes, in addition to the arguments, to the run that waits for the answer. It returns an error when
	// the run or its owner has no room for them. They are given back when JavaScript has the answer. It is for the
	// goroutine that carries out the call.
	Hold func(n int) error
	// Trace is the span of the call; nil = none is kept.
	Trace *events.TraceContext
}

// Answer is what a call of a binding returns. The JavaScript of the binding's kind knows what its parts are.
type Answer struct {
	Texts []string
	Body  []byte
}
