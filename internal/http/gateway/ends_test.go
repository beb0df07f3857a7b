package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// line is a connection that a test writes to, a piece at a time.
type line struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func openLine(t *testing.T, addr string) *line {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return &line{t, c, bufio.NewReader(c)}
}

func (l *line) say(text string) {
	l.t.Helper()
	_, err := io.WriteString(l, text)
	require.NoError(l.t, err)
}

// hears returns the next response, whose body it has read.
func (l *line) hears() *http.Response {
	l.t.Helper()
	r, err := http.ReadResponse(l.in, nil)
	require.NoError(l.t, err)
	_, err = io.Copy(io.Discard, r.Body)
	require.NoError(l.t, err)
	return r
}

// ends waits until the server closes the connection, and returns what it says before that.
func (l *line) ends() string {
	l.t.Helper()
	rest, err := io.ReadAll(l.in)
	require.NoError(l.t, err)
	return string(rest)
}

// answered opens a connection on which a request was answered. A loaded machine may take longer than the server waits
// for it.
func answered(t *testing.T, addr string) (l *line) {
	t.Helper()
	require.Eventually(t, func() bool {
		l = openLine(t, addr)
		_, _ = io.WriteString(l, unfinished+"\r\n")
		r, err := http.ReadResponse(l.in, nil)
		if err != nil {
			return false
		}
		_, err = io.Copy(io.Discard, r.Body)
		return err == nil && r.StatusCode == 200
	}, patience, time.Millisecond)
	return l
}

const unfinished = "GET / HTTP/1.1\r\nHost: w--acme.w.test\r\n"

// A client has a time for all headers of a request, also if some come all the time. Connections between requests, which
// have another one, stay.
func TestUnfinishedHeadersAreCut(t *testing.T) {
	t.Parallel()
	var s seen
	_, addr := open(t, domain, s.handle, func(g *Gateway) {
		g.times.header, g.times.idle = 100*time.Millisecond,
			patience
	})
	idle, later := answered(t, addr), answered(t, addr)
	require.GreaterOrEqual(t, len(s.take()), 2)
	for _, text := range []string{"", "GET / HT", "GET / HTTP/1.1\r\n", unfinished + "X-Lo"} {
		l := openLine(t, addr)
		l.say(text)
		if said := l.ends(); said != "" {
			require.Regexp(t, "^HTTP/1.1 400 ", said, "%q", text)
		}
	}
	later.say(unfinished) // the second request of a connection
	later.ends()

	slow := openLine(t, addr)
	slow.say(unfinished)
	over := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(slow.in)
		over <- err
	}()
	for cut := false; !cut; {
		select {
		case <-over: // it may be a reset: the server has not read all
			cut = true
		case <-time.After(10 * time.Millisecond):
			_, _ = io.WriteString(slow, "X: y\r\n")
		}
	}
	require.Empty(t, s.take())
	idle.say(unfinished + "\r\n")
	require.Equal(t, 200, idle.hears().StatusCode)
}

// A connection is closed when its next request does not begin in time. One whose request has begun, or runs, stays.
func TestIdleConnectionsAreCut(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	_, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		if e.Method == http.MethodPut {
			<-release
		}
		return &events.Reply{Status: 200}
	}, func(g *Gateway) { g.times.header, g.times.idle = patience, 100*time.Millisecond })
	begun, runs := openLine(t, addr), openLine(t, addr)
	begun.say(unfinished)
	runs.say("PUT / HTTP/1.1\r\nHost: w--acme.w.test\r\n\r\n")
	for range 3 {
		require.Empty(t, answered(t, addr).ends())
	}
	begun.say("\r\n")
	require.Equal(t, 200, begun.hears().StatusCode)
	close(release)
	require.Equal(t, 200, runs.hears().StatusCode)
}

// Requests that are under way when the process ends are answered, and tell the client to close the connection. A
// WebSocket would not end with its response, so there is none any more.
func TestDrain(t *testing.T) {
	t.Parallel()
	release, came := make(chan struct{}), make(chan struct{}, 1)
	g, addr := open(t, domain, func(*lifecycle.Delivery) *events.Reply {
		came <- struct{}{}
		<-release
		return &events.Reply{Status: 200, Body: []byte("whole")}
	}, func(g *Gateway) { g.times.leave = patience })
	got := make(chan *http.Response, 1)
	go func() { got <- raw(t, addr, "GET / HTTP/1.1\r\nHost: w--acme.w.test\r\n\r\n", 1)[0] }()
	<-came
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		g.Drain(context.Background())
	}()
	require.Eventually(t, g.leaving.Load, patience, time.Millisecond)
	list := raw(t, addr, "GET / HTTP/1.1\r\nHost: w--acme.w.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", 2)
	require.Len(t, list, 1, "the connection is closed")
	require.Equal(t, []any{503, "1", "the process ends\n", true},
		[]any{list[0].StatusCode, list[0].Header.Get("Retry-After"), text(t, list[0]), list[0].Close})
	close(release)
	r := <-got
	require.Equal(t, []any{"whole", true}, []any{text(t, r), r.Close})
	<-drained
	_, err := net.Dial("tcp", addr)
	require.Error(t, err)
}

// When the time to drain is over, requests that wait are told so, and when to come again.
func TestClose(t *testing.T) {
	t.Parallel()
	came, gone, answered := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	g, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		e.Requester.OnGone(func() { close(gone) })
		came <- struct{}{}
		<-answered // so the reply comes too late
		return &events.Reply{Status: 200}
	}, func(g *Gateway) { g.times.leave = patience })
	got := make(chan []*http.Response, 1)
	go func() { got <- raw(t, addr, "GET / HTTP/1.1\r\nHost: w--acme.w.test\r\n\r\n", 2) }()
	<-came
	g.Close()
	list := <-got
	close(answered)
	<-gone
	require.Len(t, list, 1)
	require.Equal(t, []any{503, "1", "unavailable: the process ends\n"},
		[]any{list[0].StatusCode, list[0].Header.Get("Retry-After"), text(t, list[0])})
}
