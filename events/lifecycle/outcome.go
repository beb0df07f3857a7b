package lifecycle

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Verdict is what shall become of an event.
type Verdict uint8

// The verdicts. Each event ends with exactly one Ack or Dead; the others only put that off.
const (
	None   Verdict = iota // nothing yet: the attempt goes on (its reply was ready early)
	Ack                   // handled: ack the message
	Dead                  // failed for good: write a dead letter, then ack
	Retry                 // failed for now: run again after Outcome.Delay, as the next attempt
	Return                // not run: give it back to the stream at once; no attempt was made
	Park                  // its owner has too many waiting: set it aside until there is room
	Watch                 // processes died around it: note that it is about to run, with Outcome.Alone, and submit it again
	Share                 // nothing yet: its run goes on, but others run beside it from now on; note that
)

// String is the verdict as it stands in logs and metrics.
func (v Verdict) String() string {
	return [...]string{"none", "ack", "dead", "retry", "return", "park", "watch", "share"}[v]
}

// Outcome is the verdict on an event with what its execution needs.
type Outcome struct {
	Verdict Verdict
	// Dead: why. Retry: why the attempt failed, nil if it was interrupted. Ack: why it failed, if it did
	Failure *events.Failure
	Delay   time.Duration    // Retry: how long to wait
	Version string           // of the worker that ran, "" if none did
	OnDead  *events.DeadHook // Dead: who is notified of the dead letter, nil = no one
	Alone   bool             // Watch: nothing else will run in this process
	Asked   bool             // Retry: the handler asked for it
	Batch   int32            // Retry: how many events the run had that failed, if it had several
}

// Settlement is what dispatch tells consumer to do about an event: publish Reply if there is
// one, and then carry out the Outcome.
type Settlement struct {
	Event   *events.Event
	Reply   *events.Reply
	Outcome Outcome
	// Brief: the attempt that ended took less of the processor than to set its event aside would, and waited for
	// nothing.
	Brief bool
}
