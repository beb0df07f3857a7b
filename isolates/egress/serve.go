package egress

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
)

// Serve has a function of this process answer a request, in place of a server. It passes the response to to as Exchange
// does, and returns when the response is complete. f must not use the host of the URL: the author of the request
// chooses it. An error of f says that there is no response, or that it is not complete. The error is in words for the
// author of a handler.
func Serve(ctx context.Context, q Request, to Receiver, f func(http.ResponseWriter, *http.Request) error) error {
	l, err := NewLocal(ctx, q, to)
	if err != nil {
		return err
	}
	return l.Respond(func(w http.ResponseWriter) error { return f(w, l.Request) })
}

// Head is an http.ResponseWriter of Serve. It takes what headers do not say, before WriteHeader.
type Head interface {
	// SetHead takes the status text, "" = that of the status, and the length of the body, -1 = it is not known.
	SetHead(text string, length int64)
}

// Local is a request that is answered in this process. Its response may begin later, in another goroutine.
type Local struct {
	Request *http.Request
	q       Request
	to      Receiver
}

// NewLocal prepares a request. It does not read its body. Respond follows, or Close.
func NewLocal(ctx context.Context, q Request, to Receiver) (*Local, error) {
	hr, err := httpRequest(ctx, &q)
	if err != nil {
		return nil, err
	}
	hr.URL.Opaque = ""   // the path is read here
	spelled := hr.Header // as the handler wrote them
	hr.Header = make(http.Header, len(spelled))
	for name, values := range spelled {
		name = http.CanonicalHeaderKey(name)
		hr.Header[name] = append(hr.Header[name], values...)
	}
	return &Local{hr, q, to}, nil
}

// Respond passes the response that f writes, as Serve does. It does not wait when f writes a Content-Length of at most
// chunkBytes and that body, or a redirect.
func (l *Local) Respond(f func(http.ResponseWriter) error) error {
	defer l.Close()
	w := &served{ctx: l.Request.Context(), q: &l.q, to: l.to, header: http.Header{}, length: -1}
	if err := f(w); err != nil {
		return err
	}
	return w.end()
}

// Close says that the body of the request is no longer read.
func (l *Local) Close() {
	if l.Request.Body != nil {
		_ = l.Request.Body.Close()
	}
}

// served is the http.ResponseWriter and the Head of Serve.
type served struct {
	ctx    context.Context //nolint:containedctx // of the request
	q      *Request
	to     Receiver
	header http.Header
	buffer []byte
	text   string // "" = that of the status
	length int64  // of the body, if no header says it; -1 = not known
	status int    // 0 = no head yet
	held   bool   // the head is not passed yet: the body may come with it
	left   int64  // bytes of the body that are still to come; -1 = not known
	over   bool   // the response is not passed on: it is a redirect, or err says why
	err    error
}

func (w *served) Header() http.Header { return w.header }

func (w *served) SetHead(text string, length int64) { w.text, w.length = text, length }

func (w *served) statusText() string { return cmp.Or(w.text, http.StatusText(w.status)) }

func (w *served) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status, w.left = status, w.length
	if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil && w.hasBody() {
		w.left = n
	}
	follows, err := followed(w.q, status, w.header)
	if w.over, w.err = follows || err != nil, err; follows && err == nil {
		passRedirect(status, w.header, w.to)
	}
	w.held = !w.over
}

// Flush passes the head, before the body is there.
func (w *served) Flush() {
	if w.WriteHeader(http.StatusOK); w.held {
		w.held = false
		w.to.Head(w.status, w.statusText(), flat(w.header), false)
	}
}

// whole passes a response of which nothing was passed yet. One message to the thread costs much less than three.
func (w *served) whole(body []byte) {
	w.held, w.over = false, true
	w.to.Whole(w.status, w.statusText(), flat(w.header), body)
}

func (w *served) hasBody() bool {
	return w.q.Method != http.MethodHead && w.status != http.StatusNotModified && w.status != http.StatusNoContent
}

var errNotTaken = errors.New("the response is not taken")

// Write returns when the next bytes may come. It keeps nothing of data.
func (w *served) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.over || !w.hasBody() {
		return len(data), nil
	}
	if w.held && int64(len(data)) == w.left && len(data) <= chunkBytes {
		w.whole(bytes.Clone(data))
		return len(data), nil
	}
	w.Flush()
	for n := 0; n < len(data); {
		if w.ctx.Err() != nil {
			return n, errNotTaken
		}
		w.buffer = append(w.buffer[:0], data[n:min(len(data), n+chunkBytes)]...)
		n += len(w.buffer)
		if w.left > 0 {
			w.left -= min(w.left, int64(len(w.buffer)))
		}
		if reuse := w.to.Chunk(w.ctx, w.buffer); !reuse {
			w.buffer = nil
		}
	}
	return len(data), nil
}

// end says whether the response is complete, and ends it.
func (w *served) end() error {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.over:
		return w.err
	case w.held && w.left <= 0 && w.ctx.Err() == nil:
		w.whole(nil)
		return nil
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case w.left > 0:
		return errors.New("the response broke off before it was complete")
	}
	w.to.End()
	return nil
}
