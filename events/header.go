package events

import "strings"

// Header is the headers of a NATS message, with names as they were sent. It converts to and from nats.Header.
type Header map[string][]string

// Get is the first value of the header with exactly this name, or "".
func (h Header) Get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Fold is all values of the headers with this name in any case. Values of one spelling stay together; the order of
// spellings is random.
func (h Header) Fold(name string) (values []string) {
	for other, more := range h {
		if len(other) == len(name) && strings.EqualFold(other, name) {
			values = append(values, more...)
		}
	}
	return values
}

// Set replaces all values of the header with exactly this name.
func (h Header) Set(name, value string) { h[name] = []string{value} }

// Headers of a request (docs/reference/wire.md, "Request headers").
const (
	HeaderReplyTo       = "Reply-To"       // subject the reply goes to
	HeaderEventID       = "Event-Id"       // the publisher's id of the event
	HeaderDeadline      = "Deadline"       // RFC 3339: after it no requester waits for the reply
	HeaderWorkerVersion = "Worker-Version" // request: run exactly this version, or the one with this alias; reply: which one ran
	HeaderVersionKey    = "Version-Key"    // chooses the version in a split; default Event-Id
	HeaderTraceParent   = "traceparent"    // W3C Trace Context
	HeaderTraceState    = "tracestate"     // W3C Trace Context
	HeaderContentType   = "Content-Type"   // of a task's payload
	HeaderMethod        = "Http-Method"    // fetch: the method; default GET, POST when there is a body
	HeaderURL           = "Http-Url"       // fetch: absolute, or a path
	HeaderHTTPPrefix    = "Http-Header-"   // fetch: + name of a request or response header, repeatable
	HeaderScheduledTime = "Scheduled-Time" // scheduled: milliseconds since the epoch
	HeaderCron          = "Cron"           // scheduled: the expression that fired
	HeaderMsgID         = "Nats-Msg-Id"    // JetStream's deduplication id; the default of Event-Id
)

// Headers of a reply (docs/reference/wire.md, "Reply headers"), beside Event-Id, Worker-Version and Http-Header-*.
const (
	HeaderAttempt  = "Attempt"     // 1 for the first run
	HeaderDuration = "Duration-Ms" // from start of the attempt to the reply, milliseconds with fraction
	HeaderError    = "Error"       // "reason: message" when it failed
	HeaderStatus   = "Http-Status" // fetch: HTTP status
)

// serverHonoured reports whether a header of this name has a meaning for NATS servers or clients. Pinwheel never copies
// such a header from an event to a message that it publishes.
func serverHonoured(name string) bool {
	return hasPrefixFold(name, "Nats-") || strings.EqualFold(name, "Status") || strings.EqualFold(name, "Description")
}

// WithoutSteering is h without the headers that have a meaning for NATS servers or clients. Handlers never see those.
func (h Header) WithoutSteering() Header {
	rest := make(Header, len(h))
	for name, values := range h {
		if !serverHonoured(name) {
			rest[name] = values
		}
	}
	return rest
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// User is h without the headers that steer NATS, and without those that look like a dead letter's or like Reply-To:
// what a handler may see.
func (h Header) User() Header {
	user := make(Header, len(h))
	(&Event{Header: h}).UserHeaders(func(name, value string) { user[name] = append(user[name], value) })
	return user
}
