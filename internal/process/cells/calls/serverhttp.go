package calls

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// request reads a request of HTTP. A handler may write any URL and method that the cell can send, so only what no
// Client writes is a lie.
func (x *exchange) request(ctx context.Context) (*http.Request, error) {
	method, address, headers := x.text(), x.text(), x.list()
	if x.err != nil || len(headers)%2 != 0 {
		return nil, lie("the request to %s is malformed", x.r.URL.Path)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, lie("a request of HTTP has a method or a URL that cannot be sent: %.20q %.80q", method, address)
	}
	for i := 0; i < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		if !httpguts.ValidHeaderFieldName(name) || strings.ContainsAny(value, "\r\n\x00") {
			return nil, lie("a request of HTTP has a header that none has: %.80q", name)
		}
		r.Header[name] = append(r.Header[name], value)
	}
	return r, nil
}

// response is the http.ResponseWriter, the egress.Head and the http.Flusher of an answer.
type response struct {
	x       *exchange
	more    head // of the head of the answer, before the response
	header  http.Header
	told    bool
	text    string
	length  int64
	status  int
	flushed bool
	begun   bool
	err     error
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// SetHead implements egress.Head.
func (w *response) SetHead(text string, length int64) { w.told, w.text, w.length = true, text, length }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// begin writes the head of the answer.
func (w *response) begin() {
	if w.begun {
		return
	}
	w.begun = true
	w.WriteHeader(http.StatusOK)
	h := w.more
	h.number(uint64(w.status))
	h.list(pairs(w.header))
	h.flag(w.told)
	h.text(w.text)
	h.number(uint64(max(-1, w.length) + 1))
	h.flag(w.flushed)
	w.err = w.x.begin(nil, h)
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends what was written.
func (w *response) FlushError() error {
	w.flushed = w.flushed || !w.begun
	if w.begin(); w.err == nil {
		w.err = w.x.flush()
	}
	return w.err
}

// Write implements http.ResponseWriter. It sends the bytes: the next ones may come much later.
func (w *response) Write(data []byte) (n int, err error) {
	if w.begin(); w.err != nil {
		return 0, w.err
	}
	if n, w.err = w.x.w.Write(data); w.err == nil && w.flushed {
		w.err = w.x.flush()
	}
	return n, w.err
}

// file answers a request with a file of a worker.
func (s *Server) file(x *exchange) error {
	w, err := s.given(x)
	if err != nil {
		return err
	}
	follows := x.flag()
	r, err := x.request(x.r.Context())
	if err != nil {
		return err
	}
	if err := x.done(); err != nil {
		return err
	}
	if s.cfg.Files == nil || bindings.FilesName(w) == "" {
		return lie("%s has no files", w.Target())
	}
	rw := &response{x: x, header: http.Header{}, length: -1}
	s.cfg.Files.ServeFile(rw, r, w, follows)
	rw.begin()
	return rw.err
}

// serving is a call of a service that is counted.
type serving struct {
	*lifecycle.ServiceCall                // nil = the call is refused
	span                   lifecycle.Span // nil = none is kept
	refused                error          // the answer to a call beyond a bound
}

// end says that the call does not begin.
func (c *serving) end(err error) {
	if c.ServiceCall != nil {
		c.End()
	}
	lifecycle.EndSpan(c.span, err)
}

// service reads a call of a service, and counts it. The worker has the service, or calls an export of its own. method
// reads the name of the method.
func (s *Server) service(x *exchange, method func() string) (c serving, err error) {
	from, over, err := s.caller(x)
	if err != nil {
		return c, err
	}
	target, own := events.ServiceTarget{Worker: x.text()}, x.flag()
	target.Entrypoint = x.text()
	deadline := time.UnixMilli(int64(x.count(1 << 50)))
	name := method()
	switch {
	case x.err != nil:
		return c, lie("the request to %s is malformed", x.r.URL.Path)
	case over != nil:
		return serving{refused: over}, nil
	case s.cfg.Services == nil || !mayCall(from.Worker, target, own):
		return c, lie("%s has no service %.80q", from.Worker.Target(), target.String())
	}
	var called *events.ServiceCall
	if from.Event != nil {
		called = from.Event.Service
		if most := time.Now().Add(from.Worker.Limits.OrDefault().Wall.Duration()); most.Before(deadline) {
			deadline = most
		}
	}
	kept := &held{of: &s.events}
	if err := kept.try(x.head + len(x.body)); err != nil {
		return serving{refused: err}, nil
	}
	x.arguments.free() // what is called may have arguments, too
	counted, err := from.shared.tree.Begin(called, from.Worker.Name, target, name)
	if err != nil {
		kept.free()
		return serving{refused: err}, nil
	}
	c.ServiceCall = &lifecycle.ServiceCall{ServiceCall: counted, From: from.Attempt, Worker: target.Worker,
		Deadline: deadline, Ended: kept.free}
	if own {
		c.Version = from.Worker.Version
	}
	if c.span = from.Begin(lifecycle.Operation{Kind: lifecycle.ServiceUse, Binding: workers.BindingService,
		Method: name, Target: target.String(), To: target.Worker}); c.span != nil {
		c.Trace = new(c.span.Context())
	}
	return c, nil
}

// mayCall reports whether a worker has a service. own: it calls an export of its own version.
func mayCall(w *workers.Worker, target events.ServiceTarget, own bool) bool {
	if own {
		return target.Worker == w.Name
	}
	for _, b := range w.Env() {
		if b.Kind != workers.BindingService {
			continue
		}
		if has, err := events.ParseServiceTarget(b.Value); err == nil && has == target {
			return true
		}
	}
	return false
}

// written is what writes the response of a service.
type written struct {
	short bool
	write func(http.ResponseWriter) error
}

// fetch has another worker of the owner answer a request.
func (s *Server) fetch(x *exchange) error {
	c, err := s.service(x, func() string { return "" })
	if err != nil {
		return err
	}
	r, body, err := x.serviceRequest(&c)
	if err != nil {
		c.end(err)
		return err
	}
	if c.refused != nil {
		return x.reply(c.refused, nil, nil)
	}
	return s.answer(x, &c, r, body)
}

// serviceRequest reads the request to a service. body is not nil if it is the whole body.
func (x *exchange) serviceRequest(c *serving) (r *http.Request, body []byte, err error) {
	cf := x.text()
	if r, err = x.request(x.r.Context()); err != nil {
		return nil, nil, err
	}
	r.ContentLength = int64(x.count(1<<50)) - 1 // -1 = it is not known
	whole, streams := x.flag(), x.streams
	if x.streams = false; whole && streams {
		return nil, nil, lie("a request of HTTP has a body that streams and comes as a whole")
	}
	if c.ServiceCall != nil {
		c.CF = cf
	}
	switch {
	case whole:
		body = append([]byte{}, x.body...) // not nil, also if it is empty
	case streams:
		r.Body = x.r.Body
	}
	return r, body, x.done()
}

// answer passes the response of a service on.
func (s *Server) answer(x *exchange, c *serving, r *http.Request, body []byte) error {
	q := s.cfg.Services.Fetch(r, body, c.ServiceCall)
	answered := make(chan written, 1)
	q.Start(func(short bool, write func(http.ResponseWriter) error) { answered <- written{short, write} })
	var got written
	select {
	case got = <-answered:
	case <-r.Context().Done():
		if q.Cancel() {
			lifecycle.EndSpan(c.span, errCaller)
			return r.Context().Err()
		}
		got = <-answered
	}
	rw := &response{x: x, header: http.Header{}, length: -1}
	rw.more.flag(got.short)
	err := got.write(rw)
	lifecycle.EndSpan(c.span, err)
	switch {
	case err == nil:
		rw.begin()
		return rw.err
	case !rw.begun:
		return x.reply(err, nil, nil)
	}
	x.fail(err)
	return nil
}

// result is what a method returned.
type result struct {
	body []byte
	err  error
}

// method has another worker of the owner carry out a method.
func (s *Server) method(x *exchange) error {
	c, err := s.service(x, x.text)
	if err != nil {
		return err
	}
	if err = x.done(); err == nil && c.ServiceCall != nil && c.Method == "" {
		err = lie("the name of a method is empty")
	}
	if err != nil {
		c.end(err)
		return err
	}
	if c.refused != nil {
		return x.reply(c.refused, nil, nil)
	}
	ctx, answered := x.r.Context(), make(chan result, 1)
	cancel := s.cfg.Services.Call(c.ServiceCall, x.body, func(body []byte, err error) { answered <- result{body, err} })
	var got result
	select {
	case got = <-answered:
	case <-ctx.Done():
		cancel()
		got.err = errCaller
	}
	lifecycle.EndSpan(c.span, got.err)
	if got.err == nil {
		got.err = x.answer.take(ctx, len(got.body))
	}
	if got.err != nil {
		got.body = nil
	}
	return x.reply(got.err, nil, got.body)
}

// errCaller is how a call ends for which its caller did not wait.
var errCaller = fmt.Errorf("the caller ended before the call: %w", context.Canceled)
