package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

const (
	helloHost = "Host: hello--acme.w.test\r\n"
	hidden    = "GET /smuggled HTTP/1.1\r\n" + helloHost + "\r\n"
)

// smuggling are requests whose body another server ends elsewhere, and what follows is hidden.
var smuggling = map[string]string{
	"length and chunks": "POST / HTTP/1.1\r\n" + helloHost + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		5+len(hidden)) + hidden,
	"chunks and length": "POST / HTTP/1.1\r\n" + helloHost + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden),
	"two codings": "POST / HTTP/1.1\r\n" + helloHost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
	"hidden coding": "POST / HTTP/1.1\r\n" + helloHost + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		5+len(hidden)) + hidden,
	"folded coding":          "POST / HTTP/1.1\r\n" + helloHost + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden,
	"length list":            "POST / HTTP/1.1\r\n" + helloHost + "Content-Length: 0, 5\r\n\r\n" + hidden,
	"length with sign":       "POST / HTTP/1.1\r\n" + helloHost + "Content-Length: +0\r\n\r\n" + hidden,
	"chunk size overflow":    "POST / HTTP/1.1\r\n" + helloHost + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n" + hidden,
	"chunk extension and LF": "POST / HTTP/1.1\r\n" + helloHost + "Transfer-Encoding: chunked\r\n\r\n0;\n\r\n\r\n" + hidden,
}

// What one proxy takes for a body must not become a request here.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	var s seen
	_, addr := open(t, domain, s.handle)
	for name, request := range smuggling {
		raw(t, addr, request, 3)
		for _, e := range s.take() {
			require.NotContains(t, e.URL, "smuggled", name)
		}
	}
	// A second request on a connection is one when the first is clear about its end.
	require.Len(t, raw(t, addr, "POST / HTTP/1.1\r\n"+helloHost+"Content-Length: 1\r\n\r\nx"+"GET /second HTTP/1.1\r\n"+
		helloHost+"\r\n", 2), 2)
	require.Len(t, s.take(), 2)
}

// bodies runs events, and keeps what each had.
type bodies struct {
	mu   sync.Mutex
	list []framedRequest
}

func (b *bodies) handle(e *lifecycle.Delivery) *events.Reply {
	body, whole := e.Body, true
	for i := 0; e.Parts != nil; i++ {
		part, err := e.Parts.Read(context.Background(), i)
		if body = append(body, part...); err != nil {
			whole = errors.Is(err, io.EOF)
			break
		}
	}
	_, path, _ := strings.Cut(e.URL, "://")
	_, path, _ = strings.Cut(path, "/")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, framedRequest{e.Method, "/" + path, string(body), whole})
	return &events.Reply{Status: 200}
}

func (b *bodies) take() []framedRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list = nil
	return list
}

// faults are what the server says about panics.
type faults struct {
	mu   sync.Mutex
	text string
}

func (f *faults) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.Contains(string(p), "panic") {
		f.text += string(p)
	}
	return len(p), nil
}

func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text
}

// door is a gateway that answers connections, for fuzzing. A client that does not go on waits for a moment only.
type door struct {
	bodies
	faults faults
	addr   string
}

func openDoor(t testing.TB) *door {
	d := &door{}
	g := newGateway(t, domain, handler(d.handle))
	g.log = zerolog.Nop() // the log of a test takes none of its fuzzing
	const moment = 20 * time.Millisecond
	g.times = times{header: moment, idle: moment, write: patience, body: moment, piece: moment, rest: moment,
		leave: moment}
	g.server = g.newServer()
	g.server.ErrorLog = stdlog.New(&d.faults, "", 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Close()
		require.NoError(t, <-served)
	})
	d.addr = l.Addr().String()
	return d
}

// send writes text on a connection of its own, and returns when the server has closed it.
func (d *door) send(t testing.TB, text string) {
	c, err := net.Dial("tcp", d.addr)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	require.NoError(t, c.(*net.TCPConn).SetLinger(0))
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, _ = io.WriteString(c, text) // the server may have closed the connection already
	_, err = io.Copy(io.Discard, c)
	var network net.Error
	require.False(t, errors.As(err, &network) && network.Timeout(), "the server neither answers nor closes: %q", text)
}

// marker follows what the fuzzer sends.
const marker = "GET /marker HTTP/1.1\r\n" + helloHost + "Connection: close\r\n\r\n"

// FuzzConnection: whatever a client sends, a worker gets only requests that the client has framed, each with its body.
// TestFramed says what those are.
func FuzzConnection(f *testing.F) {
	for _, s := range smuggling {
		f.Add(s)
	}
	for _, s := range framings {
		f.Add(s.text)
	}
	d := openDoor(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			return // the sockets of both sides hold more
		}
		d.send(t, text+marker)
		want := framed(text + marker)
		for _, got := range d.take() {
			at := slices.IndexFunc(want, func(r framedRequest) bool { return r.sees(got) })
			require.GreaterOrEqual(t, at, 0, "%+v was not sent: %q", got, text+marker)
			want = want[at+1:]
		}
		require.Empty(t, d.faults.String())
	})
}
