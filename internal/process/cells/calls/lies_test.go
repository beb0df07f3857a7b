package calls

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// noServices refuses all calls.
type noServices struct{}

func (noServices) Fetch(_ *http.Request, _ []byte, c *lifecycle.ServiceCall) lifecycle.ServiceRequest {
	return noRequest{c}
}

func (noServices) Call(c *lifecycle.ServiceCall, _ []byte, answer func([]byte, error)) func() {
	defer c.End()
	answer([]byte("result"), nil)
	return func() {}
}

type noRequest struct{ c *lifecycle.ServiceCall }

func (r noRequest) Start(answer func(bool, func(http.ResponseWriter) error)) {
	defer r.c.End()
	answer(true, func(rw http.ResponseWriter) error { _, err := io.WriteString(rw, "response"); return err })
}

func (noRequest) Cancel() bool { return false }

// forged makes a request of fields: numbers, texts, lists and flags. size is that of the body.
func forged(size int, body string, values ...any) []byte {
	h := newHead()
	for _, v := range values {
		switch v := v.(type) {
		case int:
			h.number(uint64(v))
		case string:
			h.text(v)
		case []string:
			h.list(v)
		case bool:
			h.flag(v)
		}
	}
	binary.BigEndian.PutUint32(h, uint32(len(h)-prefixBytes))
	binary.BigEndian.PutUint32(h[4:], uint32(size))
	return append(h, body...)
}

// hostile are requests of a cell that has the attempt 1 of the worker greeter of acme, with a body of one part, and
// nothing else. Each but those with why "" is a lie.
func hostile() []hostileRequest {
	none := []string(nil)
	until := int(time.Now().Add(time.Hour).UnixMilli())
	streaming := int(streams)
	get := []any{1, "kv", "KV", "get", none, false}
	return []hostileRequest{
		{"/call", forged(0, "", get...), ""},
		{"/call", forged(0, "", 0, "acme", "greeter", "1", "kv", "KV", "get", none, false), ""},
		{"/call", forged(0, "", 3, "kv", "KV", "get", none, false), "no attempt 3"},
		{"/call", forged(0, "", 0, "beta", "greeter", "1", "kv", "KV", "get", none, false), `of "beta"`},
		{"/call", forged(0, "", 0, "acme", "foreign", "1", "kv", "KV", "get", none, false), `"foreign"`},
		{"/call", forged(0, "", 0, "acme", "greeter", "2", "kv", "KV", "get", none, false), `version "2"`},
		{"/call", forged(0, "", 1, "kv", "OTHER", "get", none, false), `no binding "OTHER"`},
		{"/call", forged(0, "", 1, "objects", "KV", "get", none, false), `no binding "KV" of kind "objects"`},
		{"/call", forged(0, "", 1, "services", "OTHER", "get", none, false), `no binding "OTHER"`},
		{"/call", forged(0, "", get...)[:prefixBytes+2], "ends before it is complete"},
		{"/call", nil, "ends before it is complete"},
		{"/call", forged(0, "", 1, "queues", "Q", "get", none, false), `no binding "Q"`},
		{"/call", forged(streaming, "x", get...), "malformed"},
		{"/call", forged(0, "", append(get, 1)...), "malformed"},
		{"/call", forged(0, "", get[:4]...), "malformed"},
		{"/call", forged(0, "", 1, "kv", "KV", "get", 1<<60), "malformed"}, // a list
		{"/call", forged(0, "", 1, "kv", "KV", "get", none, 2), "malformed"},
		{"/call", forged(0, "more", get...), "does not end where it says"},
		{"/call", forged(5, "less", get...), "ends before it is complete"},
		{"/call", forged(maxBody+1, "x", get...), "at most"},
		{"/call", forged(0, "", 1, "kv", "KV", string(make([]byte, maxHead)), none, false), "at most"},
		{"/call", []byte{0, 0}, "ends before it is complete"},
		{"/enqueue", forged(2, "ab", "acme", "w", 2, 1, "", none, 1, "", none), ""},
		{"/enqueue", forged(2, "ab", "beta", "w", 1, 2, "", none), `no worker of "beta"`},
		{"/enqueue", forged(2, "ab", "acme", "w.*", 1, 2, "", none), "a name is"},
		{"/enqueue", forged(2, "ab", "acme", "w", 1, 3, "", none), "malformed"},
		{"/enqueue", forged(2, "ab", "acme", "w", 1, 1, "", none), "sizes"},
		{"/enqueue", forged(0, "", "acme", "w", 0), "sizes"},
		{"/part", forged(0, "", 1, 0), ""},
		{"/part", forged(0, "", 1, 1), "no part 1"},
		{"/part", forged(0, "", 1, 1<<50), "malformed"},
		{"/part", forged(0, "", 0, "acme", "greeter", "1", 0), "no part 0"},
		{"/part", forged(0, "", 7, 0), "no attempt 7"},
		{"/part", forged(0, "", 2, 0), "no part 0"},
		{"/file", forged(0, "", "acme", "greeter", "1", false, "GET", "http://x/a.txt", none), ""},
		{"/file", forged(0, "", "acme", "greeter", "3", false, "GET", "http://x/a.txt", none), `version "3"`},
		{"/file", forged(0, "", "acme"), "malformed"},
		{"/file", forged(0, "", "acme", "greeter", "1", false, "GET", "http://x/a.txt", none, 1), "malformed"},
		{"/file", forged(0, "", "acme", "bare", "1", false, "GET", "http://x/a.txt", none), "no files"},
		{"/file", forged(0, "", "acme", "greeter", "1", false, "G T", "http://x/a.txt", none), "cannot be sent"},
		{"/file", forged(0, "", "acme", "greeter", "1", false, "GET", "http://x/\x00", none), "cannot be sent"},
		{"/file", forged(0, "", "acme", "greeter", "1", false, "GET", "http://x/", []string{"a"}), "malformed"},
		{"/file", forged(0, "", "acme", "greeter", "1", false, "GET", "http://x/", []string{"a b", "c"}), "header"},
		{"/file", forged(0, "", "acme", "greeter", "1", false, "GET", "http://x/", []string{"a", "b\r\nc: d"}), "header"},
		{"/fetch", forged(0, "", 1, "other", false, "", until, "", "GET", "http://x/", none, 0, false), ""},
		{"/fetch", forged(0, "", 1, "greeter", true, "Mine", until, "", "GET", "http://x/", none, 0, false), ""},
		{"/fetch", forged(0, "", 1, "third", false, "", until, "", "GET", "http://x/", none, 0, false), `no service "third"`},
		{"/fetch", forged(0, "", 1, "other", true, "", until, "", "GET", "http://x/", none, 0, false), `no service "other"`},
		{"/fetch", forged(0, "", 1, "other", false, "Secret", until, "", "GET", "http://x/", none, 0, false), "other#Secret"},
		{"/fetch", forged(0, "", 9, "other", false, "", until, "", "GET", "http://x/", none, 0, false), "no attempt 9"},
		{"/fetch", forged(0, "", 1, "other", false, "", 1<<60, "", "GET", "http://x/", none, 0, false), "malformed"},
		{"/fetch", forged(0, "", 1, "other", false, "", until, "", "GET", "http://x/", none, 1<<60, false), "malformed"},
		{"/fetch", forged(streaming, "x", 1, "other", false, "", until, "", "PUT", "http://x/", none, 0, true), "streams"},
		{"/fetch", forged(0, "", 1, "other", false, "", until, "", "G T", "http://x/", none, 0, false), "cannot be sent"},
		{"/fetch", forged(0, "", 1, "other"), "malformed"},
		{"/method", forged(0, "", 1, "other", false, "Named", until, "m"), ""},
		{"/method", forged(0, "", 1, "other", false, "Named", until, ""), "empty"},
		{"/method", forged(0, "", 1, "third", false, "", until, "m"), `no service "third"`},
		{"/dial", forged(streaming, "", "acme", "tcp", "127.0.0.2:1"), ""}, // the guard refuses it
		{"/dial", forged(0, "", "acme", "tcp", "127.0.0.1:1"), "malformed"},
		{"/dial", forged(streaming, "", "beta", "tcp", "127.0.0.1:1"), `no worker of "beta"`},
		{"/dial", forged(streaming, "", "acme", "unix", "/run/x:1"), "malformed"},
		{"/dial", forged(streaming, "", "acme", "tcp", "nowhere"), "HOST:PORT"},
		{"/dial", forged(streaming, "", "acme", "tcp", ":1"), "HOST:PORT"},
		{"/dial", forged(streaming, "", "acme", "tcp", "x:"), "HOST:PORT"},
		{"/dial", forged(streaming, "", "acme", "tcp", "127.0.0.2:1", 1), "malformed"},
		{"/lookup", forged(0, "", "acme", "nobody.invalid"), ""},
		{"/lookup", forged(0, "", "beta", "localhost"), `no worker of "beta"`},
		{"/lookup", forged(0, "", "acme", ""), "0 bytes"},
		{"/lookup", forged(0, "", "acme", strings.Repeat("a", 256)), "256 bytes"},
		{"/lookup", forged(0, "", "acme"), "malformed"},
		{"/lookup", forged(streaming, "", "acme", "localhost"), "malformed"},
		{"/socket", forged(streaming, "", 4, 1), "malformed"},
		{"/socket", forged(streaming, "", 4), "no WebSocket 4"},
		{"/socket", forged(0, "", 4), "malformed"},
		{"/other", forged(0, ""), "/other"},
		{"/hello", forged(0, "", 1), "malformed"},
	}
}

type hostileRequest struct {
	path string
	body []byte
	why  string
}

// besieged is a cell for hostile requests.
func besieged(t testing.TB) *cell {
	c := newCell(t, func(*cell) bindings.Services { return noServices{} })
	c.call = func(context.Context, *lifecycle.Call) (lifecycle.Answer, error) { return lifecycle.Answer{}, nil }
	c.enqueue = func(context.Context, string, string, []bindings.Message) error { return nil }
	c.files = testFiles{}.ServeFile
	c.give(&workers.Worker{Owner: "acme", Name: "bare", Version: "1"})
	parts := &events.Parts{ID: "e", N: 1, Read: func(context.Context, int) ([]byte, error) { return []byte("part"), nil }}
	w := c.give(greeter())
	c.start(direct(w, parts))
	c.start(direct(w, nil))
	return c
}

// A broker without files or services was asked for none.
func TestLiesToABrokerThatHasLess(t *testing.T) {
	t.Parallel()
	all := hostile()
	for path, less := range map[string]func(*Config){
		"/file":  func(c *Config) { c.Files = nil },
		"/fetch": func(c *Config) { c.Services = nil },
	} {
		c := besieged(t)
		less(&c.server.cfg)
		i := slices.IndexFunc(all, func(h hostileRequest) bool { return h.path == path && h.why == "" })
		require.Equal(t, http.StatusBadRequest, c.post(path, bytes.NewReader(all[i].body)))
		<-c.lied
		require.ErrorContains(t, c.lies[0], "has no "+map[string]string{"/file": "files", "/fetch": "service"}[path])
	}
}

// Requests have one method.
func TestLiesByOtherMethods(t *testing.T) {
	t.Parallel()
	c := besieged(t)
	body := bytes.NewReader(hostile()[0].body)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://broker/call", body)
	require.NoError(t, err)
	resp, err := c.client.conn.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	<-c.lied
	require.ErrorContains(t, c.lies[0], "the request is PUT")
}

// A run whose end was reported may still have asked for something. It gets no answer, and has not lied.
func TestLateRequestsAreNoLies(t *testing.T) {
	t.Parallel()
	c := besieged(t)
	c.end(1)
	called := false
	c.call = func(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
		called = true
		return lifecycle.Answer{}, nil
	}
	late := 0
	for _, h := range hostile() {
		from := fields{rest: h.body[min(len(h.body), prefixBytes):]}
		if h.why == "" && from.number() == 1 && h.path != "/dial" && h.path != "/socket" && h.path != "/file" {
			late++
			require.Equal(t, http.StatusOK, c.post(h.path, bytes.NewReader(h.body)), h.path)
		}
	}
	require.Positive(t, late)
	require.False(t, called)
	require.Empty(t, c.lies)
}

// Whatever names what the cell was not given, or is not well-formed, is refused, and counts as a lie. After it nothing
// is answered.
func TestLies(t *testing.T) {
	t.Parallel()
	for i, h := range hostile() {
		c := besieged(t)
		status := c.post(h.path, bytes.NewReader(h.body))
		if h.why == "" {
			require.Equal(t, http.StatusOK, status, "%d %s", i, h.path)
			require.Empty(t, c.lies, "%d %s", i, h.path)
			continue
		}
		require.Contains(t, []int{0, http.StatusBadRequest}, status, "%d %s", i, h.path)
		<-c.lied
		require.ErrorContains(t, c.lies[0], h.why, "%d %s", i, h.path)
		require.NotEqual(t, http.StatusOK, c.post("/call", bytes.NewReader(hostile()[0].body)))
		require.Len(t, c.lies, 1)
	}
}

// Headers that no Client sends are refused before a call begins.
func TestLongHeaders(t *testing.T) {
	t.Parallel()
	c := besieged(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://broker/call", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("X", string(bytes.Repeat([]byte("x"), 4*maxHeaders)))
	resp, err := c.client.conn.RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
	}
}

// Frames of a WebSocket that no Client sends are lies, and a WebSocket is given once.
func TestLiesOfSockets(t *testing.T) {
	t.Parallel()
	for _, f := range []frame{
		{op: 'x'}, {op: frameMessage}, {op: frameMessage, kind: websocket.PingMessage}, {op: frameStart, size: 1},
		{op: frameStart, kind: 1}, {op: frameControl, kind: websocket.TextMessage},
		{op: frameMessage, kind: websocket.TextMessage, size: maxMessage + 1},
		{op: frameMessage, kind: websocket.CloseMessage, size: maxControl + 1},
		{op: frameControl, kind: websocket.PingMessage, size: maxControl + 1},
	} {
		c := besieged(t)
		client, _ := c.wait(1)
		_ = c.post("/socket", bytes.NewReader(f.append(forged(int(streams), "", 1))))
		<-c.lied
		require.ErrorContains(t, c.lies[0], "a frame", "%+v", f)
		_, _, err := client.ReadMessage()
		require.Error(t, err)
	}
	c := besieged(t)
	c.wait(1)
	first, err := c.client.Socket(t.Context(), 1)
	require.NoError(t, err)
	_, err = c.client.Socket(t.Context(), 1)
	require.ErrorContains(t, err, "no WebSocket 1")
	<-c.lied
	require.NoError(t, first.Close())
}

// An attempt has the calls of services that one event may have, whatever the cell counts.
func TestServiceCallsAreCounted(t *testing.T) {
	t.Parallel()
	c := besieged(t)
	in := c.start(direct(c.workers["greeter 1"], nil))
	call := func(from *lifecycle.Attempt) error {
		s, err := (&events.ServiceTree{}).Begin(nil, "greeter", events.ServiceTarget{Worker: "other"}, "m")
		require.NoError(t, err)
		answered := make(chan error, 1)
		c.client.Services().Call(&lifecycle.ServiceCall{ServiceCall: s, From: from, Worker: "other",
			Deadline: time.Now().Add(time.Hour), Ended: func() {}}, []byte("args"),
			func(_ []byte, err error) { answered <- err })
		return <-answered
	}
	require.True(t, c.server.events.places.TryAcquire(eventBytes))
	require.ErrorContains(t, call(in), "more than 67108864 bytes under way")
	c.server.events.places.Release(eventBytes)
	for range events.MaxServiceCalls {
		require.NoError(t, call(in))
	}
	require.EqualError(t, call(in), events.ErrServiceCalls.Error())
	require.NoError(t, call(c.start(direct(in.Worker, nil))), "another attempt has its own")
	var err error
	for i := 0; err == nil && i < 10*events.MaxServiceCalls; i++ {
		c.server.running.mu.Lock()
		for _, a := range c.server.running.between {
			a.since = time.Now().Add(time.Hour) // all in one period
		}
		c.server.running.mu.Unlock()
		err = call(&lifecycle.Attempt{Worker: in.Worker})
	}
	require.EqualError(t, err, events.ErrServiceCalls.Error())
	require.Empty(t, c.lies)
}

// The connection ends with its context, and so do the calls under way.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	in, out := pair(t)
	began := make(chan struct{})
	c := &cell{t: t, workers: map[string]*workers.Worker{"greeter 1": greeter()}}
	c.call = func(ctx context.Context, _ *lifecycle.Call) (lifecycle.Answer, error) {
		close(began)
		<-ctx.Done()
		return lifecycle.Answer{}, errors.New("ended")
	}
	s := NewServer(Config{Given: c, Host: host{c}, Egress: guarded(), Lie: c.lie})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, out) }()
	client, err := NewClient(t.Context(), in, func(*lifecycle.Attempt) uint64 { return 0 })
	require.NoError(t, err)
	go func() { <-began; cancel() }()
	_, err = client.Call(t.Context(), kv(&lifecycle.Attempt{Worker: greeter()}, "get", nil, "a"))
	require.Error(t, err)
	require.NoError(t, <-ended)
	require.Zero(t, c.calling.Load())
	require.Equal(t, int64(2), s.Calls())
	require.False(t, s.begins(), "no call begins after the connection")
	client.Close()
	require.Error(t, client.Err())
}

// FuzzServer sends requests as a hostile cell does. Whatever comes, the broker goes on, and holds nothing afterwards.
func FuzzServer(f *testing.F) {
	paths := []string{"/call", "/enqueue", "/part", "/file", "/fetch", "/method", "/dial", "/socket", "/hello", "/lookup"}
	for _, h := range hostile() {
		for i, p := range paths {
			if p == h.path {
				f.Add(byte(i), h.body[:min(len(h.body), 4<<10)])
			}
		}
	}
	f.Add(byte(7), frame{op: frameMessage, kind: 1, size: 2}.append(forged(int(streams), "", 1)))
	f.Fuzz(func(t *testing.T, path byte, body []byte) {
		c := besieged(t)
		c.wait(1)
		c.post(paths[int(path)%len(paths)], bytes.NewReader(body))
	})
}

// FuzzFields reads heads and trailers. What is read is never longer than what was sent.
func FuzzFields(f *testing.F) {
	f.Add(forged(0, "", 1, "text", []string{"a", "b"}, true)[prefixBytes:])
	f.Add([]byte(fmt.Sprint(encodeTrailer(errors.New("why")))))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := fields{rest: data}
		x.number()
		size := len(x.text())
		for _, s := range x.list() {
			size += len(s) + 1
		}
		x.flag()
		_ = x.failure()
		_ = x.end()
		require.LessOrEqual(t, size, len(data))
		_ = decodeTrailer(string(data))
	})
}

// stuck are Services that answer nothing until their callers have gone.
type stuck struct {
	bindings.Services
	begun chan struct{}
}

func (s stuck) Fetch(r *http.Request, _ []byte, c *lifecycle.ServiceCall) lifecycle.ServiceRequest {
	return &stuckRequest{c, s.begun}
}

func (s stuck) Call(c *lifecycle.ServiceCall, _ []byte, _ func([]byte, error)) func() {
	s.begun <- struct{}{}
	return c.End
}

type stuckRequest struct {
	c     *lifecycle.ServiceCall
	begun chan struct{}
}

func (r *stuckRequest) Start(func(bool, func(http.ResponseWriter) error)) { r.begun <- struct{}{} }

func (r *stuckRequest) Cancel() bool { r.c.End(); return true }

// endless is a body that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

// Bodies that nobody in the broker reads hold up no other call, and neither do services that do not answer.
func TestUnreadBodies(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	c := newCell(t, func(*cell) bindings.Services { return stuck{begun: begun} })
	w := c.give(greeter())
	call := func(i int, path string, body io.Reader) {
		from := 0
		if i%events.MaxServiceCallsAtOnce == 0 {
			c.start(direct(w, nil))
		}
		c.mu.Lock()
		from = int(c.last)
		c.mu.Unlock()
		until := int(time.Now().Add(time.Hour).UnixMilli())
		size, rest := int(streams), []any{"", "PUT", "http://x/", []string(nil), 0, false}
		if path == "/method" {
			size, rest = 4<<20, []any{"m"}
		}
		first := forged(size, "", append([]any{from, "other", false, "", until}, rest...)...)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://broker"+path,
			io.MultiReader(bytes.NewReader(first), body))
		require.NoError(t, err)
		c.client.group.Go(func() {
			resp, err := c.client.conn.RoundTrip(r)
			if err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	const streaming = 400 // with windows that a connection of 4 MiB would not have
	for i := range streaming {
		call(i, "/fetch", endless{})
		<-begun
	}
	for i := range eventBytes/(4<<20) - 1 {
		call(i, "/method", bytes.NewReader(make([]byte, 4<<20)))
		<-begun
	}
	c.call = func(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
		return lifecycle.Answer{Texts: []string{"answered"}}, nil
	}
	answer, err := c.client.Call(t.Context(), kv(&lifecycle.Attempt{Worker: w}, "put", make([]byte, maxBody), "a"))
	require.NoError(t, err)
	require.Equal(t, []string{"answered"}, answer.Texts)
	require.Empty(t, c.lies)
}

// A connection on which no HTTP/2 comes ends, and reaches nothing.
func TestOtherProtocols(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"GET /hello HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n", "\x00\x01\x02garbage\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		in, out := pair(t)
		s := NewServer(Config{})
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(t.Context(), out) }()
		_, err := io.WriteString(in, text)
		require.NoError(t, err)
		answer, _ := io.ReadAll(in)
		require.NotContains(t, string(answer), "200 OK")
		require.NoError(t, <-ended)
		require.Zero(t, s.Calls())
		require.NoError(t, in.Close())
	}
}
