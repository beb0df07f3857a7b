package wire

import (
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/limits"
)

// Pool is the configuration of a cell's pool.
type Pool struct {
	Version int // of the protocol
	limits.Pool
	Authorities []byte // certificates whose servers handlers may trust, PEM; nil = those of the system
}

// SentSpan is an operation of an attempt that is over.
type SentSpan struct {
	lifecycle.Operation
	lifecycle.Past
}

// Questions of a broker.
const (
	AskStats = "stats" // isolates.Stats as JSON
	AskIdle  = "idle"  // whether nothing would be lost if the cell ended: a truth value as JSON
)
