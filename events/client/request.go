package client

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// Request is an event to publish. Kind, Owner and Worker must be set.
type Request struct {
	Kind   events.Kind
	Owner  string
	Worker string

	// ID names the event: publishing a second one with the same ID for the same owner within the
	// stream's deduplication window changes nothing. "" = the stream sequence will be its id.
	ID string
	// Version runs exactly this version of the worker: whole or its number. "" = the active one.
	Version string
	// Deadline is when nobody waits any more: an event that has not started by then is not run. A fetch made with
	// Call has the deadline of its context by default. Zero = none.
	Deadline time.Time
	// DeliverAt is when it runs, DeliverAfter how long after it was stored: at most one of them, at most events.MaxDelay from now. Zero = at once.
	DeliverAt    time.Time
	DeliverAfter time.Duration
	// Header holds further headers of the message, which the handler sees as event.headers.
	Header events.Header

	// BodyFrom, if not nil, is read to its end before the event is published, and stored in parts: for bodies of fetch events
	// that are larger than a message. Body must be empty then.
	BodyFrom io.Reader
	// BodyLive has BodyFrom sent while the event runs, a part for each Read, at the pace at which the handler takes it. It is for Call and Open: what
	// is not sent when the reply is complete, or its body closed, is not sent any more. A Read that is under way then goes on until it returns.
	BodyLive    bool
	Body        []byte
	ContentType string // of Body: a Task whose type is JSON is checked to be so. For Fetch the header of the request.

	Method     string      // Fetch: "" = GET, or POST when there is a Body or BodyFrom
	URL        string      // Fetch: a path that begins with /, or absolute. "" = /
	HTTPHeader http.Header // Fetch: headers of the request

	ScheduledTime time.Time // Scheduled: the time it stands for. Zero = none

	credit    int64  // bytes of a body in chunks that are taken at once; 0 = none
	bodyID    string // of a body in parts
	bodyParts int
}

// message makes the NATS message of r and checks it as the fleet will. replyTo "" = no reply is wanted.
func (r *Request) message(s events.Subjects, inbox, replyTo string) (*nats.Msg, error) {
	h := make(events.Header, len(r.Header)+len(r.HTTPHeader)+6)
	for name, values := range r.Header {
		h[name] = values
	}
	for name, values := range r.HTTPHeader {
		h[events.HeaderHTTPPrefix+name] = values
	}
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	set(events.HeaderReplyTo, replyTo)
	set(events.HeaderEventID, r.ID)
	if r.ID != "" {
		// Message ids are one space for the whole stream: an owner's must not meet another's.
		h.Set(events.HeaderMsgID, r.Owner+":"+r.ID)
	}
	set(events.HeaderWorkerVersion, r.Version)
	if r.BodyLive {
		h.Set(events.HeaderBodyID, r.bodyID)
		h.Set(events.HeaderBodyParts, events.LiveParts)
	}
	if r.bodyParts > 0 {
		h.Set(events.HeaderBodyID, r.bodyID)
		h.Set(events.HeaderBodyParts, strconv.Itoa(r.bodyParts))
	}
	if r.credit > 0 {
		h.Set(events.HeaderBodyCredit, strconv.FormatInt(r.credit, 10))
	}
	if !r.Deadline.IsZero() {
		h.Set(events.HeaderDeadline, r.Deadline.UTC().Format(time.RFC3339Nano))
	}
	if !r.DeliverAt.IsZero() {
		h.Set(events.HeaderDeliverAt, r.DeliverAt.UTC().Format(time.RFC3339Nano))
	}
	if r.DeliverAfter != 0 {
		h.Set(events.HeaderDeliverAfter, r.DeliverAfter.String())
	}
	switch r.Kind {
	case events.Fetch:
		set(events.HeaderMethod, r.Method)
		set(events.HeaderURL, r.URL)
		set(events.HeaderHTTPPrefix+events.HeaderContentType, r.ContentType)
	case events.Task:
		set(events.HeaderContentType, r.ContentType)
	case events.Scheduled:
		if !r.ScheduledTime.IsZero() {
			h.Set(events.HeaderScheduledTime, strconv.FormatInt(r.ScheduledTime.UnixMilli(), 10))
		}
	}
	if err := r.check(s, inbox, h); err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: s.Event(r.Kind, r.Owner, r.Worker), Header: nats.Header(h), Data: r.Body}, nil
}

// check finds what the fleet would find malformed, and what NATS would change silently.
func (r *Request) check(s events.Subjects, inbox string, h events.Header) error {
	for name, values := range h {
		if !sendable(name) {
			return fmt.Errorf("%w: header %q: NATS does not carry this name", ErrMalformed, name)
		}
		for _, v := range values {
			if strings.ContainsAny(v, "\r\n\x00") || v != strings.TrimSpace(v) {
				return fmt.Errorf("%w: header %s: NATS does not carry line breaks, NULs, or space around a value", ErrMalformed, name)
			}
		}
	}
	stored := events.Origin{Subject: string(s) + ".events.0." + r.Kind.String() + "." + r.Owner + "." + r.Worker}
	d := events.Decoder{Subjects: s, ReplyPrefixes: []string{inbox}}
	if _, failure := d.Decode(stored, h, r.Body, time.Now()); failure != nil {
		return fmt.Errorf("%w: %s", ErrMalformed, failure.Message)
	}
	return nil
}

// sendable: a name of visible ASCII without a colon.
func sendable(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}
