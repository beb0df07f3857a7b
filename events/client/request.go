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

	// ID identifies the event. A second event with the same ID and owner within the deduplication window of the stream
	// is not stored. "" = the id is the stream sequence.
	ID string
	// Version is the version of the worker to run: the whole version, its number, or an alias. "" = an active one.
	Version string
	// VersionKey chooses the version when two share the events: equal keys run in the same one. "" = the event's id.
	VersionKey string
	// Deadline is the time after which the event does not start, because no requester waits. For a fetch event, Call
	// sets it to the deadline of its context by default. Zero = none.
	Deadline time.Time
	// DeliverAt is when the event runs, DeliverAfter how long after it was stored. At most one of them may be set, to
	// at most events.MaxDelay from now. Zero = now.
	DeliverAt    time.Time
	DeliverAfter time.Duration
	// Header has further headers of the message, which the handler sees as event.headers.
	Header events.Header

	// BodyFrom, if not nil, is the body of a fetch event that may be larger than a message. It is read to its end and
	// stored in parts before the event is published. Body must be empty then.
	BodyFrom io.Reader
	// BodyLive sends BodyFrom while the event runs, a part for each Read, as fast as the handler takes them. It is for
	// Call and Open. The rest is not sent when the reply is complete or its body is closed. A Read in progress then
	// continues until it returns.
	BodyLive bool
	Body     []byte
	// of Body. For a Task, a body with a JSON type must be JSON. For Fetch, it is the header of the request.
	ContentType string

	Method     string      // Fetch: "" = GET, or POST when there is a Body or BodyFrom
	URL        string      // Fetch: a path that begins with /, or absolute. "" = /
	HTTPHeader http.Header // Fetch: headers of the request

	ScheduledTime time.Time // Scheduled: the time it stands for. Zero = none

	// OnStored, if not nil, is called when JetStream has stored the event and a reply is still awaited. It must not block.
	OnStored func()

	credit    int64  // bytes of a body in chunks that the caller takes at once; 0 = none
	bodyID    string // of a body in parts
	bodyParts int
}

// message makes the NATS message of r and checks it as the fleet does. replyTo "" = no reply is wanted.
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
		// All message ids of the stream share one space. Those of different owners must not be equal.
		h.Set(events.HeaderMsgID, r.Owner+":"+r.ID)
	}
	set(events.HeaderWorkerVersion, r.Version)
	set(events.HeaderVersionKey, r.VersionKey)
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

// check finds what the fleet would refuse, and what NATS would change silently.
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

// sendable reports whether name is a header name that NATS carries: visible ASCII without separators.
func sendable(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}
