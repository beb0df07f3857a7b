package calls

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

// request adds a request of HTTP to a head, without its body.
func request(h *head, r *http.Request) {
	h.text(r.Method)
	h.text(r.URL.String())
	h.list(pairs(r.Header))
}

func pairs(header http.Header) []string {
	list := make([]string, 0, 2*len(header))
	for name, values := range header {
		for _, v := range values {
			list = append(list, name, v)
		}
	}
	return list
}

// responseHead is the head of a response of HTTP.
type responseHead struct {
	status  int
	headers []string
	// told: the response has what egress.Head takes, text and length.
	told    bool
	text    string
	length  int64
	flushed bool // before the body was there
}

func (f *fields) response() (r responseHead) {
	r.status, r.headers, r.told = f.count(999), f.list(), f.flag()
	r.text, r.length, r.flushed = f.text(), int64(f.count(1<<62))-1, f.flag()
	return r
}

// pass passes a response on, as far as it is not its body.
func (r *responseHead) pass(rw http.ResponseWriter) error {
	into := rw.Header()
	for i := 0; i+1 < len(r.headers); i += 2 {
		into[r.headers[i]] = append(into[r.headers[i]], r.headers[i+1])
	}
	if h, ok := rw.(egress.Head); ok && r.told {
		h.SetHead(r.text, r.length)
	}
	rw.WriteHeader(r.status)
	if r.flushed {
		return http.NewResponseController(rw).Flush()
	}
	return nil
}

// copyTo passes the body of an answer on, in pieces as long as those that handlers get. full: it waits until a piece is
// as long as it may be.
func (a *answer) copyTo(rw io.Writer, full bool) error {
	buffer := make([]byte, lifecycle.MaxShort)
	for {
		n, err := 0, error(nil)
		for n < len(buffer) && err == nil && (full || n == 0) {
			var more int
			more, err = a.read(buffer[n:])
			n += more
		}
		if n > 0 {
			if _, err := rw.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ServeFile implements bindings.Files.
func (c *Client) ServeFile(rw http.ResponseWriter, r *http.Request, w *workers.Worker, follows bool) {
	h := newHead()
	worker(&h, w)
	h.flag(follows)
	request(&h, r)
	a, err := c.ask(r.Context(), "/file", h, nil)
	var head responseHead
	if err == nil {
		defer a.close()
		head = a.response()
		err = a.end()
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	if head.pass(rw) == nil {
		_ = a.copyTo(rw, true) // a response that is too short has broken off
	}
}

// Services are the bindings.Services of a cell.
type Services struct{ c *Client }

// Services returns the bindings.Services of the cell.
func (c *Client) Services() Services { return Services{c} }

// service adds a call of a service to a head.
func (c *Client) service(h *head, call *lifecycle.ServiceCall) {
	c.caller(h, call.From)
	h.text(call.Worker)
	h.flag(call.Version != "")
	h.text(call.Entrypoint)
	until(h, call.Deadline)
}

// serviceRequest is the lifecycle.ServiceRequest of a cell.
type serviceRequest struct {
	c        *Client
	http     *http.Request
	body     []byte
	call     *lifecycle.ServiceCall
	answered atomic.Bool // or cancelled
	cancel   context.CancelFunc
	ctx      context.Context //nolint:containedctx // of the request
	end      func()
}

// Fetch implements bindings.Services.
func (s Services) Fetch(r *http.Request, body []byte, call *lifecycle.ServiceCall) lifecycle.ServiceRequest {
	q := &serviceRequest{c: s.c, http: r, body: body, call: call, end: sync.OnceFunc(call.End)}
	q.ctx, q.cancel = context.WithCancel(r.Context())
	return q
}

// Start implements lifecycle.ServiceRequest.
func (q *serviceRequest) Start(answer func(short bool, write func(http.ResponseWriter) error)) {
	q.c.group.Go(func() {
		short, write := q.ask()
		if !q.answered.CompareAndSwap(false, true) {
			_ = write(nil)
			return
		}
		answer(short, write)
	})
}

// Cancel implements lifecycle.ServiceRequest.
func (q *serviceRequest) Cancel() bool {
	if !q.answered.CompareAndSwap(false, true) {
		return false
	}
	q.cancel()
	return true
}

// ask sends the request and waits for the head of the response. write is called once, also if nobody wants the
// response; then its writer is nil.
func (q *serviceRequest) ask() (short bool, write func(http.ResponseWriter) error) {
	h := newHead()
	q.c.service(&h, q.call)
	h.text(q.call.CF)
	request(&h, q.http)
	h.number(uint64(max(-1, q.http.ContentLength) + 1))
	whole := q.body != nil || q.http.Body == nil || q.http.Body == http.NoBody
	h.flag(q.body != nil)
	var a *answer
	var err error
	if whole {
		a, err = q.c.ask(q.ctx, "/fetch", h, q.body)
	} else {
		a, err = q.c.stream(q.ctx, "/fetch", h, q.http.Body)
	}
	over := func() {
		q.cancel()
		q.end()
	}
	if err != nil {
		return true, func(http.ResponseWriter) error { over(); return err }
	}
	short = a.flag()
	head := a.response()
	if a.end() != nil {
		err = errAnswer
	}
	var body []byte
	if err == nil && short {
		body, err = io.ReadAll(io.LimitReader(reading{a}, lifecycle.MaxShort))
	}
	return short || err != nil, func(rw http.ResponseWriter) error {
		defer over()
		defer a.close()
		if err != nil || rw == nil {
			return err
		}
		if err := head.pass(rw); err != nil {
			return err
		}
		if short {
			_, err := rw.Write(body)
			return err
		}
		return a.copyTo(rw, false)
	}
}

// reading is the body of an answer as an io.Reader.
type reading struct{ a *answer }

// Read implements io.Reader.
func (r reading) Read(p []byte) (int, error) { return r.a.read(p) }

// Call implements bindings.Services.
func (s Services) Call(call *lifecycle.ServiceCall, args []byte,
	answer func(result []byte, err error)) (cancel func()) {
	ctx, stop := context.WithDeadline(context.Background(), call.Deadline)
	var answered atomic.Bool
	s.c.group.Go(func() {
		defer call.End()
		defer stop()
		result, err := s.c.method(ctx, call, args)
		if answered.CompareAndSwap(false, true) {
			answer(result, err)
		}
	})
	return func() {
		if answered.CompareAndSwap(false, true) {
			stop()
		}
	}
}

func (c *Client) method(ctx context.Context, call *lifecycle.ServiceCall, args []byte) ([]byte, error) {
	h := newHead()
	c.service(&h, call)
	h.text(call.Method)
	a, err := c.ask(ctx, "/method", h, args)
	if err != nil {
		return nil, err
	}
	defer a.close()
	return a.whole()
}

var (
	_ bindings.Services = Services{}
	_ bindings.Files    = (*Client)(nil)
	_ bindings.Caller   = (*Client)(nil)
	_ bindings.Queues   = (*Client)(nil)
)
