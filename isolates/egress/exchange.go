package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/internal/lib/percent"
)

// Request is a request of the Fetch standard, as it is sent.
type Request struct {
	Method, URL string
	Redirect    string               // what to do with a redirect: follow, error, manual
	Headers     []string             // name, value, name, value …
	Body        []byte               // all of it, or nil
	Length      int64                // of the body that Open reads, in bytes; -1 = not known
	Open        func() io.ReadCloser // reads the body from its beginning, where Body is nil and Length is not 0
	Bare        bool                 // with just these Headers: none is added for servers, and Host is one of them
}

// Receiver takes a response. The goroutine of Connections.Exchange or Serve calls its methods in this order: Redirect;
// or Whole; or Head, Coding, Chunk for each chunk, and End. If there is an error, the rest of these calls do not come.
type Receiver interface {
	// Redirect takes the new location, and the values of the header Referrer-Policy.
	Redirect(status int, location, policies string)
	// Head takes the headers: name, value, name, value. Names are in lower case. coded says that the body comes in a
	// content coding. Then Coding follows.
	Head(status int, text string, headers []string, coded bool)
	// Coding waits until something takes the body, and returns the coding in which that takes it: "" = decoded.
	Coding(ctx context.Context) string
	// Whole takes a response with its body, at most chunkBytes. It keeps the body. Only Serve calls it.
	Whole(status int, text string, headers []string, body []byte)
	// Chunk takes a piece of the body. It returns when the next piece may come, or when ctx is done. reuse says that
	// the memory of the chunk may be used again.
	Chunk(ctx context.Context, chunk []byte) (reuse bool)
	// Grow asks for n bytes more of memory for a chunk, until the exchange is over. It returns false if there are none.
	// Only Exchange calls it.
	Grow(n int) bool
	// Spent reports CPU time that decoding took. The run pays for it.
	Spent(cpu time.Duration)
	// End reports that the body is complete.
	End()
}

const (
	chunkBytes      = 64 << 10  // of a response that are read at once; at least lifecycle.MaxShort
	longChunkBytes  = 256 << 10 // the same, of a server that has sent as many ahead, and if there is memory
	maxResponseBody = 64 << 20  // of one response, bytes
)

// Exchange sends one request and passes the response to to. It does not follow redirects. It returns when the response
// is complete, when ctx is done, or on failure. The error is in words for the author of a handler.
func (c *Connections) Exchange(ctx context.Context, q Request, to Receiver) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hr, err := httpRequest(ctx, &q)
	if err != nil {
		return err
	}
	own := acceptGzip(hr.Header, q.Method)
	resp, err := c.transport.RoundTrip(hr)
	if err != nil {
		return Tell(err, server(hr.URL))
	}
	defer func() { _ = resp.Body.Close() }()
	if follows, err := followed(&q, resp.StatusCode, resp.Header); err != nil {
		return err
	} else if follows {
		late := time.AfterFunc(redirectWait, cancel)
		_, _ = io.CopyN(io.Discard, resp.Body, redirectRest)
		late.Stop()
		passRedirect(resp.StatusCode, resp.Header, to)
		return nil
	}
	_, text, _ := strings.Cut(resp.Status, " ")
	coding := codingOf(resp)
	if own && coding == "gzip" { // the reader did not ask for it and does not see it
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		to.Head(resp.StatusCode, text, flat(resp.Header), false)
		return passDecoded(ctx, newDecoder(coding, resp.Body), server(hr.URL), to)
	}
	to.Head(resp.StatusCode, text, flat(resp.Header), coding != "")
	if coding != "" {
		return passCoded(ctx, coding, resp.Body, server(hr.URL), to)
	}
	return passBody(ctx, resp.Body, server(hr.URL), to)
}

// httpRequest converts q for net/http.
func httpRequest(ctx context.Context, q *Request) (*http.Request, error) {
	var body io.Reader
	switch {
	case q.Body != nil:
		body = bytes.NewReader(q.Body)
	case q.Length != 0:
		body = q.Open()
	}
	address := percent.Escape(q.URL)
	hr, err := http.NewRequestWithContext(ctx, q.Method, address, body)
	if err != nil {
		return nil, errors.New("the method or the URL cannot be sent")
	}
	if address != q.URL { // it is sent as it is
		hr.URL.Opaque, hr.URL.RawQuery, _ = strings.Cut(pathOf(q.URL), "?")
	}
	if q.Body == nil && q.Length > 0 {
		hr.ContentLength = q.Length
		hr.GetBody = func() (io.ReadCloser, error) { return q.Open(), nil }
	}
	for i := 0; i+1 < len(q.Headers); i += 2 {
		name := sentName(q.Headers[i])
		if name != "Host" || q.Bare {
			hr.Header[name] = append(hr.Header[name], HeaderBytes(q.Headers[i+1]))
		}
	}
	if user := hr.URL.User; user != nil && hr.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		hr.SetBasicAuth(user.Username(), password)
	}
	if !q.Bare {
		addDefaults(hr.Header)
	}
	return hr, nil
}

// pathOf is what of an absolute URL is sent, which comes behind the host.
func pathOf(address string) string {
	address, _, _ = strings.Cut(address, "#")
	_, rest, _ := strings.Cut(address, "://")
	return rest[max(0, strings.IndexAny(rest, "/?")):]
}

// sentName returns the spelling of a header name for HTTP/1. It is the handler's spelling, except for names that
// net/http itself reads.
func sentName(name string) string {
	canonical := http.CanonicalHeaderKey(name)
	switch canonical {
	case "Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Connection", "Content-Length", "Expect", "Host",
		"Idempotency-Key",
		"Proxy-Authorization", "Range", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "X-Idempotency-Key":
		return canonical
	}
	return name
}

// acceptGzip asks for gzip if the request names no coding, and returns true then. net/http does the same, but nobody
// would pay for the CPU time that its decoding takes.
func acceptGzip(h http.Header, method string) bool {
	if len(h["Accept-Encoding"]) > 0 || len(h["Range"]) > 0 || method == http.MethodHead {
		return false
	}
	h.Set("Accept-Encoding", "gzip")
	return true
}

// addDefaults adds the headers that the Fetch standard sends by default.
func addDefaults(h http.Header) {
	for _, pair := range [][2]string{{"User-Agent", "Pinwheel"}, {"Accept", "*/*"}, {"Accept-Language", "*"}} {
		if h.Get(pair[0]) == "" {
			h.Set(pair[0], pair[1])
		}
	}
}

// followed reports whether a response is a redirect that the request follows. The error says why that cannot be.
func followed(q *Request, status int, h http.Header) (bool, error) {
	switch locations := len(h.Values("Location")); {
	case !isRedirect(status):
	case q.Redirect == "error":
		return false, errors.New("the response is a redirect, and redirect is \"error\"")
	case q.Redirect == "follow" && locations > 1:
		return false, fmt.Errorf("the response is a redirect to %d places", locations)
	case q.Redirect == "follow" && locations == 1:
		return true, nil
	}
	return false, nil
}

func passRedirect(status int, h http.Header, to Receiver) {
	to.Redirect(status, escapeBytes(h.Get("Location")), strings.Join(h.Values("Referrer-Policy"), ","))
}

// isRedirect reports whether the Fetch standard calls this a redirect status.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// The body of a redirect is read so that its connection can be used again.
const (
	redirectRest = 4 << 10               // at most, bytes
	redirectWait = 50 * time.Millisecond // at most: it may never come
)

// escapeBytes percent-encodes the bytes beyond ASCII in a Location. A URL parser does the same with UTF-8. Bytes that
// are not UTF-8 stay the same bytes.
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

// flat is the list of headers that JavaScript gets.
func flat(h http.Header) (headers []string) {
	for name, values := range h {
		for _, v := range values {
			headers = append(headers, strings.ToLower(name), HeaderText(v))
		}
	}
	return headers
}

// passBody passes a body in chunks. They become longer when the server has sent as many bytes ahead: each chunk costs
// the receiver a turn.
func passBody(ctx context.Context, body io.Reader, from string, to Receiver) error {
	size := chunkBytes
	buffer := make([]byte, size)
	for total := 0; ; {
		n, err := body.Read(buffer)
		if total += n; total > maxResponseBody {
			return fmt.Errorf("response body is longer than %d bytes", maxResponseBody)
		}
		if n > 0 {
			reuse := to.Chunk(ctx, buffer[:n])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			grows := n == size && size < longChunkBytes && to.Grow(size)
			if grows {
				size *= 2
			}
			if grows || !reuse {
				buffer = make([]byte, size)
			}
		}
		if errors.Is(err, io.EOF) {
			to.End()
			return nil
		}
		if err != nil {
			return Told{inWords(err, from, true).Error(), codeOf(err)}
		}
	}
}
