package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
)

// Source gives threads their work and receives the results; *dispatch.Dispatcher is one. Next and Report are called
// only from the thread of that number, the others from any goroutine.
type Source interface {
	// Next returns at most free attempts to start now. It never blocks. After it returned nothing, the thread calls it
	// again after Pool.Wake or Calling, with free = 0 if it has no free slot.
	Next(thread, free int) []*lifecycle.Attempt
	// Report reports the results of attempts, and contexts that were closed. Afterwards the thread uses the slice
	// again.
	Report(thread int, reports []lifecycle.Report)
	// Running reports the CPU time that an unfinished attempt has taken so far, on that thread. A negative thread means
	// that the attempt has left its thread. An attempt without an event stands for what a persistent context does
	// between events, and is not charged. yield says that others wait for the thread.
	Running(thread int, a *lifecycle.Attempt, cpu time.Duration) (yield bool)
	// Charge reports CPU time that an owner took and that belongs to no attempt.
	Charge(owner string, cpu time.Duration)
	// Away reports that an attempt has left its thread to others and continues on another OS thread, or that this is
	// over.
	Away(a *lifecycle.Attempt, is bool)
	// Calling reports that an attempt begins a service call, or that one of its calls is over. While it has any under
	// way it takes no slot of the thread. The thread calls it.
	Calling(a *lifecycle.Attempt, is bool)
	// Overstays reports that a turn of w continues in V8 although it was told to end, or that this is over: it has
	// ended, or Lost was called. Until then no event of the owner should start: it may do the same.
	Overstays(w *workers.Worker, is bool)
	// Lost reports that a thread is lost to code of w that began at the given time, in an attempt or between events. It
	// is called before the Report of the attempt's end, by a goroutine of the Pool, and must not block.
	Lost(w *workers.Worker, began time.Time)
}

// alone is the part of a Source for a pool in which no owner waits and none is charged.
type alone struct{}

// Running is part of Source.
func (alone) Running(int, *lifecycle.Attempt, time.Duration) bool { return false }

// Charge is part of Source.
func (alone) Charge(string, time.Duration) {}

// Away is part of Source.
func (alone) Away(*lifecycle.Attempt, bool) {}

// Calling is part of Source.
func (alone) Calling(*lifecycle.Attempt, bool) {}

// Overstays is part of Source.
func (alone) Overstays(*workers.Worker, bool) {}

// Lost is part of Source.
func (alone) Lost(*workers.Worker, time.Time) {}

// Host is the part of the process that handlers need.
type Host interface {
	hostcalls.Host
	// Log takes one line of a worker's console, or an uncaught error. Threads call it: it must not block.
	Log(line events.LogLine)
}

// levels are the values of events.LogLine.Level. The index is the number that JavaScript sends.
var levels = [...]string{"debug", "info", "warn", "error"}

// Secrets are the values of a worker's secrets.
type Secrets = bindings.Secrets

// NewSecrets returns Secrets with these values, by name.
func NewSecrets[V ~string](values map[string]V) *Secrets { return bindings.NewSecrets(values) }

// Message is a message of env.QUEUE.send() or sendBatch().
type Message = bindings.Message
