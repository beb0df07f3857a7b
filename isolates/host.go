package isolates

import (
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// Host is the part of the process that handlers need.
type Host interface {
	bindings.Queues
	// Log takes one line of a worker's console, or an uncaught error. Threads call it: it must not block.
	Log(line events.LogLine)
}

// levels are the values of events.LogLine.Level. The index is the number that JavaScript sends.
var levels = [...]string{"debug", "info", "warn", "error"}

// Secrets are the values of a worker's secrets.
type Secrets = bindings.Secrets

// NewSecrets returns Secrets with these values, by name.
func NewSecrets[V ~string](values map[string]V) *Secrets { return bindings.NewSecrets(values) }

// Message is the argument of env.QUEUE.send().
type Message = bindings.Message
