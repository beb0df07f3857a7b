package lifecycle

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Verdict is how an event ended, or its attempt.
type Verdict uint8

// The verdicts. Each event ends with exactly one Ack or Dead. A verdict cannot set an event aside or give it back: that
// is an Order.
const (
	None  Verdict = iota // no verdict: see Settlement
	Ack                  // handled: ack the message
	Dead                 // failed for good: write a dead letter, then ack
	Retry                // failed for now: run again after Outcome.Delay, as the next attempt
)

// String is the verdict as it stands in logs and metrics.
func (v Verdict) String() string { return [...]string{"none", "ack", "dead", "retry"}[v] }

// Outcome is the verdict on an event with what its execution needs.
type Outcome struct {
	Verdict Verdict
	// Dead: why. Retry: why the attempt failed, nil if it was interrupted. Ack: why it failed, if it did
	Failure *events.Failure
	Delay   time.Duration    // Retry: how long to wait
	Version string           // of the worker that ran, "" if none did
	OnDead  *events.DeadHook // Dead: who is notified of the dead letter, nil = no one
	Asked   bool             // Retry: the handler asked for it
	Batch   int32            // Retry: how many events the run had that failed, if it had several
}
