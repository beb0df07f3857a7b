package isolates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
)

// wsServer is a WebSocket server. Its handlers define what each path does. left has the server's view of the end of
// each connection.
type wsServer struct {
	*httptest.Server
	url     string
	left    chan string
	written atomic.Int64
}

func newWSServer(t *testing.T, secure bool) *wsServer {
	s := &wsServer{left: make(chan string, 100)}
	handler := http.HandlerFunc(s.serve)
	if secure {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	s.url = "ws" + strings.TrimPrefix(s.URL, "http")
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *wsServer) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	header := http.Header{}
	switch r.URL.Path {
	case "/refuse":
		w.WriteHeader(http.StatusForbidden)
		return
	case "/moved":
		http.Redirect(w, r, "/echo", http.StatusFound)
		return
	case "/endless":
		c, _, _ := w.(http.Hijacker).Hijack()
		for n, err := 0, error(nil); err == nil && n < 1000; n++ {
			_, err = c.Write(append([]byte("HTTP/1.1 101 Switching Protocols\r\nX: "), bytes.Repeat([]byte("x"), 10_000)...))
		}
		_ = c.Close()
		return
	case "/extension":
		header.Set("Sec-Websocket-Extensions", "permessage-deflate; server_no_context_takeover; client_no_context_takeover")
	}
	if p := q.Get("choose"); p != "" {
		header.Set("Sec-Websocket-Protocol", p)
	}
	u := websocket.Upgrader{WriteBufferSize: 64, CheckOrigin: func(*http.Request) bool { return true }}
	c, err := u.Upgrade(w, r, header)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	s.converse(c, r)
}

func (s *wsServer) converse(c *websocket.Conn, r *http.Request) {
	q := r.URL.Query()
	switch r.URL.Path {
	case "/headers":
		user, password, _ := r.BasicAuth()
		_ = c.WriteMessage(websocket.TextMessage,
			[]byte(user+":"+password+" "+r.Header.Get("User-Agent")+" "+r.Header.Get("Origin")))
	case "/fragments": // WriteBufferSize makes frames of it
		_ = c.WriteMessage(websocket.TextMessage, bytes.Repeat([]byte("é"), 1000))
	case "/close":
		code, _ := strconv.Atoi(q.Get("code"))
		_ = c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(code, q.Get("reason")))
	case "/vanish":
		_ = c.NetConn().Close()
	case "/bytes":
		n, _ := strconv.Atoi(q.Get("n"))
		_ = c.WriteMessage(websocket.BinaryMessage, make([]byte, n))
	case "/wrong":
		_ = c.WriteMessage(websocket.TextMessage, []byte("\xff"))
	case "/flood":
		for c.WriteMessage(websocket.BinaryMessage, make([]byte, 1<<20)) == nil {
			s.written.Add(1 << 20)
		}
	case "/deaf":
		<-r.Context().Done()
	}
	for {
		kind, data, err := c.ReadMessage()
		if err != nil {
			s.left <- err.Error()
			return
		}
		_ = c.WriteMessage(kind, data)
	}
}

// ws is the beginning of workers. talk opens a socket, does what act defines with it, and returns all events of the
// socket.
const ws = `const talk = (url, act = {}, protocols = []) => new Promise((done) => {
	const seen = [], socket = new WebSocket(url, protocols);
	const say = async (...what) => { seen.push(what) };
	socket.onopen = () => { say("open", socket.readyState, socket.protocol); act.open?.(socket) };
	socket.onmessage = async (e) => {
		say("message", typeof e.data === "string" ? e.data : e.data instanceof Blob ? "blob " + await e.data.text() : "buffer " + new Uint8Array(e.data).join());
		act.message?.(socket, e);
	};
	socket.onerror = (e) => { say("error", socket.readyState, e instanceof ErrorEvent) };
	socket.onclose = (e) => { say("close", e.code, e.reason, e.wasClean, socket.readyState); done(seen) };
});
`

// said runs a task handler whose payload is the server's URL.
func (b *bench) said(s *wsServer, body string) any {
	b.t.Helper()
	return b.task(ws+`export default { async task(event) { const base = event.payload; `+body+` } }`, strconv.Quote(s.url))["data"]
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	s := newWSServer(t, false)
	b := newBench(t, loopback)
	opened := []any{"open", 1.0, ""}
	closed := func(code float64, reason string, clean bool) []any { return []any{"close", code, reason, clean, 3.0} }
	failed := []any{"error", 3.0, false}

	require.Equal(t, []any{opened, []any{"message", "a"}, []any{"message", "é€𝄞\ufffd"}, []any{"message", ""},
		closed(1000, "", true)},
		b.said(s, `let n = 0; return talk(base + "/echo", { open(s) { s.send("a"); s.send("é€𝄞\ud800"); s.send(""); }, message(s) { if (++n === 3) s.close(1000, "bye") } })`))
	require.Equal(t, "websocket: close 1000 (normal): bye", <-s.left)
	require.Equal(t, []any{opened, []any{"message", "blob xyz"}, []any{"message", "buffer 1,2"},
		[]any{"message", "buffer 3"}, closed(1005, "", true)},
		b.said(s,
			`let n = 0; return talk(base + "/echo", { open(s) { s.send(new Blob(["x", "yz"])) }, message(s) { s.binaryType = "arraybuffer"; s.binaryType = "none"; n++;
			if (n === 1) s.send(new Uint8Array([0, 1, 2]).subarray(1)); if (n === 2) s.send(new Uint8Array([3]).buffer); if (n === 3) s.close() } })`))
	require.Equal(t, "websocket: close 1005 (no status)", <-s.left)
	require.Equal(t, []any{opened, []any{"message", strings.Repeat("é", 1000)}, closed(3999, "", true)},
		b.said(s, `return talk(base + "/fragments", { message(s) { s.close(3999, "é".repeat(61)); s.close(4000); s.send("lost") } })`))
	require.Equal(t, "websocket: close 3999: "+strings.Repeat("é", 61), <-s.left)
	require.Equal(t, []any{opened, []any{"message", "ü p:a:ss Pinwheel "}, closed(1000, "", true)},
		b.said(s, `return talk(base.replace("//", "//%C3%BC%20p:a%3Ass@") + "/headers", { message(s) { s.close(undefined, "x") } })`))
	require.Equal(t, "websocket: close 1000 (normal): x", <-s.left)

	require.Equal(t, []any{opened, closed(4321, "too late", true)}, b.said(s, `return talk(base + "/close?code=4321&reason=too+late")`))
	require.Equal(t, []any{opened, closed(1005, "", true)}, b.said(s, `return talk(base + "/close?code=1005")`))
	require.Equal(t, []any{opened, closed(1006, "", false)}, b.said(s, `return talk(base + "/vanish")`))
	require.Equal(t, []any{failed, closed(1006, "", false)}, b.said(s, `return talk(base + "/refuse")`))
	require.Equal(t, []any{failed, closed(1006, "", false)}, b.said(s, `return talk(base + "/moved")`))
	require.Equal(t, []any{failed, closed(1006, "", false)}, b.said(s, `return talk(base + "/extension")`))
	require.Equal(t, []any{failed, closed(1006, "", false)}, b.said(s, `return talk(base + "/endless")`))
	require.Equal(t, []any{failed, closed(1006, "", false)}, b.said(s, `return talk("ws://127.0.0.1:1/")`))
	require.Equal(t, []any{opened, failed, closed(1006, "", false)}, b.said(s, `return talk(base + "/wrong")`))
	require.Equal(t, []any{opened, failed, closed(1006, "", false)},
		b.said(s, fmt.Sprintf(`return talk(base + "/bytes?n=%d")`, hostcalls.MaxSocketMessage+1)))
	require.Contains(t, strings.Join(b.lines(), "\n"), "/refuse: the server does not answer as a WebSocket server: 403 Forbidden")
	require.Contains(t, strings.Join(b.lines(), "\n"), "the handshake has more than 65536 bytes")
	b.said(s, `return talk(base.replace("//", "//me:secret@") + "/refuse")`)
	require.Contains(t, strings.Join(b.lines(), "\n"), "WebSocket to ws://me:xxxxx@127.0.0.1:")
	require.NotContains(t, strings.Join(b.lines(), "\n"), "secret")
	require.Equal(t, 300_000.0, b.said(s, `return new Promise((done) => { const socket = new WebSocket(base + "/echo");
		socket.onopen = () => socket.send("x".repeat(300000)); socket.onmessage = (e) => { done(e.data.length); socket.close() } })`))

	require.Equal(t, []any{[]any{"open", 1.0, "Chat"}, closed(1005, "", true)},
		b.said(s, `return talk(base + "/echo?choose=Chat", { open(s) { s.close() } }, ["soap", "Chat"])`))
	for _, given := range []string{`/echo", {}, ["soap"]`, `/echo?choose=chat", {}, ["Chat"]`, `/echo?choose=a", {}`} {
		require.Equal(t, []any{failed, closed(1006, "", false)}, b.said(s, `return talk(base + "`+given+`)`), given)
	}
	require.Equal(t, []any{2.0, failed, closed(1006, "", false)}, b.said(s, `return new Promise((done) => {
		const socket = new WebSocket(base + "/echo");
		socket.close(); socket.close(4000);
		const seen = [socket.readyState];
		socket.onopen = () => seen.push("open");
		socket.onerror = () => seen.push(["error", socket.readyState, false]);
		socket.onclose = (e) => done([...seen, ["close", e.code, e.reason, e.wasClean, socket.readyState]]);
	})`))
	require.Equal(t, 1.0*hostcalls.MaxSocketMessage,
		b.said(s, fmt.Sprintf(`return new Promise((done) => { const socket = new WebSocket(base + "/bytes?n=%d");
		socket.onmessage = (e) => { done(e.data.size); socket.close() } })`, hostcalls.MaxSocketMessage)))
	require.Zero(t, b.held(), "bytes of the owner")
}

// held returns the bytes that the owner of the test's workers holds outside heaps.
func (b *bench) held() int64 {
	held := int64(-1)
	require.Eventually(b.t, func() bool {
		held = b.pool.holdings.Of("acme")
		return held == 0 && b.pool.holdings.Total() == 0
	}, patience, time.Millisecond)
	return held
}

func TestWebSocketSecure(t *testing.T) {
	t.Parallel()
	s := newWSServer(t, true)
	b := newBench(t, loopback)
	require.Equal(t, "error", b.said(s, `return (await talk(base + "/echo"))[0][0]`), "nobody vouches for the server")
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	b.pool.calls.Egress.TLS = &tls.Config{RootCAs: roots}
	require.Equal(t, []any{[]any{"open", 1.0, ""}, []any{"message", "hi"}, []any{"close", 1005.0, "", true, 3.0}},
		b.said(s, `return talk(base + "/echo", { open(s) { s.send("hi") }, message(s) { s.close() } })`))
}

// A socket ends with its event, and the server is notified.
func TestWebSocketDiesWithItsEvent(t *testing.T) {
	t.Parallel()
	s := newWSServer(t, false)
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", ws+`let n = 0; export default { async fetch(r, env) {
			const socket = new WebSocket(env.BASE + "/echo");
			socket.onmessage = socket.onerror = socket.onclose = () => { n++ };
			await new Promise((done) => { socket.onopen = done });
			return new Response(String(n));
		} }`)
		w.Vars = map[string]string{"BASE": s.url}
		for range 2 {
			o := b.run(w, fetch("GET", "http://x/", ""))
			require.Nil(t, o.end.Failure, "%v", b.lines())
			require.Equal(t, "0", string(o.reply.Body))
			select {
			case seen := <-s.left:
				require.Equal(t, "websocket: close 1001 (going away)", seen)
			case <-time.After(patience):
				t.Fatal("the connection stays")
			}
		}
		require.Zero(t, b.held())
	}, loopback)
}

// A run can wait for an open socket, also if only the socket can settle the handler's promise. Listeners run as the
// event that made the socket, and in its context.
func TestWebSocketBelongsToItsEvent(t *testing.T) {
	t.Parallel()
	s := newWSServer(t, false)
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `const als = new AsyncLocalStorage(); export default { async task(event, env) {
			return als.run(event.payload, () => new Promise((done) => {
				const socket = new WebSocket(env.BASE + "/echo");
				const seen = [];
				socket.onopen = () => { socket.send(String(als.getStore())) };
				socket.onmessage = (e) => { console.log("heard by " + event.payload); seen.push(als.getStore(), Number(e.data)); socket.close() };
				socket.onclose = () => { seen.push(als.getStore()); done(seen) };
			}));
		} }`)
		w.Vars = map[string]string{"BASE": s.url}
		var all []*outcome
		for i := range 6 {
			e := task(fmt.Sprint(i))
			e.ID = fmt.Sprint(i)
			all = append(all, b.start(w, e))
		}
		for i, o := range all {
			o.wait(t, o.ended)
			require.Nil(t, o.end.Failure, "%v", b.lines())
			require.JSONEq(t, fmt.Sprintf(`{"success":true,"data":[%d,%d,%d]}`, i, i, i), string(o.reply.Body))
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Len(t, b.logs, 6)
		for _, l := range b.logs {
			require.Equal(t, "heard by "+l.EventID, l.Text)
		}
	}, loopback)
}

// While a handler is busy, at most one more message is read from the server.
func TestWebSocketBackpressure(t *testing.T) {
	t.Parallel()
	s := newWSServer(t, false)
	b := newBench(t, loopback)
	w := worker("w", `export default { async task(event) { return new Promise((done) => {
		const socket = new WebSocket(event.payload + "/flood");
		socket.onmessage = (e) => { const until = Date.now() + 400; while (Date.now() < until); done(e.data.size) };
	}) } }`)
	w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Second)}
	o := b.run(w, task(strconv.Quote(s.url)))
	require.Nil(t, o.end.Failure, "%v", b.lines())
	require.Equal(t, `{"success":true,"data":1048576}`, string(o.reply.Body))
	require.Less(t, s.written.Load(), int64(32<<20))
	require.Zero(t, b.held())
}

// bufferedAmount counts bytes that wait. Written bytes are subtracted. Bytes that are never written stay.
func TestWebSocketBufferedAmount(t *testing.T) {
	t.Parallel()
	s := newWSServer(t, false)
	b := newBench(t, loopback)
	require.Equal(t, []any{3.0, 10.0, 0.0, 4.0, 4.0}, b.said(s, `return new Promise((done) => {
		const socket = new WebSocket(base + "/echo"), seen = [];
		socket.onopen = () => { socket.send("é€".slice(1)); seen.push(socket.bufferedAmount); socket.send(new Uint32Array(1)); socket.send("abc"); seen.push(socket.bufferedAmount) };
		let n = 0;
		socket.onmessage = () => { if (++n < 3) return; (function wait() {
			if (socket.bufferedAmount > 0) return setTimeout(wait, 1);
			seen.push(socket.bufferedAmount); socket.close(); socket.send("late"); seen.push(socket.bufferedAmount);
		})() };
		socket.onclose = () => { seen.push(socket.bufferedAmount); done(seen) };
	})`))
}

func TestWebSocketHostile(t *testing.T) {
	t.Parallel()
	s := newWSServer(t, false)
	b := newBench(t, loopback)
	run := func(body string) any {
		w := worker("w", ws+`export default { async task(event) { const base = event.payload; `+body+` } }`)
		w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Second)}
		o := b.run(w, task(strconv.Quote(s.url)))
		require.Nil(t, o.end.Failure, "%v", b.lines())
		return string(o.reply.Body)
	}
	// A million sends, empty ones among them, to a server that reads nothing: the socket is full and ends.
	for _, data := range []string{`""`, `"x".repeat(100)`, `new Uint8Array(1 << 20)`} {
		require.Equal(t, `{"success":true,"data":[["open",1,""],["error",3,false],["close",1006,"",false,3]]}`,
			run(`return talk(base + "/deaf", { open(s) { for (let i = 0; i < 1e6; i++) { s.send(`+data+`); if (s.readyState > 1) break } } })`))
	}
	// Sockets that are never closed: at most this many.
	require.Equal(t, `{"success":true,"data":[16,4]}`,
		run(`let opened = 0, failed = 0; const all = []; return new Promise((done) => {
		for (let i = 0; i < 20; i++) { const s = new WebSocket(base + "/echo"); all.push(s);
			s.onopen = () => { opened++; if (opened + failed === 20) done([opened, failed]) }; s.onerror = () => { failed++; if (opened + failed === 20) done([opened, failed]) } }
	})`))
	for range 16 {
		require.NotEmpty(t, <-s.left)
	}
	// One after the other, each counts as a subrequest.
	require.Equal(t, `{"success":true,"data":[50,"error"]}`,
		run(`for (let i = 0; ; i++) { const seen = await talk(base + "/echo", { open(s) { s.close() } }); if (seen[0][0] !== "open") return [i, seen[0][0]] }`))
	require.Zero(t, b.held())
}

// WebSockets have the same guard as fetch().
func TestWebSocketPrivateAddress(t *testing.T) {
	t.Parallel()
	s := newWSServer(t, false)
	b := newBench(t)
	for _, address := range []string{s.url, "ws://localhost:1", "ws://[::1]:1", "ws://169.254.169.254"} {
		require.Equal(t, []any{[]any{"error", 3.0, false}, []any{"close", 1006.0, "", false, 3.0}},
			b.said(s, `return talk(`+strconv.Quote(address)+`)`))
	}
	require.Contains(t, b.lines()[0], "address is not allowed")
}
