package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

const (
	// window is how many bytes of a response body may be ahead of its reader.
	window = 256 << 10
	// partBytes is the largest piece of a request body that is passed on at once.
	partBytes = 64 << 10
)

// request is a request to a worker, and the caller of its event.
type request struct {
	results  *results
	submit   func(e *lifecycle.Delivery, caller lifecycle.Caller)
	call     *lifecycle.ServiceCall
	http     *http.Request
	event    *lifecycle.Delivery
	answer   func(short bool, write func(http.ResponseWriter) error)
	answered atomic.Bool // or cancelled
}

// Fetch implements bindings.Services.
func (s *Services) Fetch(r *http.Request, whole []byte, c *lifecycle.ServiceCall) lifecycle.ServiceRequest {
	e := s.event(c)
	r.URL.Fragment, r.URL.RawFragment = "", ""
	e.Method, e.URL = r.Method, r.URL.String()
	for name, values := range r.Header {
		for _, v := range values {
			e.HTTPHeaders = append(e.HTTPHeaders, name, v)
		}
	}
	if r.ContentLength > 0 && r.Header.Get("Content-Length") == "" {
		e.HTTPHeaders = append(e.HTTPHeaders, "Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	switch {
	case whole != nil:
		e.Body = whole
	case r.Body != nil && r.Body != http.NoBody:
		e.Parts = &events.Parts{ID: e.ID, Live: true, Read: (&body{from: r.Body}).part}
	}
	e.Requester = &events.Requester{Credit: window}
	return &request{results: &s.requests, submit: s.submit, call: c, http: r, event: e}
}

// Start implements lifecycle.ServiceRequest.
func (q *request) Start(answer func(short bool, write func(http.ResponseWriter) error)) {
	q.answer = answer
	q.submit(q.event, q)
}

// Cancel implements lifecycle.ServiceRequest.
func (q *request) Cancel() bool {
	if !q.answered.CompareAndSwap(false, true) {
		return false
	}
	q.results.cancelled.Inc()
	q.event.Requester.Gone()
	return true
}

// Reply implements lifecycle.Caller.
func (q *request) Reply(r *events.Reply) {
	if !q.answered.CompareAndSwap(false, true) {
		return
	}
	q.results.count(r.Failure != nil)
	short := r.Stream == nil && len(r.Body) <= lifecycle.MaxShort
	q.answer(short, func(w http.ResponseWriter) error { return write(q.http.Context(), w, q.http, r) })
}

// End implements lifecycle.Caller.
func (q *request) End() { q.call.End() }

// body reads the body of a request in parts. One goroutine reads it at a time.
type body struct {
	from  io.Reader
	parts int // that were read
}

// part is the Read of events.Parts. Reading ends when the caller's run or its call does.
func (b *body) part(ctx context.Context, i int) ([]byte, error) {
	if i != b.parts {
		return nil, fmt.Errorf("part %d of the body was read before", i)
	}
	buffer := make([]byte, partBytes)
	for ctx.Err() == nil {
		n, err := b.from.Read(buffer)
		if n > 0 { // an error comes again
			b.parts++
			return buffer[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

var errTooLarge = errors.New("its response is too large")

// write passes a reply on.
func write(ctx context.Context, rw http.ResponseWriter, r *http.Request, reply *events.Reply) error {
	switch {
	case reply.Failure != nil:
		return lifecycle.FailureOf(reply.Failure)
	case reply.Dropped > 0:
		return errTooLarge
	}
	h := rw.Header()
	for i := 0; i+1 < len(reply.Headers); i += 2 {
		name := http.CanonicalHeaderKey(reply.Headers[i])
		h[name] = append(h[name], reply.Headers[i+1])
	}
	length := int64(-1)
	if reply.Stream == nil && r.Method != http.MethodHead {
		length = int64(len(reply.Body))
	}
	if head, ok := rw.(egress.Head); ok { // the response has only the headers that the worker gave it
		head.SetHead(reply.StatusText, length)
	}
	if reply.Stream == nil {
		rw.WriteHeader(reply.Status)
		_, err := rw.Write(reply.Body)
		return err
	}
	rw.WriteHeader(reply.Status)
	if err := http.NewResponseController(rw).Flush(); err != nil { // the body may come much later
		return err
	}
	return stream(ctx, rw, reply.Stream)
}

// stream passes on a body that the worker still makes, as fast as the caller takes it.
func stream(ctx context.Context, rw http.ResponseWriter, s *events.Stream) error {
	more := make(chan struct{}, 1)
	s.OnChunks(func() {
		select {
		case more <- struct{}{}:
		default:
		}
	})
	sent, granted := int64(0), int64(window)
	for {
		select {
		case <-more:
		case <-ctx.Done():
			s.Cancel("the caller has gone")
			return ctx.Err()
		}
		waits := false
		for _, c := range s.Take() {
			n, err := rw.Write(c.Data)
			if sent += int64(n); err != nil {
				s.Cancel("the caller has gone")
				return err
			}
			if c.Failure != nil {
				return lifecycle.FailureOf(c.Failure)
			}
			if c.End {
				return nil
			}
			waits = waits || c.Waits
		}
		if waits || sent+window/2 >= granted {
			granted = sent + window
			s.Grant(granted)
		}
	}
}
