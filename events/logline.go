package events

import (
	"encoding/hex"
	"time"
)

// LogLevels are the levels of LogLine, the lowest first.
var LogLevels = []string{"debug", "info", "warn", "error"}

// LogLine is one line of a worker's output, as it is published on the subject of the worker's log
// (docs/reference/wire.md).
type LogLine struct {
	Time    time.Time `json:"time"`
	Owner   string    `json:"owner"`
	Worker  string    `json:"worker"`
	Version string    `json:"version"`
	EventID string    `json:"eventId,omitempty"` // "" = not of an event
	Attempt int       `json:"attempt,omitempty"`
	Level   string    `json:"level"` // one of LogLevels
	Text    string    `json:"text"`
	Stack   string    `json:"stack,omitempty"`
	// TraceID and SpanID are the span of the attempt, in hexadecimal; "" = none is kept of it.
	TraceID string `json:"traceId,omitempty"`
	SpanID  string `json:"spanId,omitempty"`
}

// SetTrace says that the line belongs to a span.
func (l *LogLine) SetTrace(c TraceContext) {
	l.TraceID, l.SpanID = hex.EncodeToString(c.TraceID[:]), hex.EncodeToString(c.SpanID[:])
}
