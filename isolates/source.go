package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Source gives threads their work and takes back what became of it; *dispatch.Dispatcher is one.
// Next and Report are called from the thread of that number only, the others from any goroutine.
type Source interface {
	// Next returns at most free attempts to start now. It never blocks. After it returned
	// nothing, Pool.Wake tells when to ask again.
	Next(thread, free int) []*events.Attempt
	// Report says what became of attempts. The slice is the thread's again afterwards.
	Report(thread int, reports []events.Report)
	// Running says what CPU time an attempt that is not over has taken so far, on that thread or, if it is negative, beside all threads. An attempt of no event
	// stands for what a persistent context does between events, and is not charged. yield says that others wait for the thread.
	Running(thread int, a *events.Attempt, cpu time.Duration) (yield bool)
	// Charge says that an owner took CPU time that is no attempt's.
	Charge(owner string, cpu time.Duration)
	// Away says that an attempt has left its thread to others and goes on beside it, or that this is over.
	Away(a *events.Attempt, is bool)
	// Lost says that a thread is lost to code of w, in an attempt or between events, that began at the given time. It is called after
	// the Report of what ran on the thread, by a goroutine of the Pool's, and must not block.
	Lost(w *events.Worker, began time.Time)
}

// alone is the part of a Source in which nobody waits and nobody is charged.
type alone struct{}

// Running and the others do nothing.
func (alone) Running(int, *events.Attempt, time.Duration) bool { return false }

// Charge is part of Source.
func (alone) Charge(string, time.Duration) {}

// Away is part of Source.
func (alone) Away(*events.Attempt, bool) {}

// Lost is part of Source.
func (alone) Lost(*events.Worker, time.Time) {}
