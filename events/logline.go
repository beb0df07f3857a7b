package events

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

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
	// TraceID and SpanID are the span of the attempt, in hexadecimal; "" = none is kept of it.
	TraceID string `json:"traceId,omitempty"`
	SpanID  string `json:"spanId,omitempty"`
}

// SetTrace says that the line belongs to a span.
func (l *LogLine) SetTrace(c TraceContext) {
	l.TraceID, l.SpanID = hex.EncodeToString(c.TraceID[:]), hex.EncodeToString(c.SpanID[:])
}

// RequestLog says which lines about HTTP requests the output of a worker has.
type RequestLog struct {
	Level RequestLevel `json:"level,omitempty" manifest:"short"`
	// RequestBody and ResponseBody: the lines have the beginnings of the bodies.
	RequestBody  bool `json:"requestBody,omitempty"`
	ResponseBody bool `json:"responseBody,omitempty"`
}

// RequestLevel says which requests have a line, and what is in it.
type RequestLevel string

// The levels. The zero RequestLevel means RequestsStandard.
const (
	RequestsNone     RequestLevel = "none"     // no lines
	RequestsMinimal  RequestLevel = "minimal"  // requests whose response has a status from 500
	RequestsStandard RequestLevel = "standard" // all requests
	RequestsFull     RequestLevel = "full"     // all requests, with query and headers
)

// RequestLevels are all levels.
var RequestLevels = [...]RequestLevel{RequestsNone, RequestsMinimal, RequestsStandard, RequestsFull}

// Wants reports whether a request whose response has this status has a line. l may be nil.
func (l *RequestLog) Wants(status int) bool {
	return l != nil && l.Level != RequestsNone && (l.Level != RequestsMinimal || status >= 500)
}

func (l *RequestLog) validate() error {
	if l != nil && l.Level != "" && !slices.Contains(RequestLevels[:], l.Level) {
		return fmt.Errorf("http.log.level is %q: it is one of %s, %s, %s, %s", l.Level, RequestsNone, RequestsMinimal, RequestsStandard,
			RequestsFull)
	}
	return nil
}
