package gateway

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"regexp"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/internal/lib/percent"
)

// requestLine reads the first line of each request of a connection that is not encrypted. net/http refuses a path with
// a % that escapes nothing, which browsers send and other servers take: it gets a %25 there. One goroutine reads at a
// time.
type requestLine struct {
	begins atomic.Bool // the next bytes that come may begin a request
	held   []byte      // the beginning of a line
	ready  []byte      // to be read
}

// lineParts are what is before the path, the path, and the rest. The server may have read the first byte already, while
// it answered the request before.
var lineParts = regexp.MustCompile(`^([A-Za-z]* )(/[^ ?\r\n]*)([^ \r\n]* HTTP/1\.[01]\r?\n)`)

// read is Read for the connection.
func (l *requestLine) read(p []byte, read func([]byte) (int, error)) (int, error) {
	for len(l.ready) == 0 {
		n, err := read(p)
		if len(l.held) == 0 && (n == 0 || !l.begins.Load()) {
			return n, err
		}
		end := bytes.IndexByte(p[:n], '\n')
		if len(l.held) == 0 && end >= 0 && bytes.IndexByte(p[:end], '%') < 0 {
			l.begins.Store(false)
			return n, err
		}
		l.held = append(l.held, p[:n]...)
		if end < 0 && err == nil && len(l.held) < maxHeaderBytes {
			continue
		}
		l.begins.Store(false)
		l.ready, l.held = escapedLine(l.held), nil // an error comes again
	}
	n := copy(p, l.ready)
	l.ready = l.ready[n:]
	return n, nil
}

func escapedLine(data []byte) []byte {
	m := lineParts.FindSubmatchIndex(data)
	if m == nil {
		return data
	}
	path := percent.Escape(string(data[m[4]:m[5]]))
	return append(append(data[:m[3]:m[3]], path...), data[m[5]:]...)
}

type connectionKey struct{}

// withConnection notes the connection of a request. It is a ConnContext.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// requestCame says that what comes next on the connection is no request line, also where the server had read the whole
// request before it asked for it.
func requestCame(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		c.line.begins.Store(false)
	}
}
