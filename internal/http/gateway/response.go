package gateway

import (
	"math"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// write writes the reply to an event.
func (x *exchange) write(r *events.Reply) {
	why := x.body.why()
	switch {
	case why != nil && r.Failure != nil: // the handler failed for lack of the body
		x.refuse(why)
		return
	case r.Failure != nil:
		x.fail(r.Failure)
		return
	case r.Dropped > 0:
		x.fail(events.Fail(events.ReasonTooLarge, "the response has %d bytes", r.Dropped))
		return
	}
	if r.Socket != nil {
		x.headers(r)
		x.upgrade(r)
		return
	}
	size := int64(len(r.Body))
	if r.Stream != nil {
		size = window
	}
	if !x.g.owners.hold(x.event.Owner, size) {
		if r.Stream != nil {
			r.Stream.Cancel("the client was refused")
		}
		x.refuse(noMemory)
		return
	}
	defer x.g.owners.drop(x.event.Owner, size)
	x.headers(r)
	if r.Stream != nil {
		x.stream(r)
		return
	}
	if x.r.Method != http.MethodHead && r.Status != http.StatusNoContent && r.Status != http.StatusNotModified {
		x.w.Header()["Content-Length"] = []string{strconv.Itoa(len(r.Body))}
	}
	x.head(r.Status)
	_ = x.send(r.Body)
}

// headers sets the headers of a reply.
func (x *exchange) headers(r *events.Reply) {
	h := x.header()
	for i := 0; i+1 < len(r.Headers); i += 2 {
		name, value := textproto.CanonicalMIMEHeaderKey(r.Headers[i]), r.Headers[i+1]
		if !hopByHop[name] && name != headerEventID && !x.cors.owns(name) {
			h[name] = append(h[name], value)
		}
	}
	if len(h["Content-Length"]) > 1 { // clients differ in which one they believe
		h.Del("Content-Length")
	}
}

// header returns the headers of the response with those that are always there. The server must not guess a type.
func (x *exchange) header() http.Header {
	h := x.w.Header()
	h["Content-Type"] = nil
	x.cors.mark(h)
	if x.event != nil {
		h[headerEventID] = []string{x.event.ID}
	}
	return h
}

// head writes status and headers. The connection closes afterwards if the process ends. It also closes after a request
// body of unknown length, which ends where its chunks say: if a proxy before this process believes a Content-Length
// that was there too, what follows may look like another request (RFC 9112 §6.3). And it closes after a request of
// HTTP/1.0: the server ignores a Transfer-Encoding of it, by which a proxy may go (RFC 9112 §6.1).
func (x *exchange) head(status int) {
	if x.g.leaving.Load() || x.r.ProtoMajor == 1 && (x.r.ContentLength < 0 || x.r.ProtoMinor == 0) {
		x.w.Header().Set("Connection", "close")
	}
	if x.body == nil && x.r.ContentLength != 0 && x.r.ProtoMajor == 1 { // the server reads some of the body itself
		_ = x.control.SetReadDeadline(time.Now().Add(x.g.times.rest))
	}
	x.cookies(x.w.Header()) // of files, too
	x.status = status
	_ = x.control.SetWriteDeadline(time.Now().Add(x.g.times.write))
	x.w.WriteHeader(status)
}

// send writes a piece of the body. The error says that the client does not take it.
func (x *exchange) send(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	_ = x.control.SetWriteDeadline(time.Now().Add(x.g.times.write))
	n, err := x.w.Write(data)
	x.sent += int64(n)
	x.seen.add(data[:n])
	return err
}

// stream writes a body that the handler still makes, as fast as the client takes it. The connection is cut when the
// body is not complete, so that the client sees that.
func (x *exchange) stream(r *events.Reply) {
	s := r.Stream
	more := make(chan struct{}, 1)
	s.OnChunks(func() {
		select {
		case more <- struct{}{}:
		default:
		}
	})
	x.head(r.Status)
	granted, passes, way := int64(window), false, newPassage(x, s)
	defer way.leave()
	for {
		passes = passes || s.Through(way.write)
		select {
		case <-more:
		case <-x.r.Context().Done():
			s.Cancel(clientGone)
			x.cut()
		case <-x.g.ended.Done():
			s.Cancel("the process ends")
			x.cut()
		case <-way.gone:
			x.cut()
		}
		waits := false
		for _, c := range s.Take() {
			if err := x.send(c.Data); err != nil {
				s.Cancel(clientGone)
				x.cut()
			}
			if c.Failure != nil {
				way.end(c.Failure)
			}
			if c.End {
				return
			}
			waits = waits || c.Waits
		}
		if passes {
			continue
		}
		if x.control.Flush() != nil {
			s.Cancel(clientGone)
			x.cut()
		}
		if waits || x.sent+window/2 >= granted {
			granted = x.sent + window
			s.Grant(granted)
		}
	}
}

// preflight answers a browser that asks what a page may request. The worker does not run.
func (x *exchange) preflight() {
	if !x.cors.answer(x.w.Header(), x.r) {
		x.text(http.StatusForbidden, "the worker does not answer pages of this origin")
		return
	}
	x.head(http.StatusNoContent)
}

// refuse answers a request that became no event, or whose event had no reply.
func (x *exchange) refuse(no *refusal) {
	h := x.header()
	if x.r.ProtoMajor == 1 && (no.status == http.StatusRequestTimeout || no.status == http.StatusRequestEntityTooLarge) {
		h.Set("Connection", "close") // what follows is the rest of the body. HTTP/2 has a stream for it, which ends alone
	}
	if no.status == http.StatusUnauthorized {
		h["WWW-Authenticate"] = []string{`Bearer realm="worker"`, `Basic realm="worker"`}
	}
	text := no.text
	if list := x.g.cfg.Addresses; no == notFound && list != nil {
		text += "; these have one:\n" + strings.Join(list(), "\n")
	}
	x.text(no.status, text)
}

// fail answers with the failure of an event. Its message is for developers: it may have what the owner's code said.
func (x *exchange) fail(f *events.Failure) {
	text := string(f.Reason)
	if x.g.cfg.Messages {
		text = f.Error()
	}
	if f.RetryAfter > 0 {
		x.w.Header()[headerRetryAfter] = []string{strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds())))}
	}
	x.text(f.Reason.Status(), text)
}

// retryAfter is when a request that found no room may come again, seconds.
const (
	headerRetryAfter = "Retry-After"
	retryAfter       = "1"
)

func (x *exchange) text(status int, text string) {
	h := x.header()
	text += "\n"
	h["Content-Type"] = []string{"text/plain; charset=utf-8"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	if (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && h[headerRetryAfter] == nil {
		h[headerRetryAfter] = []string{retryAfter}
	}
	x.head(status)
	_ = x.send([]byte(text))
}
