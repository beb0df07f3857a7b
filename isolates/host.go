package isolates

import (
	"context"
	"time"
)

// Host is what the world outside does for handlers. Its methods are called from goroutines of their own, and Log from
// threads: that one must not block.
type Host interface {
	// Enqueue stores a task event for owner's worker and returns once it is acknowledged.
	Enqueue(ctx context.Context, owner, worker string, task Message) error
	// Log takes one line of a worker's console, or an error that nobody caught.
	Log(line Line)
}

// Message is what env.QUEUE.send() was given.
type Message struct {
	Body        []byte
	ContentType string
	Headers     []string // name, value, name, value …
}

// Line is one line of output of a worker.
type Line struct {
	Time    time.Time `json:"time"`
	Owner   string    `json:"owner"`
	Worker  string    `json:"worker"`
	Version string    `json:"version"`
	EventID string    `json:"eventId,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Level   string    `json:"level"` // debug, info, warn, error
	Text    string    `json:"text"`
	Stack   string    `json:"stack,omitempty"`
}

var levels = [...]string{"debug", "info", "warn", "error"}
