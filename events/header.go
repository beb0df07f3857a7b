package events

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

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
	HeaderReplyTo  = "Reply-To" // subject the reply goes to
	HeaderEventID  = "Event-Id" // the publisher's id of the event
	HeaderDeadline = "Deadline" // RFC 3339: after it no requester waits for the reply
	// request: run exactly this version, or the one with this alias; reply: which one ran
	HeaderWorkerVersion = "Worker-Version"
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

// OfFleet reports whether a header of an event has a meaning for the fleet or for NATS, in any case. All others are
// texts for the handler, or the trace context and the type of the body.
func OfFleet(name string) bool {
	return steersEvents(name) || hasPrefixFold(name, "Body-") ||
		oneOfFold(name, HeaderAttempt, HeaderDuration, HeaderError)
}

// gatewayHeaders are headers of a request that a client cannot set, by their canonical names.
var gatewayHeaders = map[string]bool{
	HeaderEventID: true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true,
	"X-Forwarded-Prefix": true, "X-Real-Ip": true, "Cf-Connecting-Ip": true, "Forwarded": true,
}

// OfGateway reports whether a header of an HTTP request is one that the gateway sets, and no client. name is canonical.
func OfGateway(name string) bool { return gatewayHeaders[name] }

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

// MaxEventHeaders is the maximum size of an event's headers in bytes, as they are stored again when the event is
// parked, delayed or replayed. JetStream stores 65535 bytes of headers, and those of the fleet need the rest. Headers
// that steer NATS do not count.
const MaxEventHeaders = 60 << 10

// ErrHeadersLost is the error of a message with a header block that nats.go cannot read.
var ErrHeadersLost = errors.New("the headers cannot be read: the first line is NATS/1.0, each other one is NAME: VALUE, and the last one is empty")

// CheckWritable returns why h cannot be written again as the headers of a message, or nil. Other clients may write
// headers that nats.go reads and does not write.
func (h Header) CheckWritable() error {
	if guard.WritableHeaders.Off() {
		return nil
	}
	size := 0
	for name, values := range h {
		if err := checkWritable(name, values); err != nil {
			return err
		}
		size += storedSize(name, values)
	}
	return checkStoredSize(size)
}

// checkWritable is CheckWritable for one header. It looks at the values without the white space around them, which
// nats.go does not write.
func checkWritable(name string, values []string) error {
	if !isToken(name) {
		return fmt.Errorf("header %.80q: a name has only A-Z a-z 0-9 and !#$%%&'*+-.^_`|~", name)
	}
	for _, v := range values {
		if v = trimHeader(v); strings.IndexByte(v, '\r') >= 0 || strings.IndexByte(v, '\n') >= 0 {
			return fmt.Errorf("header %.80s: its value has a line break", name)
		}
	}
	return nil
}

func checkStoredSize(size int) error {
	if size > MaxEventHeaders {
		return fmt.Errorf("headers have %d bytes: at most %d, because an event may be stored again with headers of Pinwheel", size, MaxEventHeaders)
	}
	return nil
}

// storedSize is how many bytes a header takes in an event that is parked or delayed.
func storedSize(name string, values []string) (n int) {
	if serverHonoured(name) {
		return 0 // it is left out where it does not fit
	}
	each := len(name) + len(": \r\n")
	if hasPrefixFold(name, parkedPrefix) {
		each += len(parkedOriginal)
	}
	for _, v := range values {
		n += each + len(v)
	}
	return n
}

// trimHeader is a value without the white space around it that nats.go does not write.
func trimHeader(value string) string { return strings.Trim(value, " \t\r\n") }

// blockStart begins a header block.
const blockStart = "NATS/1.0"

// Block is h as a header block: the bytes of a message before its body. The headers are in the order of their names.
// The values of the name "" are lines that are no headers.
func (h Header) Block() []byte {
	var b bytes.Buffer
	b.WriteString(blockStart + "\r\n")
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			if name != "" {
				b.WriteString(name + ": ")
			}
			b.WriteString(v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// ParseBlock reads a header block, also one that nats.go does not read. Lines that are no headers are the values of the
// name "".
func ParseBlock(block []byte) Header {
	h := Header{}
	for i, line := range strings.Split(string(block), "\n") {
		line = strings.TrimSuffix(line, "\r")
		name, value, ok := strings.Cut(line, ":")
		switch {
		case line == "", i == 0 && strings.HasPrefix(line, blockStart):
		case !ok, name == "":
			h[""] = append(h[""], line)
		default:
			h[name] = append(h[name], trimHeader(value))
		}
	}
	return h
}

// isToken reports whether s is a token (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
