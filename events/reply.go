package events

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Reply is the answer to an event. For fetch it is an HTTP response. For task and scheduled the body is JSON:
// {"success":…,"data":…,"error":…}.
type Reply struct {
	Status  int      // fetch: 200 to 599, or 101
	Headers []string // fetch: name, value, name, value …
	// StatusText is what the handler gave with the status. Only callers in this process get it.
	StatusText string
	Body       []byte

	// Dropped is the number of bytes of a body that is larger than any message. It was not kept, and Body is empty.
	Dropped int

	// Stream, if not nil, has the body, and Body is empty. CreditSubject is where the requester grants more.
	Stream        *Stream
	CreditSubject string

	// Socket, if not nil, is the worker's end of a WebSocket. Status is 101. Only an event with Upgrade has such a reply.
	Socket *Socket

	Failure *Failure // not nil when the event failed; Status and Body say so too

	EventID  string
	Attempt  int
	Version  string // of the worker that answered, "" if none
	Duration time.Duration
}

// Socket is the worker's end of a WebSocket.
type Socket struct {
	// Serve passes messages between the connection and the worker until one of them ends it, or ctx is done. It closes the
	// connection. It is called once, from any goroutine; nil says that there will be no connection.
	Serve func(ctx context.Context, conn SocketConn)
}

// SocketConn is the client's end of a WebSocket: a connection as of github.com/gorilla/websocket.
type SocketConn interface {
	NextReader() (kind int, message io.Reader, err error)
	WriteMessage(kind int, data []byte) error
	WriteControl(kind int, data []byte, deadline time.Time) error
	SetReadLimit(bytes int64)
	SetWriteDeadline(t time.Time) error
	Close() error
}

// FailureReply is the reply to e that reports its failure in an attempt.
func FailureReply(e *Event, attempt int, f *Failure) *Reply {
	r := &Reply{Failure: f, EventID: e.ID, Attempt: attempt}
	if e.Kind == Task || e.Kind == Scheduled {
		r.Body, _ = json.Marshal(map[string]any{"success": false, "error": f.Error()})
		return r
	}
	r.Status = f.Reason.Status()
	r.Headers = []string{"content-type", "text/plain; charset=utf-8"}
	r.Body = []byte(f.Error() + "\n")
	return r
}

// Encode makes the headers of the reply's message. The message body is Reply.Body.
func (r *Reply) Encode() Header { return new(ReplyEncoder).Encode(r) }

// DecodeReply reads a reply message, as a publisher does. The error says what breaks the contract, for example because
// another program than Pinwheel answered.
func DecodeReply(h Header, body []byte) (*Reply, error) {
	r := &Reply{Body: body, EventID: h.Get(HeaderEventID), Version: h.Get(HeaderWorkerVersion),
		CreditSubject: h.Get(HeaderBodyCredit)}
	var err error
	if r.Attempt, err = strconv.Atoi(h.Get(HeaderAttempt)); err != nil || r.Attempt < 0 {
		return nil, fmt.Errorf("reply header %s %q: it is a number", HeaderAttempt, h.Get(HeaderAttempt))
	}
	if v := h.Get(HeaderDuration); v != "" {
		ms, err := strconv.ParseFloat(v, 64)
		if err != nil || !(ms >= 0 && ms <= 1e12) { // in this form it refuses NaN
			return nil, fmt.Errorf("reply header %s %q: it is milliseconds", HeaderDuration, v)
		}
		r.Duration = time.Duration(ms * 1e6)
	}
	if v := h.Get(HeaderStatus); v != "" {
		if r.Status, err = strconv.Atoi(v); err != nil || r.Status < 200 || r.Status > 599 {
			return nil, fmt.Errorf("reply header %s %q: it is 200 to 599", HeaderStatus, v)
		}
	}
	if v := h.Get(HeaderError); v != "" {
		reason, message, _ := strings.Cut(v, ": ")
		r.Failure = NewFailure(Reason(reason), message, "")
	}
	for name, values := range h {
		if after, ok := strings.CutPrefix(name, HeaderHTTPPrefix); ok {
			for _, v := range values {
				r.Headers = append(r.Headers, after, v)
			}
		}
	}
	return r, nil
}

// oneLine makes a NATS header value of s: without line breaks and NULs.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n\x00") {
		return s
	}
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\x00", " ").Replace(s)
}
