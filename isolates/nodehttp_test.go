package isolates

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inHTTP runs a task handler with a client of node:http and a server to which it speaks.
func (b *bench) inHTTP(s *httptest.Server, body string) any {
	b.t.Helper()
	return b.inNode(fmt.Sprintf(`const http = builtin("http"), at = %q;
		const read = async (res) => { let text = ""; for await (const c of res) text += c; return text };
		const sent = (options, ...chunks) => new Promise((done, failed) => {
			const req = http.request(at + (options.path ?? ""), options, async (res) => done([res.statusCode, await read(res), res.headers]));
			req.on("error", (e) => failed(e));
			for (const c of chunks) req.write(c);
			req.end() }); %s`, s.URL, body))
}

func serve(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}

// The client of node:http sends its requests by fetch().
func TestNodeHTTPClient(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/go":
			w.Header().Set("Location", "/there")
			w.WriteHeader(http.StatusFound)
			return
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "part")
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		_, _ = fmt.Fprintf(w, "%s %s %d %d %q %s", r.Method, r.RequestURI, r.ContentLength, len(body),
			r.Header["X-Two"], r.Header.Get("Authorization"))
	})
	b := newBench(t, loopback)
	require.Equal(t, []any{200.0, `GET / 0 0 [] `, []any{"a=1", "b=2"}}, b.inHTTP(s, `const [status, text, headers] = await sent({});
		return [status, text, headers["set-cookie"]]`))
	require.Equal(t, `POST /x?y=1 10 10 ["1, 2"] Basic YTpi`, b.inHTTP(s, `
		return (await sent({ method: "post", path: "/x?y=1", headers: { "X-Two": ["1", "2"] }, auth: "a:b" }, "hello", Buffer.from("world")))[1]`))
	require.Equal(t, `GET / 4 4 [] `, b.inHTTP(s, `return (await sent({}, "body"))[1]`), "of which fetch() knows nothing")
	require.Equal(t, []any{`PUT / -1 200000 [] `, `PUT / 200000 200000 [] `}, b.inHTTP(s, `
		const piece = new Uint8Array(100_000);
		return [(await sent({ method: "PUT" }, piece, piece))[1], (await sent({ method: "PUT", headers: { "Content-Length": 200_000 } }, piece, piece))[1]]`))
	require.Equal(t, []any{"GET / 0 0 [] ", "GET / 0 0 [] ", "ERR_SOCKET_BAD_PORT"}, b.inHTTP(s, `
		const changed = (method) => new Promise((done) => { const req = http.get(at, async (res) => done(await read(res))); req.method = method });
		const first = [await changed("TRACE"), await changed(Object.defineProperty([], 0, { get() { throw 1 } }))];
		try { http.get({ host: "127.0.0.1", port: "80@evil" }) } catch (e) { return [...first, e.code] }`), "what was checked is sent")
	require.Equal(t, []any{302.0, "/there"}, b.inHTTP(s, `const [status, , headers] = await sent({ path: "/go" }); return [status, headers.location]`))
	require.Equal(t, []any{"ECONNRESET", true}, b.inHTTP(s, `return new Promise((done) => http.get(at + "/cut", (res) => {
		res.on("error", (e) => done([e.code, res.aborted])).resume() }))`))
	require.Equal(t, []any{"socket", "finish", "response", "data", "end", "close"}, b.inHTTP(s, `const seen = [];
		const req = http.request(at);
		for (const n of ["socket", "finish", "error", "abort"]) req.on(n, () => seen.push(n));
		req.on("response", (res) => { seen.push("response"); res.once("data", () => seen.push("data")); res.on("end", () => seen.push("end")) });
		const closed = new Promise((done) => req.on("close", done));
		req.end();
		await closed;
		return [...seen, "close"]`))
	b.holdsNothing()
}

// Failures have the codes that programs know, and options that fetch() does not have are refused.
func TestNodeHTTPClientFailures(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-stop })
	t.Cleanup(func() { close(stop) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := l.Addr().String()
	require.NoError(t, l.Close())
	b := newBench(t, loopback)
	failed := `const failed = (options, then = () => {}) => new Promise((done) => { const r = http.request(options);
		r.on("error", (e) => done(e.code + " " + e.message)); then(r); r.end() }); `
	require.Equal(t, []any{
		"ECONNREFUSED connect ECONNREFUSED " + closed, "ENOTFOUND getaddrinfo ENOTFOUND nobody.invalid", "ECONNRESET socket hang up",
		"ABORT_ERR The operation was aborted",
	}, b.inHTTP(s, failed+`return [await failed("http://`+closed+`"), await failed({ host: "nobody.invalid" }),
		await failed(at, (r) => setTimeout(() => r.destroy(), 5)), await failed({ ...builtin("url").urlToHttpOptions(new URL(at)), signal: AbortSignal.abort() })]`))
	require.Contains(t, b.inHTTP(s, failed+`return failed("http://10.0.0.1/")`), "EACCES fetch failed: 10.0.0.1:80: address is not allowed")
	require.Equal(t, []any{"timeout", "ECONNRESET"}, b.inHTTP(s, `const seen = [];
		const r = http.get(at, { timeout: 10 });
		r.on("timeout", () => { seen.push("timeout"); r.destroy() });
		await new Promise((done) => r.on("error", (e) => { seen.push(e.code) }).on("close", done));
		return seen`))
	wrong := strings.Fields(`ERR_INVALID_URL ERR_INVALID_PROTOCOL ERR_INVALID_HTTP_TOKEN ERR_INVALID_ARG_TYPE ERR_UNESCAPED_CHARACTERS
		ERR_INVALID_ARG_TYPE ERR_INVALID_HTTP_TOKEN ERR_INVALID_CHAR ERR_INVALID_CHAR ERR_INVALID_URL ERR_METHOD_NOT_IMPLEMENTED
		ERR_METHOD_NOT_IMPLEMENTED ERR_METHOD_NOT_IMPLEMENTED ERR_METHOD_NOT_IMPLEMENTED`)
	got := b.inHTTP(s, `const https = builtin("https"); class Own extends http.Agent { createConnection() {} }
		return [() => http.request("nope"), () => http.request("ftp://x"), () => http.request({ method: "a b" }), () => http.request({ method: 5 }),
			() => http.request({ path: "/a b" }), () => http.request({ host: 5 }), () => http.request({ headers: { "a b": 1 } }),
			() => http.request({ headers: { a: "b\r\nc: d" } }), () => http.request({ headers: ["a", "b\n"] }), () => http.request({ host: "a/b" }),
			() => http.request({ agent: new Own() }), () => http.request({ socketPath: "/x" }), () => https.request({ rejectUnauthorized: false }),
			() => http.request({ method: "CONNECT" })].map((f) => { try { f(); return "none" } catch (e) { return e.code } })`)
	for i := range wrong {
		require.Equal(t, wrong[i], got.([]any)[i], i)
	}
	require.Equal(t, []any{"abort", "close"}, b.inHTTP(s, `const seen = [], r = http.request(at);
		for (const n of ["abort", "error", "close"]) r.on(n, () => seen.push(n));
		r.abort();
		await scheduler.wait(5);
		return seen`))
	require.Equal(t, "mine", b.inHTTP(s, `try { http.request({ get host() { throw new Error("mine") } }) } catch (e) { return e.message }`))
	require.Equal(t, []any{"ERR_STREAM_WRITE_AFTER_END", "ERR_HTTP_HEADERS_SENT"}, b.inHTTP(s, `const r = http.request(at);
		const late = new Promise((done) => r.on("error", (e) => done(e.code)));
		r.end();
		r.write("late");
		try { r.setHeader("a", "b") } catch (e) { return [await late, e.code] }`))
	b.holdsNothing()
}

// Thousands of requests that nobody waits for are as many as those of fetch().
func TestNodeHTTPClientBounds(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	b := newBench(t, loopback)
	b.cpu = ample
	require.Equal(t, []any{50.0, 1950.0}, b.inHTTP(s, `let ok = 0, failed = 0;
		await Promise.all(Array.from({ length: 2000 }, () => new Promise((done) => http.get(at, (res) => { ok++; res.resume(); done() })
			.on("error", () => { failed++; done() }))));
		return [ok, failed]`))
	require.Equal(t, "ok", b.inHTTP(s, `for (let i = 0; i < 2000; i++) http.get(at).on("error", () => {}); return "ok"`))
	b.holdsNothing()
}
