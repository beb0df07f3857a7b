package gateway

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// framedRequest is a request on a connection, as RFC 9112 frames it.
type framedRequest struct {
	method, path string
	body         string
	whole        bool // all of the body came
}

// sees reports whether a worker that got this has what a client sent. A body that breaks off is cut.
func (r framedRequest) sees(got framedRequest) bool {
	if r.method != got.method || r.path != got.path {
		return false
	}
	if got.whole {
		return r.whole && r.body == got.body
	}
	return strings.HasPrefix(r.body, got.body)
}

// framed returns the requests that a client frames with text. It ends where the framing is not clear, and after the
// first request after which a server has to close the connection, because others may frame what follows in another way.
// It checks nothing else: a server may refuse any of these.
func framed(text string) (list []framedRequest) {
	for rest := text; ; {
		r, version, fields, after, ok := requestHead(strings.TrimLeft(rest, "\r\n"))
		if !ok {
			return list
		}
		if codings := fields["transfer-encoding"]; codings != nil && version != "HTTP/1.0" {
			if len(codings) == 1 && strings.EqualFold(codings[0], "chunked") {
				r.body, r.whole = chunks(after)
				list = append(list, r)
			}
			return list
		}
		length, ok := lengthOf(fields["content-length"])
		if !ok {
			return list
		}
		if r.whole = length <= len(after); !r.whole {
			return list // a body of a known length comes whole, or not at all
		}
		r.body, rest = after[:length], after[length:]
		list = append(list, r)
		if version == "HTTP/1.0" { // it knows no Transfer-Encoding, and the server before may go by it
			return list
		}
	}
}

// requestHead reads the request line and the fields. Names are in lower case.
func requestHead(text string) (r framedRequest, version string, fields map[string][]string, rest string, ok bool) {
	line, rest, ok := strings.Cut(text, "\n")
	parts := strings.SplitN(strings.TrimSuffix(line, "\r"), " ", 3)
	if !ok || len(parts) < 3 || !strings.HasPrefix(parts[2], "HTTP/1.") {
		return r, "", nil, "", false
	}
	r.method, version, fields = parts[0], parts[2], map[string][]string{}
	if u, err := url.ParseRequestURI(parts[1]); err == nil {
		if r.path = u.EscapedPath(); !strings.HasPrefix(r.path, "/") {
			r.path = "/" + r.path
		}
		if u.RawQuery != "" || u.ForceQuery {
			r.path += "?" + u.RawQuery
		}
	}
	last := ""
	for {
		if line, rest, ok = strings.Cut(rest, "\n"); !ok {
			return r, "", nil, "", false
		}
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			return r, version, fields, rest, true
		}
		if values := fields[last]; values != nil && strings.ContainsAny(line[:1], " \t") { // of the field before
			values[len(values)-1] = strings.Trim(values[len(values)-1]+" "+strings.Trim(line, " \t"), " ")
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(name, " \t") {
			return r, "", nil, "", false
		}
		last = strings.ToLower(name)
		fields[last] = append(fields[last], strings.Trim(value, " \t"))
	}
}

// lengthOf reads Content-Length: one number, which may be there several times.
func lengthOf(values []string) (n int, ok bool) {
	for _, v := range values {
		if v != values[0] || strings.Trim(v, "0123456789") != "" {
			return 0, false
		}
	}
	if values == nil {
		return 0, true
	}
	n, err := strconv.Atoi(values[0])
	return n, err == nil
}

// chunks reads a body in chunks, up to the first that is not clear. What follows is of no interest.
func chunks(text string) (body string, whole bool) {
	var b bytes.Buffer
	for {
		line, rest, ok := strings.Cut(text, "\r\n")
		digits, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimRight(digits, " \t"), 16, 63)
		if !ok || err != nil {
			return b.String(), false
		}
		if n == 0 {
			return b.String(), true
		}
		if n > uint64(len(rest)) {
			b.WriteString(rest)
			return b.String(), false
		}
		b.WriteString(rest[:n])
		if text, ok = strings.CutPrefix(rest[n:], "\r\n"); !ok {
			return b.String(), false
		}
	}
}

// framings are connections with how many requests are framed on each.
var framings = []struct {
	text string
	n    int
}{
	{hidden + hidden, 2},
	{"POST /a HTTP/1.1\r\n" + helloHost + "Content-Length: 3\r\n\r\nabc" + hidden, 2},
	{"POST /a HTTP/1.1\r\n" + helloHost + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc\r\n" + hidden, 2},
	{"POST /a HTTP/1.1\r\n" + helloHost + "Content-Length: 3000\r\n\r\n" + hidden, 0},
	{"POST /a HTTP/1.1\r\n" + helloHost + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + hidden, 1},
	{"POST /a HTTP/1.1\r\n" + helloHost + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\n" + hidden, 1},
	{"POST /a HTTP/1.1\r\n" + helloHost + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" + hidden, 2},
	{"GET /a HTTP/1.1\r\n" + helloHost + "Content-Length: 3\r\n\r\nabc" + hidden, 2},
	{"GET /a HTTP/1.1\r\n" + helloHost + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n" + hidden, 2},
	{"POST http://hello--acme.w.test/a?b HTTP/1.1\r\n" + helloHost + "Content-Length: 0\r\n\r\n" + hidden, 2},
	{"POST /a HTTP/1.0\r\n" + helloHost + "Connection: keep-alive\r\nContent-Length: 1\r\n\r\nx" + hidden, 1},
	{"POST /a HTTP/1.0\r\n" + helloHost + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + hidden, 1},
	{"POST /a HTTP/1.0\r\n" + helloHost + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\nx" + hidden, 1},
}

// TestFramed checks the reference of FuzzConnection: without it, that may find nothing.
func TestFramed(t *testing.T) {
	t.Parallel()
	for _, c := range framings {
		require.Len(t, framed(c.text), c.n, "%q", c.text)
	}
	require.Equal(t, []framedRequest{{"POST", "/a?b", "abc", true}, {"GET", "/smuggled", "", true}},
		framed("POST /a?b HTTP/1.1\r\nX: y\r\n z\r\nContent-Length: 3\r\n\r\nabc"+hidden))
	for name, text := range smuggling {
		for _, r := range framed(text) {
			require.NotEqual(t, "/smuggled", r.path, name)
		}
	}
	// What is framed comes.
	d := openDoor(t)
	d.send(t, "POST /a HTTP/1.1\r\n"+helloHost+"Content-Length: 3\r\n\r\nabc"+marker)
	require.Equal(t, []framedRequest{{"POST", "/a", "abc", true}, {"GET", "/marker", "", true}}, d.take())
}
