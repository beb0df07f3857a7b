package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	parallel.AtOnce(parallel.Fleets)
	goleak.VerifyTestMain(m)
}

// patience is how long tests wait for what must happen.
const patience = time.Minute

// handler runs events, each in a goroutine of its own.
type handler func(e *lifecycle.Delivery) *events.Reply

func (h handler) Submit(batch []*lifecycle.Delivery) {
	for _, e := range batch {
		go func() {
			e.Caller.Reply(h(e))
			e.Caller.End()
		}()
	}
}

// open serves with h, and returns the gateway, its address and how to end it.
func open(t *testing.T, cfg Config, h handler, change ...func(*Gateway)) (g *Gateway, addr string) {
	t.Helper()
	g = newGateway(t, cfg, h)
	// a busy machine takes long to send
	g.times.leave, g.times.idle, g.times.header = 50*time.Millisecond, 300*time.Millisecond, patience
	for _, f := range change {
		f(g)
	}
	g.server = g.newServer()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Close()
		require.NoError(t, <-served)
	})
	return g, l.Addr().String()
}

// seen records events and answers 200 "ok".
type seen struct {
	mu   sync.Mutex
	list []*lifecycle.Delivery
}

func (s *seen) handle(e *lifecycle.Delivery) *events.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, e)
	return &events.Reply{Status: 200, Headers: []string{"content-type", "text/plain"}, Body: []byte("ok"),
		Version: "1-abc"}
}

func (s *seen) take() []*lifecycle.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

var domain = Config{Domain: "w.test", Log: true}

// raw sends bytes on a connection of its own and returns all responses until the server closes it or answers n times.
func raw(t *testing.T, addr, request string, n int) (list []*http.Response) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, request)
	require.NoError(t, err)
	in := bufio.NewReader(c)
	method, _, _ := strings.Cut(request, " ")
	for range n {
		r, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server neither answers nor closes: %.200q", request)
			return list
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			require.GreaterOrEqual(t, r.StatusCode, 400, "%v after %.200q", err, request) // it does not read what comes after
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		list = append(list, r)
	}
	return list
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b)
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]target{
		"hello--acme.w.test":       {owner: "acme", worker: "hello"},
		"HELLO--Acme.W.Test.:8080": {owner: "acme", worker: "hello"},
		"3--hello--acme.w.test":    {owner: "acme", worker: "hello", preview: "3"},
		"a-b_c--x-y.w.test":        {owner: "x-y", worker: "a-b_c"},
	} {
		got, ok := byHost(hostName(host), "w.test")
		require.True(t, ok, host)
		require.Equal(t, want, got, host)
	}
	for _, host := range []string{
		"", "w.test", ".w.test", "hello.w.test", "hello--acme", "hello--acme.x.test", "hello--acme.w.test.evil.test",
		"hello--acmew.test",
		"a--b--c--d.w.test", "--b.w.test", "a--.w.test", "a---b.w.test", "--a--b.w.test", "a.b--c.w.test", "a--b c.w.test",
		"a--b\x00.w.test",
	} {
		_, ok := byHost(hostName(host), "w.test")
		require.False(t, ok, host)
	}
	_, ok := byHost("a--b.", "")
	require.False(t, ok)
	// What can be no host is refused before anything looks for it.
	long := strings.Repeat("a.", 124) + "a.w.t" // 253 bytes
	require.Equal(t, long, hostName(strings.ToUpper(long)+".:65535"))
	for _, host := range []string{"b" + long, long + ".a", strings.Repeat("a.", 30_000) + "test",
		strings.Repeat(".", maxLabels+1)} {
		require.Empty(t, hostName(host), host)
	}
}

// A page of another site has a name of its own point to this machine: it reads nothing here. Names of this machine,
// addresses, and what the operator or a manifest names, are answered.
func TestHostsThatAreAnswered(t *testing.T) {
	t.Parallel()
	var s seen
	g, addr := open(t, Config{Domain: "w.test", Paths: "dev", Hosts: []string{"mine.example", "*.tunnel.example"}},
		s.handle)
	g.Routes.Install(routed("dev", "site", "shop.example/*", "*.eu.shop.example/*", "*/*"))
	for host, want := range map[string]int{
		"localhost:8787": 200, "hello--dev.localhost": 200, "127.0.0.1": 200, "[::1]:80": 200, "hello--dev.w.test": 200,
		"mine.example": 200, "a.tunnel.example:1": 200,
		"shop.example": 200, "a.eu.shop.example": 200, "evil.example": 421, "shop.example.evil.example": 421,
		"eu.shop.example": 421, "w.test.evil.example": 421, "tunnel.example": 421,
	} {
		status, _, _ := ask(t, addr, "GET", host, "/hello")
		require.Equal(t, want, status, host)
	}
	_, addr = open(t, Config{Paths: "dev"}, s.handle)
	status, _, _ := ask(t, addr, "GET", "any.example", "/hello")
	require.Equal(t, 200, status, "without Hosts every host is answered")
}

func TestRequestBecomesEvent(t *testing.T) {
	t.Parallel()
	var s seen
	_, addr := open(t, domain, s.handle)
	list := raw(t, addr, "POST /a%2Fb?x=1&y HTTP/1.1\r\nHost: hello--acme.w.test\r\nContent-Length: 5\r\nX-One: 1\r\nX-One: 2\r\n"+
		"Connection: close, X-Hop\r\nX-Hop: no\r\nKeep-Alive: no\r\nTe: no\r\nUpgrade: no\r\nProxy-Authorization: no\r\n"+
		"Event-Id: mine\r\nX-Real-Ip: 1.2.3.4\r\nCF-Connecting-IP: 1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nForwarded: for=1.2.3.4\r\nX-Forwarded-Prefix: /x\r\n"+
		"Version-Key: ada\r\n\r\nhello", 1)
	require.Len(t, list, 1)
	r := list[0]
	require.Equal(t, []any{200, "ok", "text/plain", int64(2)},
		[]any{r.StatusCode, text(t, r), r.Header.Get("Content-Type"), r.ContentLength})
	got := s.take()
	require.Len(t, got, 1)
	e := got[0]
	require.Equal(t, []any{events.Fetch, "acme", "hello", activeVersion, "ada", "POST",
		"http://hello--acme.w.test/a%2Fb?x=1&y", "hello"},
		[]any{e.Kind, e.Owner, e.Worker, e.Version, e.VersionKey, e.Method, e.URL, string(e.Body)})
	require.Equal(t, e.ID, r.Header.Get("Event-Id"))
	require.NotEqual(t, "mine", e.ID)
	require.WithinDuration(t, time.Now().Add(30*time.Second), e.Deadline, 20*time.Second)
	headers := http.Header{}
	for i := 0; i < len(e.HTTPHeaders); i += 2 {
		headers.Add(e.HTTPHeaders[i], e.HTTPHeaders[i+1])
	}
	require.Equal(t, http.Header{
		"Host": {"hello--acme.w.test"}, "Content-Length": {"5"}, "X-One": {"1", "2"}, "Version-Key": {"ada"},
		"Event-Id":        {e.ID},
		"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {"hello--acme.w.test"}, "X-Forwarded-Proto": {"http"},
		"X-Real-Ip": {"127.0.0.1"}, "Cf-Connecting-Ip": {"127.0.0.1"},
	}, headers)
}

func TestPaths(t *testing.T) {
	t.Parallel()
	var s seen
	_, addr := open(t, Config{Paths: "dev", Domain: "localhost"}, s.handle)
	get := func(path, host string) (int, *lifecycle.Delivery) {
		list := raw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n", 1)
		require.Len(t, list, 1, path)
		if got := s.take(); len(got) > 0 {
			return list[0].StatusCode, got[0]
		}
		return list[0].StatusCode, nil
	}
	for path, url := range map[string]string{"/hello": "http://127.0.0.1:1/", "/hello/": "http://127.0.0.1:1/",
		"/hello/a/b?c": "http://127.0.0.1:1/a/b?c", "/%68ello/a/../%62": "http://127.0.0.1:1/%62"} {
		_, e := get(path, "127.0.0.1:1")
		require.Equal(t, []string{"dev", "hello", url}, []string{e.Owner, e.Worker, e.URL}, path)
		require.Equal(t, []string{"X-Forwarded-Prefix", "/hello"}, e.HTTPHeaders[len(e.HTTPHeaders)-2:])
	}
	_, e := get("/x", "api--dev.localhost:8787")
	require.Equal(t, []string{"dev", "api", "http://api--dev.localhost:8787/x"}, []string{e.Owner, e.Worker, e.URL})
	for _, path := range []string{"/", "//hello", "/a.b/", "/x/%2e%2e/", "/hello%2fx"} {
		status, e := get(path, "127.0.0.1")
		require.Equal(t, http.StatusNotFound, status, path)
		require.Nil(t, e, path)
	}
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	g := newGateway(t,
		Config{Trust: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}, nil)
	for _, c := range []struct{ from, forwarded, proto, address, chain, scheme string }{
		{"192.0.2.1:5", "1.1.1.1", "https", "192.0.2.1", "192.0.2.1", "http"},
		{"10.0.0.1:5", "", "", "10.0.0.1", "10.0.0.1", "http"},
		{"10.0.0.1:5", "1.1.1.1", "https", "1.1.1.1", "1.1.1.1, 10.0.0.1", "https"},
		{"10.0.0.1:5", "6.6.6.6, 1.1.1.1, 10.9.9.9", "gopher", "1.1.1.1", "6.6.6.6, 1.1.1.1, 10.9.9.9, 10.0.0.1", "http"},
		{"[fd00::1]:5", "not an address", "", "fd00::1", "not an address, fd00::1", "http"},
		{"[::ffff:10.0.0.1]:5", "2001:db8::1", "https", "2001:db8::1", "2001:db8::1, 10.0.0.1", "https"},
		{"10.0.0.1:5", "10.0.0.2, 10.0.0.3", "", "10.0.0.2", "10.0.0.2, 10.0.0.3, 10.0.0.1", "http"},
	} {
		r := &http.Request{RemoteAddr: c.from, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if c.proto != "" {
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		got := g.clientOf(r)
		require.Equal(t, []string{c.address, c.chain, c.scheme}, []string{got.address.String(), got.chain, got.scheme}, "%+v",
			c)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	var s seen
	_, addr := open(t, Config{Domain: "w.test", MaxBody: 100 << 10}, s.handle)
	const host = "Host: hello--acme.w.test\r\n"
	many := strings.Repeat("A: b\r\n", 101)
	for name, c := range map[string]struct {
		request string
		status  int
		text    string
	}{
		"unknown host":   {"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", 404, "no worker has this address\n"},
		"no host":        {"GET / HTTP/1.1\r\n\r\n", 400, "missing required Host header"},
		"bad host":       {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "malformed Host header"},
		"strange host":   {"GET / HTTP/1.1\r\nHost: a$b\r\n\r\n", 400, "the Host of the request is no host\n"},
		"connect":        {"CONNECT hello--acme.w.test:80 HTTP/1.1\r\n" + host + "\r\n", 405, "method CONNECT is not for workers\n"},
		"trace":          {"TRACE / HTTP/1.1\r\n" + host + "\r\n", 405, "method TRACE is not for workers\n"},
		"track":          {"track / HTTP/1.1\r\n" + host + "\r\n", 405, "method track is not for workers\n"},
		"get with body":  {"GET / HTTP/1.1\r\n" + host + "Content-Length: 1\r\n\r\nx", 400, "a GET request has no body\n"},
		"head with body": {"HEAD / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, ""},
		"star":           {"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", 400, "* is not for workers\n"},
		"long header": {"GET / HTTP/1.1\r\n" + host + "A: " + strings.Repeat("x", 8<<10) + "\r\n\r\n", 431,
			"header A is too long\n"},
		"many headers": {"GET / HTTP/1.1\r\n" + host + many + "\r\n", 431, "there are too many headers\n"},
		"large headers": {"GET / HTTP/1.1\r\n" + host + strings.Repeat("A: "+strings.Repeat("x", 7<<10)+"\r\n", 20) + "\r\n",
			431, ""},
		"long path": {"GET /" + strings.Repeat("x", 80<<10) + " HTTP/1.1\r\n" + host + "\r\n", 431, ""},
		"large body": {"POST / HTTP/1.1\r\n" + host + "Content-Length: 102401\r\n\r\n", 413,
			"the body is larger than 102400 bytes\n"},
		"long key": {"GET / HTTP/1.1\r\n" + host + "Version-Key: " + strings.Repeat("x", 257) + "\r\n\r\n", 400,
			"header Version-Key is too long\n"},
		"two lengths":     {"POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400, ""},
		"unknown coding":  {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\nx", 501, ""},
		"negative length": {"POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\nx", 400, ""},
		"space in name":   {"POST / HTTP/1.1\r\n" + host + "Content-Length : 1\r\n\r\nx", 400, ""},
	} {
		list := raw(t, addr, c.request, 1)
		require.Len(t, list, 1, name)
		require.Equal(t, c.status, list[0].StatusCode, name)
		require.Contains(t, text(t, list[0]), c.text, name)
		require.Empty(t, s.take(), name)
	}
}

func TestReplies(t *testing.T) {
	t.Parallel()
	replies := map[string]*events.Reply{
		"/created": {Status: 201, Headers: []string{"location", "/x", "set-cookie", "a=1", "set-cookie", "b=2", "connection",
			"upgrade", "transfer-encoding", "gzip", "event-id", "forged"}, Body: []byte("made")},
		"/empty":   {Status: 204},
		"/html":    {Status: 200, Body: []byte("<html>")},
		"/lengths": {Status: 200, Headers: []string{"content-length", "1", "Content-Length", "99"}, Body: []byte("four")},
		"/split":   {Status: 200, Headers: []string{"x", "a\r\nSet-Cookie: evil=1"}, Body: []byte("x")},
		"/throws":  {Failure: events.Fail(events.ReasonException, "the password is 42")},
		"/cpu":     {Failure: events.Fail(events.ReasonCPU, "x")},
		"/full":    {Failure: events.Fail(events.ReasonUnavailable, "x")},
		"/dropped": {Status: 200, Dropped: 1 << 30},
		"/none":    {Failure: events.Fail(events.ReasonNoWorker, "there is no worker acme/w")},
	}
	_, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		return replies[strings.TrimPrefix(e.URL, "http://w--acme.w.test")]
	})
	get := func(method, path string) *http.Response {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: w--acme.w.test\r\nConnection: close\r\n\r\n", method, path)
		require.NoError(t, err)
		r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		return r
	}
	r := get("GET", "/created")
	require.Equal(t, []any{201, "made", "/x", []string{"a=1", "b=2"}},
		[]any{r.StatusCode, text(t, r), r.Header.Get("Location"), r.Header["Set-Cookie"]})
	require.NotEqual(t, "forged", r.Header.Get("Event-Id"))
	require.NotContains(t, r.Header, "Content-Type", "the server guesses no type")
	r = get("HEAD", "/created")
	require.Equal(t, []any{201, ""}, []any{r.StatusCode, text(t, r)})
	require.Equal(t, 204, get("GET", "/empty").StatusCode)
	require.NotContains(t, get("GET", "/html").Header, "Content-Type")
	r = get("GET", "/lengths")
	require.Equal(t, []any{[]string{"4"}, "four"}, []any{r.Header["Content-Length"], text(t, r)})
	require.Empty(t, get("GET", "/split").Header.Get("Set-Cookie"))
	for path, want := range map[string][]any{
		"/throws": {500, "exception\n", ""}, "/cpu": {429, "cpu\n", "1"}, "/full": {503, "unavailable\n", "1"},
		"/dropped": {500, "too-large\n", ""}, "/none": {404, "no-worker\n", ""},
	} {
		r := get("GET", path)
		require.Equal(t, want, []any{r.StatusCode, text(t, r), r.Header.Get("Retry-After")}, path)
		require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
	}
}

func TestMessagesForDevelopers(t *testing.T) {
	t.Parallel()
	_, addr := open(t, Config{Domain: "w.test", Messages: true}, func(*lifecycle.Delivery) *events.Reply {
		return &events.Reply{Failure: events.Fail(events.ReasonException, "TypeError: x is not a function")}
	})
	list := raw(t, addr, "GET / HTTP/1.1\r\nHost: w--acme.w.test\r\nConnection: close\r\n\r\n", 1)
	require.Equal(t, "exception: TypeError: x is not a function\n", text(t, list[0]))
}

// client sends requests as a program does.
func newClient(t *testing.T, addr string) *http.Client {
	t.Helper()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

const address = "http://w--acme.w.test/"

// A long body comes in parts while the event runs, and the response's body goes out while it is made.
func TestBodiesBothWays(t *testing.T) {
	t.Parallel()
	_, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		s := &events.Stream{Cancel: func(string) {}}
		granted := make(chan int64, 1<<10)
		s.Grant = func(upTo int64) { granted <- upTo }
		go func() {
			upTo, sent := e.Requester.Credit, int64(0)
			for i := 0; ; i++ {
				part, err := e.Parts.Read(context.Background(), i)
				if errors.Is(err, io.EOF) {
					break
				}
				for sent+int64(len(part)) > upTo {
					upTo = <-granted
				}
				sent += int64(len(part))
				s.Push(events.Chunk{Data: part})
			}
			s.Push(events.Chunk{End: true})
		}()
		return &events.Reply{Status: 200, Stream: s}
	})
	for _, size := range []int64{wholeBody + 1, 200 << 10, 300 << 10, 8 << 20} {
		for _, length := range []int64{size, -1} { // -1: in chunks
			req, err := http.NewRequestWithContext(t.Context(), "POST", address, io.LimitReader(counting{}, size))
			require.NoError(t, err)
			req.ContentLength = length
			r, err := newClient(t, addr).Do(req)
			require.NoError(t, err)
			n, err := io.Copy(io.Discard, r.Body)
			require.NoError(t, err, "%d %d", size, length)
			require.NoError(t, r.Body.Close())
			require.EqualValues(t, size, n, "%d", length)
		}
	}
}

// A handler may answer a part of the body before the client sends the next one.
func TestConversation(t *testing.T) {
	t.Parallel()
	_, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		s := &events.Stream{Cancel: func(string) {}, Grant: func(int64) {}}
		go func() {
			for i := 0; ; i++ {
				part, err := e.Parts.Read(context.Background(), i)
				if err != nil {
					break
				}
				s.Push(events.Chunk{Data: part})
			}
			s.Push(events.Chunk{End: true})
		}()
		return &events.Reply{Status: 200, Stream: s}
	})
	const size = wholeBody + 10
	for _, head := range []string{fmt.Sprintf("Content-Length: %d", size), "Transfer-Encoding: chunked"} {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		in := bufio.NewReader(c)
		say := func(text string) {
			if strings.HasPrefix(head, "Transfer") {
				text = fmt.Sprintf("%x\r\n%s\r\n", len(text), text)
			}
			_, err := io.WriteString(c, text)
			require.NoError(t, err)
		}
		_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: w--acme.w.test\r\n"+head+"\r\n\r\n")
		require.NoError(t, err)
		say("first")
		r, err := http.ReadResponse(in, &http.Request{Method: "POST"})
		require.NoError(t, err)
		for _, text := range []string{"first", "second", "third"} {
			if text != "first" {
				say(text)
			}
			got := make([]byte, len(text))
			_, err = io.ReadFull(r.Body, got)
			require.NoError(t, err, "%s: %s", head, text)
			require.Equal(t, text, string(got))
		}
		_ = c.Close() // first: closing the body reads what is left of it
		_ = r.Body.Close()
	}
}

// counting is an endless body.
type counting struct{}

func (counting) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A client that does not read lets its worker be ahead by the window only.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	pushed := make(chan int64, 1)
	_, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		cancelled := make(chan struct{})
		s := &events.Stream{Cancel: func(string) { close(cancelled) }}
		grants := make(chan int64, 1<<16)
		s.Grant = func(upTo int64) { grants <- upTo }
		go func() {
			upTo, sent := e.Requester.Credit, int64(0)
			for {
				for ; sent < upTo; sent += 16 << 10 {
					s.Push(events.Chunk{Data: make([]byte, 16<<10)})
				}
				select {
				case upTo = <-grants:
				case <-cancelled:
					pushed <- sent
					return
				}
			}
		}()
		return &events.Reply{Status: 200, Stream: s}
	}, func(g *Gateway) { g.times.write = 200 * time.Millisecond })
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: w--acme.w.test\r\n\r\n")
	require.NoError(t, err)
	select {
	case n := <-pushed:
		require.Less(t, n, int64(16<<20), "what the sockets of both sides hold, and the window")
	case <-time.After(patience):
		t.Fatal("the worker is not told")
	}
}

func TestClientGone(t *testing.T) {
	t.Parallel()
	gone, came := make(chan struct{}), make(chan struct{})
	_, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		e.Requester.OnGone(func() { close(gone) })
		close(came)
		<-gone
		return &events.Reply{Status: 200}
	})
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: w--acme.w.test\r\n\r\n")
	require.NoError(t, err)
	<-came
	require.NoError(t, c.Close())
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("the worker is not told")
	}
}

// A body that breaks off is cut, and the client sees that.
func TestResponseThatBreaksOff(t *testing.T) {
	t.Parallel()
	_, addr := open(t, domain, func(*lifecycle.Delivery) *events.Reply {
		s := &events.Stream{Grant: func(int64) {}, Cancel: func(string) {}}
		s.Push(events.Chunk{Data: []byte("half")})
		s.Push(events.Chunk{Failure: events.Fail(events.ReasonCPU, "x")})
		return &events.Reply{Status: 200, Stream: s}
	})
	r, err := newClient(t, addr).Get(address)
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "half", string(body))
	require.NoError(t, r.Body.Close())
}

// Bodies that come too slowly, too large or not whole end their request.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	read := func(e *lifecycle.Delivery) *events.Reply {
		for i := 0; e.Parts != nil; i++ {
			if _, err := e.Parts.Read(context.Background(), i); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return &events.Reply{Failure: events.Fail(events.ReasonException, "%v", err)}
			}
		}
		return &events.Reply{Status: 200}
	}
	_, addr := open(t, Config{Domain: "w.test", MaxBody: 100_000}, read,
		func(g *Gateway) { g.times.body, g.times.piece = 300*time.Millisecond, 200*time.Millisecond })
	const head = "POST / HTTP/1.1\r\nHost: w--acme.w.test\r\n"
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"short and slow":   {head + "Content-Length: 10\r\n\r\nabc", 408},
		"long and slow":    {head + "Content-Length: 90000\r\n\r\nabc", 408},
		"chunked and slow": {head + "Transfer-Encoding: chunked\r\n\r\n5\r\nab", 408},
		"too large": {head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", 150_000,
			strings.Repeat("x", 150_000)) + "0\r\n\r\n", 413},
	} {
		list := raw(t, addr, c.request, 2)
		require.Len(t, list, 1, name)
		require.Equal(t, c.status, list[0].StatusCode, name)
	}
}

// Requests of one owner wait in no place of another.
func TestRequestsOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	release, came := make(chan struct{}), make(chan struct{}, 2)
	_, addr := open(t, Config{Domain: "w.test", OwnerRequests: 2}, func(e *lifecycle.Delivery) *events.Reply {
		if e.Owner == "acme" {
			came <- struct{}{}
			<-release
		}
		return &events.Reply{Status: 200}
	})
	c := newClient(t, addr)
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			r, err := c.Get(address)
			if err != nil || r.StatusCode != 200 || r.Body.Close() != nil {
				t.Errorf("%v %v", r, err)
			}
		})
		<-came
	}
	r, err := c.Get(address)
	require.NoError(t, err)
	require.Equal(t, []any{503, "1"}, []any{r.StatusCode, r.Header.Get("Retry-After")})
	require.NoError(t, r.Body.Close())
	r, err = c.Get("http://w--beta.w.test/")
	require.NoError(t, err)
	require.Equal(t, 200, r.StatusCode)
	require.NoError(t, r.Body.Close())
	close(release)
	waiting.Wait()
}

// Clients that do not take their responses use up the part of their owner. Another owner has one of its own.
func TestBodiesThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	large := make([]byte, 8<<20) // more than the sockets of both sides hold
	_, addr := open(t, Config{Domain: "w.test", Memory: 40 << 20},
		func(*lifecycle.Delivery) *events.Reply { return &events.Reply{Status: 200, Body: large} })
	again := "" // Retry-After
	status := func(owner string) (int, net.Conn) {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: w--"+owner+".w.test\r\n\r\n")
		require.NoError(t, err)
		r, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
		require.NoError(t, err)
		again = r.Header.Get("Retry-After")
		return r.StatusCode, c
	}
	var held []net.Conn
	for range 10 {
		code, c := status("acme")
		if code != http.StatusOK {
			require.Equal(t, http.StatusServiceUnavailable, code)
			require.Equal(t, "1", again)
			break
		}
		held = append(held, c)
	}
	require.Len(t, held, 2, "half of the memory, rounded down to whole bodies")
	code, _ := status("beta")
	require.Equal(t, http.StatusOK, code, "another owner has what acme left")
	for _, c := range held {
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { code, _ := status("acme"); return code == http.StatusOK }, patience,
		10*time.Millisecond, "it is given back")
}

func TestOwners(t *testing.T) {
	t.Parallel()
	o := owners{requests: 1, memory: 100, of: map[string]*usage{}}
	require.True(t, o.enter("a") && !o.enter("a") && o.enter("b"))
	require.True(t, o.hold("a", 50) && !o.hold("a", 1), "half is free, and it has half")
	require.True(t, o.hold("b", 25) && !o.hold("b", 1))
	require.False(t, o.hold("a", 1))
	o.drop("b", 25)
	o.drop("a", 50)
	o.leave("a")
	o.leave("b")
	require.Empty(t, o.of)
	require.Zero(t, o.used)
	require.False(t, o.hold("a", 51))
	require.Empty(t, o.of, "who gets nothing is not kept")
}

// An answer without the body leaves nobody waiting for the rest of it, whether a handler gives it or the request is
// refused.
func TestBodyThatNobodyReads(t *testing.T) {
	t.Parallel()
	_, addr := open(t, domain, func(*lifecycle.Delivery) *events.Reply { return &events.Reply{Status: 200} },
		func(g *Gateway) { g.times.rest = 100 * time.Millisecond })
	for host, status := range map[string]int{"w--acme.w.test": 200, "other.test": 404} {
		head := "POST / HTTP/1.1\r\nHost: " + host + "\r\n"
		for _, request := range []string{head + "Content-Length: 90000\r\n\r\nabc",
			head + "Transfer-Encoding: chunked\r\n\r\n5\r\nab"} {
			list := raw(t, addr, request, 2) // until the server closes the connection
			require.Len(t, list, 1)
			require.Equal(t, status, list[0].StatusCode)
		}
	}
}
