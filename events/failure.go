package events

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Reason is why an event failed. It is a token in the subject of the dead letter, and a label of metrics.
type Reason string

// The reasons (docs/reference/wire.md, "Reasons").
const (
	ReasonException Reason = "exception"  // the handler threw, or its promise rejected
	ReasonCPU       Reason = "cpu"        // CPU time limit
	ReasonMemory    Reason = "memory"     // heap limit
	ReasonTimeout   Reason = "timeout"    // wall-clock limit
	ReasonNoWorker  Reason = "no-worker"  // no such worker, or no such version
	ReasonNoHandler Reason = "no-handler" // the worker has no handler for this kind
	ReasonMalformed Reason = "malformed"  // the event breaks the wire contract
	ReasonExpired   Reason = "expired"    // its deadline passed before it started
	ReasonCrash     Reason = "crash"      // processes ended while it ran
	ReasonTooLarge  Reason = "too-large"  // the response does not fit a NATS message

	ReasonUnavailable Reason = "unavailable" // never stored: the event stream is full or not reachable
	ReasonRate        Reason = "rate"        // its owner calls too often, or has too many delayed events
	ReasonCancelled   Reason = "cancelled"   // somebody cancelled it
)

// Reasons lists every reason.
var Reasons = [...]Reason{
	ReasonException, ReasonCPU, ReasonMemory, ReasonTimeout, ReasonNoWorker, ReasonNoHandler,
	ReasonMalformed, ReasonExpired, ReasonCrash, ReasonTooLarge, ReasonUnavailable,
	ReasonRate, ReasonCancelled,
}

// ParseReason is the inverse of string(r).
func ParseReason(s string) (Reason, error) {
	names := make([]string, len(Reasons))
	for i, r := range Reasons {
		if string(r) == s {
			return r, nil
		}
		names[i] = string(r)
	}
	return "", fmt.Errorf("reason %q: it is one of %s", s, strings.Join(names, ", "))
}

// Status is the HTTP status of the reply to a fetch event that failed for this reason.
func (r Reason) Status() int {
	switch r {
	case ReasonCPU, ReasonMemory, ReasonRate:
		return 429
	case ReasonTimeout:
		return 504
	case ReasonNoWorker:
		return 404
	case ReasonNoHandler:
		return 501
	case ReasonMalformed:
		return 400
	case ReasonExpired, ReasonCrash, ReasonUnavailable:
		return 503
	case ReasonCancelled:
		return 499 // as gRPC's CANCELLED: net/http has no name for it
	}
	return 500
}

// Transient reports whether another run of the event may end differently, so that a retry makes sense.
func (r Reason) Transient() bool {
	switch r {
	case ReasonException, ReasonCPU, ReasonMemory, ReasonTimeout, ReasonCrash, ReasonTooLarge:
		return true
	}
	return false
}

// Bounds of the texts in a Failure, in bytes. The rest is cut off.
const (
	MaxMessage = 2 << 10
	MaxStack   = 8 << 10
)

// Failure says why an attempt failed, or an event failed finally. It is an error.
type Failure struct {
	Reason  Reason
	Message string // one line for people: at most MaxMessage bytes of valid UTF-8
	Stack   string // JavaScript stack in the author's files, at most MaxStack bytes; "" = none

	// RetryAfter is when a client may try again. Only HTTP responses have it. 0 = not known.
	RetryAfter time.Duration
}

// Fail makes a Failure with a formatted message, cut to its bound.
func Fail(r Reason, format string, args ...any) *Failure {
	return NewFailure(r, fmt.Sprintf(format, args...), "")
}

// Cancelled makes the Failure of an event that somebody cancelled.
func Cancelled() *Failure { return Fail(ReasonCancelled, CancelledText) }

// CancelledText says to the author of a handler, and to who waits for the event, that it was cancelled.
const CancelledText = "the event was cancelled"

// NewFailure makes a Failure from any text. It replaces invalid UTF-8 and cuts text that is too long.
func NewFailure(r Reason, message, stack string) *Failure {
	return &Failure{Reason: r, Message: Clip(message, MaxMessage), Stack: Clip(stack, MaxStack)}
}

// Error is "reason: message". The reply header Error has the same value.
func (f *Failure) Error() string { return string(f.Reason) + ": " + f.Message }

// Clip cuts s to at most n bytes of valid UTF-8.
func Clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
