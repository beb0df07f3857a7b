package isolates

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/owners"
)

// chat is a worker whose clients are in all.
const chat = `
const all = new Set();
let messages = 0;
export default {
  fetch(request) {
    if (request.headers.get("upgrade") !== "websocket") return new Response(all.size + " " + messages);
    const [client, server] = Object.values(new WebSocketPair());
    server.binaryType = "arraybuffer";
    server.accept();
    all.add(server);
    server.send("welcome");
    server.addEventListener("message", async ({ data }) => {
      messages++;
      if (typeof data !== "string") return server.send(new Uint8Array(data).reverse());
      const [word, rest] = data.split(":");
      switch (word) {
        case "all": for (const s of all) s.send(rest); break;
        case "close": server.close(4001, rest); break;
        case "later": setTimeout(() => server.send("later"), 1); break;
        case "spin": for (const end = performance.now() + +rest; performance.now() < end;); server.send("spun"); break;
        case "loop": for (;;);
        case "throw": throw new Error("thrown");
        case "flood": for (let i = 0; i < +rest; i++) server.send("x".repeat(1 << 20)); break;
        default: server.send("echo " + data);
      }
    });
    server.addEventListener("close", ({ code, reason, wasClean }) => { all.delete(server); for (const s of all) s.send(["left", code, reason, wasClean].join()); });
    return new Response(null, { status: 101, webSocket: client, headers: { "sec-websocket-protocol": request.headers.get("sec-websocket-protocol") ?? "" } });
  },
};`

// upgrading is an HTTP server whose connections become WebSockets of a worker.
type upgrading struct {
	*httptest.Server
	b    *bench
	w    *workers.Worker
	end  context.CancelFunc // ends the process, for its WebSockets
	ends chan struct{}      // one for each WebSocket that ended
}

func newUpgrading(t *testing.T, b *bench, code string) *upgrading {
	w := worker("chat", code)
	w.Mode = workers.Persistent
	ctx, end := context.WithCancel(context.Background())
	u := &upgrading{b: b, w: w, end: end, ends: make(chan struct{}, 1000)}
	up := websocket.Upgrader{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		e := fetch("GET", "http://x.test"+r.URL.String(), "")
		e.Upgrade = true
		e.HTTPHeaders = []string{"upgrade", "websocket"}
		for _, p := range r.Header["Sec-Websocket-Protocol"] {
			e.HTTPHeaders = append(e.HTTPHeaders, "sec-websocket-protocol", p)
		}
		o := b.start(w, e)
		<-o.ended
		if o.end.Failure != nil || o.reply.Socket == nil {
			http.Error(rw, fmt.Sprint(o.end.Failure), http.StatusInternalServerError)
			return
		}
		h := http.Header{}
		for i := 0; i < len(o.reply.Headers); i += 2 {
			h.Add(o.reply.Headers[i], o.reply.Headers[i+1])
		}
		c, err := up.Upgrade(rw, r, h)
		if err != nil {
			return
		}
		o.reply.Socket.Serve(ctx, c)
		u.ends <- struct{}{}
	}))
	t.Cleanup(func() {
		end()
		u.Close()
	})
	return u
}

// dial opens a WebSocket of the worker, which says welcome.
func (u *upgrading) dial(t *testing.T, protocols ...string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{Subprotocols: protocols}
	c, resp, err := d.Dial("ws"+strings.TrimPrefix(u.URL, "http"), nil)
	if err != nil {
		text, _ := io.ReadAll(resp.Body)
		require.NoError(t, err, "%s", text)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(patience))
	reads(t, c, "welcome")
	return c
}

func (u *upgrading) ask(t *testing.T) string {
	t.Helper()
	o := u.b.run(u.w, fetch("GET", "http://x.test/", ""))
	require.Nil(t, o.end.Failure)
	return string(o.reply.Body)
}

func reads(t *testing.T, c *websocket.Conn, want ...string) {
	t.Helper()
	for _, text := range want {
		_, data, err := c.ReadMessage()
		require.NoError(t, err)
		require.Equal(t, text, string(data))
	}
}

func says(t *testing.T, c *websocket.Conn, text string) {
	t.Helper()
	require.NoError(t, c.WriteMessage(websocket.TextMessage, []byte(text)))
}

func closes(t *testing.T, c *websocket.Conn, code int, reason string) {
	t.Helper()
	for {
		_, _, err := c.ReadMessage()
		if err == nil {
			continue
		}
		var e *websocket.CloseError
		require.ErrorAs(t, err, &e)
		require.Equal(t, code, e.Code, e)
		require.Equal(t, reason, e.Text)
		return
	}
}

func TestWebSocketsOfClients(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	u := newUpgrading(t, b, chat)
	one, two := u.dial(t, "chat"), u.dial(t)
	require.Equal(t, "chat", one.Subprotocol())
	says(t, one, "hello")
	reads(t, one, "echo hello")
	require.NoError(t, two.WriteMessage(websocket.BinaryMessage, []byte{1, 2, 3}))
	kind, data, err := two.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, websocket.BinaryMessage, kind)
	require.Equal(t, []byte{3, 2, 1}, data)
	says(t, one, "all:news")
	reads(t, one, "news")
	reads(t, two, "news")
	says(t, one, "later:")
	reads(t, one, "later")
	says(t, two, "throw:")
	says(t, two, "after")
	reads(t, two, "echo after")
	require.Contains(t, strings.Join(b.lines(), "\n"), "uncaught: Error: thrown")
	require.Equal(t, "2 6", u.ask(t))

	// The client ends one connection, the worker the other.
	require.NoError(t, one.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4000, "bye")))
	closes(t, one, 4000, "")
	reads(t, two, "left,4000,bye,true")
	three := u.dial(t)
	says(t, two, "close:enough")
	closes(t, two, 4001, "enough")
	reads(t, three, "left,4001,,true") // before four is there
	four := u.dial(t)
	require.NoError(t, three.NetConn().Close()) // without a word
	reads(t, four, "left,1006,,false")
	require.Eventually(t, func() bool { return strings.HasPrefix(u.ask(t), "1 ") }, patience, time.Millisecond)
}

func TestWebSocketsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu, b.keeps = ample, true
	const pair = "const [client, server] = Object.values(new WebSocketPair());"
	for body, want := range map[string]string{
		pair + "return new Response(null, { status: 101, webSocket: client })":                 "no end of a WebSocketPair whose other end was accepted",
		pair + "server.accept(); return new Response(null, { webSocket: client })":             "a Response with a webSocket has the status 101, not 200",
		pair + "server.accept(); return new Response('x', { status: 101, webSocket: client })": "cannot have a body",
		pair + "server.accept(); return new Response(null, { status: 101, webSocket: {} })":    "the webSocket is not a WebSocket",
		"return new Response(null, { status: 101 })":                                           "the status 101 is not within 200 to 599",
		pair + "server.close()":   "accept() this end of the WebSocketPair before",
		pair + "server.send('x')": "accept() this end of the WebSocketPair before",
		pair + "server.accept(); client.accept(); return new Response(null, { status: 101, webSocket: client })": "was accepted: give the other end of the pair",
		"WebSocketPair.prototype[Symbol.iterator].call({})":                                                      "Illegal invocation",
		"const s = new WebSocket('ws://x.test'); s.accept()":                                                     "only an end of a WebSocketPair",
		"WebSocketPair()": "cannot be invoked without 'new'",
		pair + "server.accept(); const r = new Response(null, { status: 101, webSocket: client }); r.clone()":     "a Response with a webSocket cannot be cloned",
		pair + "server.accept(); globalThis.r = new Response(null, { status: 101, webSocket: client }); return r": "the request did not ask for one",
	} {
		w := worker("refused", "export default { fetch() { "+body+" } };")
		w.Mode = workers.Persistent
		o := b.run(w, fetch("GET", "http://x.test/", ""))
		require.NotNil(t, o.end.Failure, body)
		require.Contains(t, o.end.Failure.Message, want, body)
	}
	for _, mode := range []workers.Mode{workers.Pinned, workers.Shared, workers.Oneshot} {
		w := worker("mode", "export default { fetch() { new WebSocketPair() } };")
		w.Mode = mode
		require.Contains(t, b.run(w, fetch("GET", "http://x.test/", "")).end.Failure.Message,
			`say "mode": "persistent" in the manifest`)
	}
	// A pair has one client.
	w := worker("twice", `const [client, server] = Object.values(new WebSocketPair()); server.accept();
		export default { fetch() { return new Response(null, { status: 101, webSocket: client }) } };`)
	w.Mode = workers.Persistent
	e := fetch("GET", "http://x.test/", "")
	e.Upgrade = true
	require.NotNil(t, b.run(w, e).reply.Socket)
	again := fetch("GET", "http://x.test/", "")
	again.Upgrade = true
	require.Contains(t, b.run(w, again).end.Failure.Message, "was given to a client already")
}

// A WebSocket that carries nothing has one goroutine, the one that reads: 10 000 of them have 10 000 stacks, not
// 20 000.
func TestIdleWebSocketsDoNotWrite(t *testing.T) {
	b := newBench(t)
	b.cpu = ample
	u := newUpgrading(t, b, chat)
	for range 3 {
		c := u.dial(t)
		says(t, c, "hello")
		reads(t, c, "echo hello")
	}
	require.Eventually(t, func() bool {
		var all bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 2))
		return !strings.Contains(all.String(), "isolates.(*socket).write(")
	}, patience, time.Millisecond)
	c := u.dial(t)
	says(t, c, "again")
	reads(t, c, "echo again")
}

// A context with clients is not idle. Without them it ends, and onTerminate runs.
func TestWebSocketsKeepTheirContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	u := newUpgrading(t, b, chat)
	u.w.Lifetime.Idle = workers.Millis(30 * time.Millisecond)
	c := u.dial(t)
	says(t, c, "a")
	reads(t, c, "echo a")
	idle := func() uint64 { return b.pool.Stats().Discards[discardIdle] }
	before := idle()
	for range 20 {
		says(t, c, "spin:5")
		reads(t, c, "spun")
	}
	require.Equal(t, before, idle())
	require.Equal(t, "1 21", u.ask(t))
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return idle() == before+1 }, patience, time.Millisecond)
}

// Clients learn why a connection ends: their worker's context is replaced, or the process ends.
func TestWebSocketsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	u := newUpgrading(t, b, chat)
	u.w.Lifetime.Requests = 3
	one, two := u.dial(t), u.dial(t)
	require.Equal(t, "2 0", u.ask(t))
	closes(t, one, websocket.CloseServiceRestart, "")
	closes(t, two, websocket.CloseServiceRestart, "")

	three := u.dial(t)
	u.end()
	closes(t, three, websocket.CloseGoingAway, "")
	require.Eventually(t, func() bool { return u.ask(t) == "0 0" }, patience, time.Millisecond, "the worker goes on")
}

// A message that loops ends the context, and other workers go on.
func TestWebSocketMessageThatLoops(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	u, other := newUpgrading(t, b, chat), newUpgrading(t, b, chat+"//")
	c, d := u.dial(t), other.dial(t)
	says(t, c, "loop:")
	closes(t, c, websocket.CloseServiceRestart, "")
	says(t, d, "x")
	reads(t, d, "echo x")
	require.Contains(t, strings.Join(b.lines(), "\n"), "between events: cpu")
	says(t, u.dial(t), "x")
}

// Messages that take more than the owner's part between events wait. Nothing ends.
func TestWebSocketMessagesAreSlowedDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	u := newUpgrading(t, b, chat)
	u.w.Limits.CPU = workers.Millis(10 * time.Second)
	c := u.dial(t)
	const n = 40
	for range n {
		says(t, c, "spin:40")
	}
	for range n {
		reads(t, c, "spun")
	}
	require.Equal(t, fmt.Sprint("1 ", n), u.ask(t))
	now := time.Now()
	require.Zero(t, b.pool.budgets.Pause("nobody", now, 2))
	require.True(t, b.pool.budgets.Take("heavy", owners.BetweenAtOnce/2, now, 2))
	require.Zero(t, b.pool.budgets.Pause("heavy", now, 2))
	require.True(t, b.pool.budgets.Take("heavy", owners.BetweenAtOnce/10, now, 2))
	require.InDelta(t, owners.BetweenAtOnce/2, b.pool.budgets.Pause("heavy", now, 2), float64(time.Millisecond))
}

// A client that takes nothing costs the bytes that may wait, and then its connection.
func TestWebSocketClientThatTakesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	u := newUpgrading(t, b, chat)
	u.w.Limits = workers.Limits{HeapMB: 64, CPU: workers.Millis(10 * time.Second)}
	deaf, other := u.dial(t), u.dial(t)
	says(t, deaf, "flood:40")
	reads(t, other, "left,1006,,false")
	<-u.ends
	says(t, other, "x")
	reads(t, other, "echo x")
	require.Eventually(t, func() bool { return b.pool.holdings.Of("acme") <= hostcalls.AcceptedBytes }, patience,
		time.Millisecond)
}

// What a client sends is checked, as the standard says, and costs only its connection.
func TestWebSocketClientsThatBreakTheRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	u := newUpgrading(t, b, chat)
	other := u.dial(t)
	masked := func(first byte, payload []byte) []byte { // with the mask 0
		return append([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
	}
	for name, c := range map[string]struct {
		bytes []byte
		code  int
	}{
		"no mask":                 {[]byte{0x81, 1, 'x'}, websocket.CloseProtocolError},
		"reserved bit":            {masked(0xc1, []byte("x")), websocket.CloseProtocolError},
		"unknown opcode":          {masked(0x83, []byte("x")), websocket.CloseProtocolError},
		"long ping":               {append([]byte{0x89, 0xfe, 0, 126, 0, 0, 0, 0}, make([]byte, 126)...), websocket.CloseProtocolError},
		"cut ping":                {masked(0x09, []byte("x")), websocket.CloseProtocolError},
		"continuation of nothing": {masked(0x80, []byte("x")), websocket.CloseProtocolError},
		"text in a message":       {append(masked(0x01, []byte("x")), masked(0x81, []byte("y"))...), websocket.CloseProtocolError},
		"close code":              {masked(0x88, []byte{0x03, 0xed}), websocket.CloseProtocolError}, // 1005
		"no UTF-8":                {masked(0x81, []byte{0xff}), websocket.CloseInvalidFramePayloadData},
		"too long":                {[]byte{0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 1, 0, 0, 0, 0}, websocket.CloseMessageTooBig},
		"longer than anything": {[]byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
			websocket.CloseMessageTooBig},
	} {
		bad := u.dial(t)
		_, err := bad.NetConn().Write(c.bytes)
		require.NoError(t, err)
		_, _, err = bad.ReadMessage()
		var e *websocket.CloseError
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, c.code, e.Code, name)
		_, data, err := other.ReadMessage()
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(data, []byte("left,1006,")), "%s: %s", name, data)
	}
	says(t, other, "x")
	reads(t, other, "echo x")
	// The longest message that is allowed.
	big := bytes.Repeat([]byte("y"), hostcalls.MaxSocketMessage-5)
	says(t, other, string(big))
	reads(t, other, "echo "+string(big))
	require.Equal(t, "1 2", u.ask(t))
}

// Ends that no client gets cost what other objects cost.
func TestWebSocketsWithoutClients(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu, b.keeps = ample, true
	w := worker("hoards", `const opened = [];
		export default { fetch() {
			for (let i = 0; i < 2000; i++) {
				const [, server] = Object.values(new WebSocketPair());
				server.accept();
				server.send("x".repeat(100));
				opened.push(server);
			}
			return new Response(opened.filter((s) => s.readyState === WebSocket.OPEN).length);
		} };`)
	w.Mode = workers.Persistent
	w.Limits.CPU = workers.Millis(10 * time.Second)
	o := b.run(w, fetch("GET", "http://x.test/", ""))
	require.Nil(t, o.end.Failure)
	require.Equal(t, "2000", string(o.reply.Body))
	require.Less(t, b.pool.holdings.Of("acme"), int64(hostcalls.AcceptedBytes))
}

// A context has at most 1000 WebSockets of clients.
func TestWebSocketsOfTooManyClients(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	w := worker("crowd", chat)
	w.Mode = workers.Persistent
	w.Limits.CPU = workers.Millis(10 * time.Second)
	upgrade := func() *outcome {
		e := fetch("GET", "http://x.test/", "")
		e.Upgrade, e.HTTPHeaders = true, []string{"upgrade", "websocket"}
		o := b.start(w, e)
		<-o.ended
		return o
	}
	for range 1000 {
		o := upgrade()
		require.Nil(t, o.end.Failure)
		defer o.reply.Socket.Serve(t.Context(), nil)
	}
	require.Contains(t, upgrade().end.Failure.Message, "the webSocket of the Response is closed")
	require.Eventually(t, func() bool { // the context learns of it after the event has failed
		return strings.Contains(strings.Join(b.lines(), "\n"), "too many WebSockets of clients: at most 1000 per context may be open")
	}, patience, time.Millisecond)
	require.Less(t, b.pool.holdings.Of("acme"), int64(1000*(hostcalls.AcceptedBytes+1024)))
}

// faulty is a connection whose code panics.
type faulty struct{ events.SocketConn }

func (faulty) SetReadLimit(int64)                        {}
func (faulty) NextReader() (int, io.Reader, error)       { panic("a fault") }
func (faulty) SetWriteDeadline(time.Time) error          { return nil }
func (faulty) WriteMessage(int, []byte) error            { return nil }
func (faulty) WriteControl(int, []byte, time.Time) error { return nil }
func (faulty) Close() error                              { return nil }

// A panic while a WebSocket is served leaves nothing of it with the worker, which learns that it ended.
func TestFaultOfAClientsWebSocketIsAnEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	u := newUpgrading(t, b, chat)
	e := fetch("GET", "http://x.test/", "")
	e.Upgrade, e.HTTPHeaders = true, []string{"upgrade", "websocket"}
	o := b.start(u.w, e)
	<-o.ended
	require.Equal(t, "1 0", u.ask(t))
	require.PanicsWithValue(t, "a fault", func() { o.reply.Socket.Serve(t.Context(), faulty{}) })
	require.Eventually(t, func() bool { return u.ask(t) == "0 0" }, patience, time.Millisecond)
}
