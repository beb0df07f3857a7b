package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
)

// Bounds of the test events of a process. One that waits for its reply takes no place of other requests.
const (
	maxSends = 4
	// sendWait is how long a process waits for the reply.
	sendWait = 15 * time.Second
	// maxReplyShown is how much of the body of a reply is told, bytes, and maxReplyHeaders how much of its headers.
	maxReplyShown, maxReplyHeaders = 64 << 10, 16 << 10
	// worstJSON is how many bytes of an answer are made of one byte.
	worstJSON = 8
)

// SendEvent is an event that an operator sends to a worker, to see what becomes of it. It is an event like all others.
type SendEvent struct {
	WorkerName
	Kind        string        `json:"kind"`                       // fetch, task or scheduled
	ID          string        `json:"id" most:"256"`              // of the event; the sender chooses it, to follow its lines
	Version     string        `json:"version,omitempty"`          // whole, its number, or an alias; "" = an active one
	Method      string        `json:"method,omitempty" most:"64"` // fetch: "" = GET, or POST with a body
	Path        string        `json:"path,omitempty"`             // fetch: path with query, or a URL; "" = /
	Headers     []EventHeader `json:"headers,omitempty" most:"64"`
	ContentType string        `json:"contentType,omitempty" most:"256"`
	Body        string        `json:"body,omitempty" most:"262144"`
	Cron        string        `json:"cron,omitempty" most:"256"` // scheduled: the expression that it stands for
	Time        string        `json:"time,omitempty" most:"64"`  // scheduled: the time that it stands for, RFC 3339
}

// EventHeader is a header of an event, or of the request of a fetch event.
type EventHeader struct {
	Name  string `json:"name" most:"256"`
	Value string `json:"value"`
}

// SentEvent says what became of a test event while the process waited for it.
type SentEvent struct {
	Worker string     `json:"worker"`
	ID     string     `json:"id"`
	Stored bool       `json:"stored"`            // JetStream has acknowledged it. Without that it may be stored nevertheless
	Reply  *SentReply `json:"reply,omitempty"`   // nil: none came in time
	Why    string     `json:"problem,omitempty"` // why there is none
}

// SentReply is the reply to a test event.
type SentReply struct {
	Status     int           `json:"status,omitempty"` // fetch
	Headers    []EventHeader `json:"headers,omitempty"`
	Body       string        `json:"body,omitempty"`   // if it is text
	Base64     []byte        `json:"base64,omitempty"` // otherwise
	Cut        bool          `json:"cut,omitempty"`    // the body, or the list of headers, has more
	Reason     string        `json:"reason,omitempty"` // of the failure
	Message    string        `json:"message,omitempty"`
	Attempt    int           `json:"attempt"`
	Version    string        `json:"version,omitempty"`
	DurationMs float64       `json:"durationMs"`
}

// Failed reports whether the event failed, or was answered with an error.
func (r *SentReply) Failed() bool { return r.Reason != "" || r.Status >= http.StatusBadRequest }

// EventSend sends an event to a worker. Owners publish events by themselves, so the owner API does not have it.
var EventSend = Endpoint[SendEvent, SentEvent]{
	Name:    "events.send",
	Doc:     "Sends an event to a worker, and waits some seconds for its reply.",
	Guarded: true,
	Audit:   true,
	Process: true,
	handle:  by(sendsOf, (*sends).send),
}

// sends are the test events of a process.
type sends struct {
	nc      *nats.Conn
	prefix  string
	inbox   string // where replies come to; "" = an inbox of nc
	process Process
	room    chan struct{} // a slot for each that waits for its reply
}

func newSends(nc *nats.Conn, cfg Config) *sends {
	s := &sends{nc: nc, prefix: cfg.Prefix, process: cfg.Process, room: make(chan struct{}, maxSends)}
	for _, p := range cfg.ReplyPrefixes {
		if !strings.Contains(p, "{") {
			s.inbox = p
			break
		}
	}
	return s
}

// send sends an event and waits for its reply.
func (s *sends) send(ctx context.Context, q SendEvent) (SentEvent, error) {
	r, err := q.request()
	if err != nil {
		return SentEvent{}, err
	}
	if in := s.process.Installed(r.Owner, r.Worker); len(in.Versions) == 0 {
		return SentEvent{}, &Error{Code: http.StatusNotFound, Text: "there is no worker " + r.Owner + "/" + r.Worker}
	}
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	default:
		return SentEvent{}, &Error{Code: http.StatusServiceUnavailable,
			Text: fmt.Sprintf("this process waits for the replies of %d test events: try again", maxSends)}
	}
	opts := []client.Option{client.Prefix(s.prefix)}
	if s.inbox != "" {
		opts = append(opts, client.Inbox(s.inbox))
	}
	c, err := client.New(s.nc, opts...)
	if err != nil {
		return SentEvent{}, err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	return exchange(ctx, c, r, min(maxReplyShown, int(s.nc.MaxPayload())/2/worstJSON))
}

// exchange publishes an event and reads at most so many bytes of the body of its reply.
func exchange(ctx context.Context, c *client.Client, r *client.Request, most int) (sent SentEvent, err error) {
	sent = SentEvent{Worker: r.Owner + "/" + r.Worker, ID: r.ID}
	stored := make(chan struct{})
	r.OnStored = func() { close(stored) }
	var reply *events.Reply
	var body io.ReadCloser
	if r.Kind == events.Fetch {
		reply, body, err = c.Open(ctx, *r)
	} else {
		reply, err = c.Call(ctx, *r)
	}
	select {
	case <-stored:
		sent.Stored = true
	default:
	}
	var failure *events.Failure
	if err != nil && !errors.As(err, &failure) {
		return notAnswered(sent, err)
	}
	sent.Stored, sent.Reply = true, toldReply(reply)
	data := reply.Body
	if body != nil {
		defer func() { _ = body.Close() }()
		if data, err = io.ReadAll(io.LimitReader(body, int64(most)+1)); err != nil {
			sent.Why = "the body broke off: " + err.Error()
		}
	}
	sent.Reply.setBody(data, most)
	return sent, nil
}

// notAnswered says why there is no reply. What is wrong with the request, or is known not to be stored, is an error.
func notAnswered(sent SentEvent, err error) (SentEvent, error) {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, client.ErrMalformed):
		return sent, &Error{Code: http.StatusBadRequest, Text: err.Error(), cause: err}
	case errors.Is(err, client.ErrDuplicate):
		return sent, &Error{Code: http.StatusConflict, Text: err.Error(), cause: err}
	case errors.Is(err, client.ErrNoStream), errors.As(err, &api):
		return sent, &Error{Code: http.StatusServiceUnavailable, Text: err.Error(), cause: err}
	case sent.Stored:
		sent.Why = fmt.Sprintf("no reply came within %s", sendWait)
	default:
		sent.Why = "the event is not known to be stored: " + err.Error()
	}
	return sent, nil
}

func toldReply(r *events.Reply) *SentReply {
	told := &SentReply{Status: r.Status, Attempt: r.Attempt, Version: r.Version,
		DurationMs: float64(r.Duration.Microseconds()) / 1000}
	if f := r.Failure; f != nil {
		told.Reason, told.Message = string(f.Reason), events.Clip(f.Message, maxControlText)
	}
	for i, room := 0, maxReplyHeaders; i+1 < len(r.Headers); i += 2 {
		name, value := r.Headers[i], r.Headers[i+1]
		if room -= len(name) + len(value); room < 0 {
			told.Cut = true
			break
		}
		told.Headers = append(told.Headers, EventHeader{name, value})
	}
	return told
}

// setBody sets what is told of the body: at most so many bytes.
func (r *SentReply) setBody(data []byte, most int) {
	if r.Cut = r.Cut || len(data) > most; len(data) > most {
		data = data[:most]
	}
	text := data
	for n := 1; n < utf8.UTFMax && r.Cut && !utf8.Valid(text) && len(text) > 0; n++ {
		text = text[:len(text)-1] // a character is cut
	}
	if utf8.Valid(text) {
		r.Body = string(text)
	} else {
		r.Base64 = data
	}
}

// request is the event as a client publishes it. The error names the wrong field.
func (q SendEvent) request() (r *client.Request, err error) {
	r = &client.Request{ID: q.ID, Version: q.Version, Method: q.Method, URL: q.Path, Body: []byte(q.Body),
		ContentType: q.ContentType, Header: events.Header{}, HTTPHeader: http.Header{}}
	if r.Owner, r.Worker, err = q.parse(); err != nil {
		return nil, err
	}
	if r.Kind, err = events.ParseKind(q.Kind); err != nil {
		return nil, wrongField("kind", ": %s", err)
	}
	if q.ID == "" {
		return nil, wrongField("id", " is missing: it tells the event from others")
	}
	for _, only := range []struct {
		field, value string
		kind         events.Kind
	}{
		{"method", q.Method, events.Fetch}, {"path", q.Path, events.Fetch}, {"cron", q.Cron, events.Scheduled},
		{"time", q.Time, events.Scheduled},
	} {
		if only.value != "" && only.kind != r.Kind {
			return nil, wrongField(only.field, " is for %s events, and this is a %s", only.kind, r.Kind)
		}
	}
	if q.Time != "" {
		if r.ScheduledTime, err = time.Parse(time.RFC3339Nano, q.Time); err != nil {
			return nil, wrongField("time", " is %.40q: it is a time in RFC 3339, like 2026-01-02T15:04:05Z", q.Time)
		}
	}
	if q.Cron != "" {
		r.Header.Set(events.HeaderCron, q.Cron)
	}
	if r.Kind == events.Task && q.ContentType == "" && json.Valid(r.Body) {
		r.ContentType = "application/json"
	}
	if r.Kind == events.Scheduled && q.ContentType != "" {
		r.Header.Set(events.HeaderContentType, q.ContentType)
	}
	return r, q.readHeaders(r)
}

// readHeaders stores the headers where the kind of the event has them.
func (q SendEvent) readHeaders(r *client.Request) error {
	for _, h := range q.Headers {
		canonical := textproto.CanonicalMIMEHeaderKey(h.Name)
		fetch := r.Kind == events.Fetch
		switch {
		case canonical == events.HeaderContentType:
			return wrongField("headers", " have %s: the field contentType says it", h.Name)
		case !fetch && events.OfFleet(h.Name), fetch && events.OfGateway(canonical):
			return wrongField("headers", " have %.80q: only the fleet sets it", h.Name)
		case fetch:
			r.HTTPHeader.Add(h.Name, h.Value)
		default:
			r.Header[h.Name] = append(r.Header[h.Name], h.Value)
		}
	}
	return nil
}
