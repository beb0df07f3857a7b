package isolates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// exchange sends one request and passes on the response: its head, then its body in chunks. A redirect that is to be followed goes to
// JavaScript, which sends the next request (64_redirect.js).
func (t *thread) exchange(ctx context.Context, r *run, c *call, q request) error {
	hr, err := t.httpRequest(ctx, r, c, &q)
	if err != nil {
		return err
	}
	conns := t.pool.fetcher.of(r.attempt.Worker.Owner)
	defer conns.release()
	resp, err := conns.transport.RoundTrip(hr)
	if err != nil {
		return inWords(err, server(hr.URL), false)
	}
	defer func() { _ = resp.Body.Close() }()
	if isRedirect(resp.StatusCode) {
		switch locations := resp.Header.Values("Location"); {
		case q.redirect == "error":
			return errors.New("the response is a redirect, and redirect is \"error\"")
		case q.redirect == "follow" && len(locations) > 1:
			return fmt.Errorf("the response is a redirect to %d places", len(locations))
		case q.redirect == "follow" && len(locations) == 1:
			t.redirect(r, c, resp, locations[0])
			return nil
		}
	}
	t.passHead(r, c, resp)
	return t.passBody(ctx, r, c, resp.Body, server(hr.URL))
}

// httpRequest is q as net/http has it.
func (t *thread) httpRequest(ctx context.Context, r *run, c *call, q *request) (*http.Request, error) {
	var body io.Reader
	switch {
	case q.body != nil:
		body = bytes.NewReader(q.body)
	case q.length != 0:
		body = &upload{ctx: ctx, t: t, r: r, c: c}
	}
	hr, err := http.NewRequestWithContext(ctx, q.method, q.url, body)
	if err != nil {
		return nil, errors.New("the method or the URL cannot be sent")
	}
	if q.body == nil && q.length > 0 {
		hr.ContentLength = q.length
		hr.GetBody = func() (io.ReadCloser, error) { return &upload{ctx: ctx, t: t, r: r, c: c}, nil }
	}
	for i := 0; i+1 < len(q.headers); i += 2 {
		name := sentName(q.headers[i])
		if name != "Host" {
			hr.Header[name] = append(hr.Header[name], toBytes(q.headers[i+1]))
		}
	}
	if user := hr.URL.User; user != nil && hr.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		hr.SetBasicAuth(user.Username(), password)
	}
	addDefaults(hr.Header)
	return hr, nil
}

// sentName is how the name of a header is sent over HTTP/1: as the handler spelled it, but for those that net/http itself looks for.
func sentName(name string) string {
	canonical := http.CanonicalHeaderKey(name)
	switch canonical {
	case "Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Connection", "Content-Length", "Expect", "Host", "Idempotency-Key",
		"Proxy-Authorization", "Range", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "X-Idempotency-Key":
		return canonical
	}
	return name
}

// addDefaults adds what the Fetch standard sends where the handler says nothing.
func addDefaults(h http.Header) {
	for _, pair := range [][2]string{{"User-Agent", "Pinwheel"}, {"Accept", "*/*"}, {"Accept-Language", "*"}} {
		if h.Get(pair[0]) == "" {
			h.Set(pair[0], pair[1])
		}
	}
}

// isRedirect is the Fetch standard's redirect status.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirectRest is how much of a redirect's body is read so that its connection can be used again.
const redirectRest = 4 << 10

// redirect tells JavaScript where the request is to go instead. The call is over with that.
func (t *thread) redirect(r *run, c *call, resp *http.Response, location string) {
	_, _ = io.CopyN(io.Discard, resp.Body, redirectRest)
	location = escapeBytes(location)
	policies := strings.Join(resp.Header.Values("Referrer-Policy"), ",")
	t.answer(r, c, true, func(call *v8x.Call) []byte {
		call.Reset(opRedirect).Number(c.id).Number(float64(resp.StatusCode)).String(location)
		if policies == "" {
			call.Null()
		} else {
			call.String(policies)
		}
		call.Bool(!guard.Redirects.Off())
		return nil
	})
}

// escapeBytes percent-encodes what is beyond ASCII in a Location, byte by byte: as UTF-8 the parser would do the same, and what is none keeps
// its bytes.
func escapeBytes(location string) string {
	if isASCII(location) {
		return location
	}
	var out strings.Builder
	for i := range len(location) {
		if b := location[i]; b < utf8.RuneSelf {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

// passHead brings the head of a response into JavaScript.
func (t *thread) passHead(r *run, c *call, resp *http.Response) {
	var headers []string
	for name, values := range resp.Header {
		for _, v := range values {
			headers = append(headers, strings.ToLower(name), fromBytes(v))
		}
	}
	_, statusText, _ := strings.Cut(resp.Status, " ")
	t.answer(r, c, false, func(call *v8x.Call) []byte {
		call.Reset(opResponse).Number(c.id).Number(float64(resp.StatusCode)).String(statusText).Strings(headers)
		return nil
	})
}

const (
	chunkBytes  = 64 << 10  // of a response that Go reads at once
	unreadBytes = 256 << 10 // of a response that are given before JavaScript asks for them
)

// passBody brings a response's body into JavaScript, chunk by chunk: the next is read when the thread has taken the one, and no more
// than unreadBytes ahead of whoever reads there.
func (t *thread) passBody(ctx context.Context, r *run, c *call, body io.Reader, from string) error {
	buffer := make([]byte, chunkBytes)
	for total := 0; ; {
		n, err := body.Read(buffer)
		if total += n; total > maxResponseBody {
			return fmt.Errorf("response body is longer than %d bytes", maxResponseBody)
		}
		if n > 0 {
			chunk := buffer[:n]
			t.postTo(r, func(t *thread) { t.takeChunk(r, c, chunk) })
			if buffer = c.pace(ctx, buffer); ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if errors.Is(err, io.EOF) {
			t.answer(r, c, true, func(call *v8x.Call) []byte {
				call.Reset(opChunk).Number(c.id).Null()
				return nil
			})
			return nil
		}
		if err != nil {
			return inWords(err, from, true)
		}
	}
}

// pace waits until the thread has taken what is in the buffer, which can then be used again.
func (c *call) pace(ctx context.Context, buffer []byte) []byte {
	if !c.paced {
		return make([]byte, chunkBytes)
	}
	select {
	case <-c.taken:
	case <-ctx.Done():
	}
	return buffer
}

// takeChunk brings a chunk into JavaScript. On the thread.
func (t *thread) takeChunk(r *run, c *call, chunk []byte) {
	if r.over || r.calls[c.id] != c {
		return
	}
	c.unread += len(chunk)
	t.chores.add(chore{run: r, do: func(t *thread) { t.chunkTaken(r, c) }}) // it follows the turn also when that leaves its thread
	t.call.Reset(opChunk).Number(c.id).Body()
	t.turn(r, t.call.Bytes(), chunk)
}

// chunkTaken lets the next chunk come unless too much is there that JavaScript has not asked for. On the thread.
func (t *thread) chunkTaken(r *run, c *call) {
	switch {
	case r.over || r.calls[c.id] != c || !c.paced:
	case c.unread < unreadBytes:
		c.taken <- struct{}{}
	default:
		c.stalled = true
		r.stalled++
		t.rest(r, c)
		if !r.ground && !r.mayGoOn() {
			t.stop(r, events.ReasonTimeout, "the handler can never finish: nothing it waits for is pending, and nobody reads the response it has")
		}
	}
}

// more is JavaScript asking for more of a response.
func (t *thread) more(r *run, id float64) {
	c := r.calls[id]
	if c == nil || c.taken == nil {
		return
	}
	c.unread = 0
	if c.stalled {
		c.stalled = false
		r.stalled--
		c.active = true
		r.active++
		c.taken <- struct{}{}
	}
}
