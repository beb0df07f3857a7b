package isolates

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sseServer streams events. /lines sends the text of ?text=, in base64, and ends. /gone answers 204, /html another
// type. /drop sends two events, and then only those that Last-Event-ID asks for. /hold sends nothing.
type sseServer struct {
	*httptest.Server
	mu   sync.Mutex
	asks []string // path, accept, cache-control and last event id of each request
	left chan struct{}
}

func newSSEServer(t *testing.T) *sseServer {
	s := &sseServer{left: make(chan struct{}, 10)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asks = append(s.asks, fmt.Sprintf("%s %s %s %q", r.URL.Path, r.Header.Get("Accept"), r.Header.Get("Cache-Control"),
			r.Header.Get("Last-Event-Id")))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		switch r.URL.Path {
		case "/lines":
			for _, part := range r.URL.Query()["text"] {
				text, _ := base64.StdEncoding.DecodeString(part)
				_, _ = w.Write(text)
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond) // so that it usually comes in its own chunk
			}
		case "/gone":
			w.WriteHeader(http.StatusNoContent)
		case "/html":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("data: x\n\n"))
		case "/drop":
			if id := r.Header.Get("Last-Event-Id"); id != "" {
				_, _ = fmt.Fprintf(w, "data: after %s\n\n", id)
			} else {
				_, _ = w.Write([]byte("retry: 5\nid: é1\ndata: first\n\nid: lost\ndata: cut off"))
			}
		case "/hold":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			s.left <- struct{}{}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// sse is the beginning of workers. listen returns the messages of an EventSource up to `until` of them, and then closes
// it.
const sse = `const listen = (url, until, names = ["open", "message", "error"]) => new Promise((done) => {
	const seen = [], source = new EventSource(url);
	for (const name of names) source.addEventListener(name, (e) => {
		seen.push(e instanceof MessageEvent ? [name, e.data, e.lastEventId, e.origin === new URL(url).origin, e.isTrusted] : [name, source.readyState]);
		if (seen.length === until) { source.close(); done([...seen, source.readyState]) }
	});
});
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
`

func TestEventSource(t *testing.T) {
	t.Parallel()
	s := newSSEServer(t)
	b := newBench(t, loopback)
	b.cpu = ample
	run := func(body string) any {
		return b.task(sse+`export default { async task(event) { const base = event.payload; `+body+` } }`, `"`+s.URL+`"`)["data"]
	}
	lines := func(until int, names string, parts ...string) any {
		text := "const url = base + '/lines?' + new URLSearchParams(["
		for _, p := range parts {
			text += fmt.Sprintf("['text', %q],", base64.StdEncoding.EncodeToString([]byte(p)))
		}
		return run(text + fmt.Sprintf("]); return listen(url, %d, [%s])", until, names))
	}
	message := func(name, data, id string) []any { return []any{name, data, id, true, true} }
	opened, failed := []any{"open", 1.0}, []any{"error", 0.0}
	const usual = `"open", "message", "error"`

	require.Equal(t, []any{opened, message("message", "a", ""), message("message", "b\nc", ""), failed, 2.0},
		lines(4, usual, "data: a\n\ndata:b\ndata: c\n\n"))
	require.Equal(t, []any{message("message", "x", ""), message("message", "y", ""), message("message", "z", ""), 2.0},
		lines(3, `"message"`, "\ufeffdata: x\r", "\n\r\ndata: y\r\r", "da", "ta: z\n", "\n"))
	require.Equal(t, []any{message("add", "73", "1"), message("message", " two", "1"), message("add", "", ""), 2.0},
		lines(3, `"message", "add"`, ": comment\nevent: add\ndata: 73\nid: 1\n\n", "data:  two\n\n", "event: add\ndata\nid\n\n"))
	require.Equal(t, []any{message("message", "é€", "ü"), message("message", "\ufffd", "ü"), 2.0},
		lines(2, `"message"`, "id: ü\ndata: \xc3", "\xa9\xe2\x82", "\xac\n\ndata: \xff\nid: a\x00b\n\n"))
	require.Equal(t, []any{message("message", "kept", ""), failed, 2.0},
		lines(2, `"message", "error"`, "event: none\n\nnonsense: 1\ndata: kept\n\ndata: no empty line follows"))
	require.Equal(t, []any{[]any{"error", 2.0}, 2.0}, run(`return listen(base + "/gone", 1)`))
	require.Equal(t, []any{[]any{"error", 2.0}, 2.0}, run(`return listen(base + "/html", 1)`))
	require.Equal(t, []any{[]any{"error", 2.0}, 2.0}, run(`return listen("data:text/event-stream,x", 1)`))
	require.Equal(t, []any{[]any{"error", 0.0}, 2.0}, run(`return listen("http://127.0.0.1:1/", 1)`))

	s.asks = nil
	require.Equal(t, []any{opened, message("message", "first", "é1"), failed, opened, message("message", "after é1", "é1"),
		2.0},
		run(`return listen(base + "/drop", 5)`))
	require.Equal(t, []string{`/drop text/event-stream no-store ""`, `/drop text/event-stream no-store "é1"`}, s.asks)

	require.Equal(t, []any{1.0, 2.0}, run(`const source = new EventSource(base + "/hold");
		await new Promise((done) => { source.onopen = done }); const was = source.readyState; source.close(); source.onerror = () => { throw 1 }; await sleep(5);
		return [was, source.readyState]`))
	<-s.left
}

// The connection of an EventSource ends with its event.
func TestEventSourceDiesWithItsEvent(t *testing.T) {
	t.Parallel()
	s := newSSEServer(t)
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", sse+`let n = 0; export default { async fetch(r, env) {
			const source = new EventSource(env.BASE + "/hold");
			source.onmessage = source.onerror = () => { n++ };
			await new Promise((done) => { source.onopen = done });
			return new Response(String(n));
		} }`)
		w.Vars = map[string]string{"BASE": s.URL}
		for range 2 {
			o := b.run(w, fetch("GET", "http://x/", ""))
			require.Nil(t, o.end.Failure, "%v", b.lines())
			require.Equal(t, "0", string(o.reply.Body))
			select {
			case <-s.left:
			case <-time.After(patience):
				t.Fatal("the connection stays")
			}
		}
	}, loopback)
}

// Listeners run as the event that made the EventSource, and in its context.
func TestEventSourceBelongsToItsEvent(t *testing.T) {
	t.Parallel()
	s := newSSEServer(t)
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", sse+`const als = new AsyncLocalStorage(); export default { async task(event, env) {
			return als.run(event.payload, () => new Promise((done) => {
				const source = new EventSource(env.BASE + "/drop");
				const seen = [];
				source.onmessage = (e) => { console.log("heard by " + event.payload); seen.push(als.getStore()); if (seen.length === 2) { source.close(); done(seen) } };
			}));
		} }`)
		w.Vars = map[string]string{"BASE": s.URL}
		var all []*outcome
		for i := range 6 {
			e := task(fmt.Sprint(i))
			e.ID = fmt.Sprint(i)
			all = append(all, b.start(w, e))
		}
		for i, o := range all {
			o.wait(t, o.ended)
			require.Nil(t, o.end.Failure, "%v", b.lines())
			require.JSONEq(t, fmt.Sprintf(`{"success":true,"data":[%d,%d]}`, i, i), string(o.reply.Body))
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Len(t, b.logs, 12)
		for _, l := range b.logs {
			require.Equal(t, "heard by "+l.EventID, l.Text)
		}
	}, loopback)
}
