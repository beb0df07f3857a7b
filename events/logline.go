package events

import "time"

// LogLine is one line of a worker's output, as it is published on the subject of the worker's log
// (docs/reference/wire.md).
type LogLine struct {
	Time    time.Time `json:"time"`
	Owner   string    `json:"owner"`
	Worker  string    `json:"worker"`
	Version string    `json:"version"`
	EventID string    `json:"eventId,omitempty"` // "" = not of an event
	Attempt int       `json:"attempt,omitempty"`
	Level   string    `json:"level"` // debug, info, warn, error
	Text    string    `json:"text"`
	Stack   string    `json:"stack,omitempty"`
}
