package isolates

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// served makes a worker whose server of node:http has a listener.
func served(listener string) *workers.Worker {
	return worker("w", `import { builtin } from "pinwheel:node";
		const http = builtin("http"), { httpServerHandler } = builtin("cloudflare:node");
		http.createServer(`+listener+`).listen(8080);
		export default httpServerHandler({ port: 8080 });`)
}

// A server of node:http answers fetch events.
func TestNodeHTTPServer(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := served(`async (req, res) => {
			let body = "";
			for await (const chunk of req) body += chunk;
			res.setHeader("Set-Cookie", ["a=1", "b=2"]);
			res.writeHead(201, { "X-Own": "yes" });
			res.end(JSON.stringify([req.method, req.url, req.headers.host, body, req.complete])) }`)
		for range 2 {
			o := b.run(w, fetch("POST", "http://w.test/a/b?c=d", "hello"))
			require.Nil(t, o.end.Failure)
			require.Equal(t, 201, o.reply.Status)
			require.JSONEq(t, `["POST", "/a/b?c=d", "w.test", "hello", true]`, string(o.reply.Body))
			require.Equal(t, []string{"set-cookie", "a=1", "set-cookie", "b=2", "x-own", "yes"}, o.reply.Headers)
		}
	})
}

// What a response becomes, as code writes it.
func TestNodeHTTPServerResponses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer := func(listener string) any {
		return b.inNode(`const http = builtin("http"), { handleAsNodeRequest } = builtin("cloudflare:node");
			const s = http.createServer(` + listener + `);
			s.listen(0);
			return handleAsNodeRequest(s.address().port, new Request("http://w.test/x", { method: "POST", body: "in" })).then(
				async (r) => [r.status, r.statusText, [...r.headers], await r.text().catch((e) => e.message)], (e) => e.code + " " + e.message)`)
	}
	for listener, want := range map[string]any{
		`(q, r) => r.end("whole")`:                                                    []any{200.0, "OK", []any{}, "whole"},
		`(q, r) => { r.write("a"); r.write("b"); r.end() }`:                           []any{200.0, "OK", []any{}, "ab"},
		`(q, r) => { r.write("a"); setTimeout(() => r.end("b"), 1) }`:                 []any{200.0, "OK", []any{}, "ab"},
		`(q, r) => { r.statusCode = 204; r.end("none") }`:                             []any{204.0, "No Content", []any{}, ""},
		`(q, r) => { r.writeHead(404, "Gone fishing"); r.end() }`:                     []any{404.0, "Gone fishing", []any{}, ""},
		`(q, r) => { r.setHeader("Connection", "close").setHeader("X", 5); r.end() }`: []any{200.0, "OK", []any{[]any{"x", "5"}}, ""},
		`(q, r) => { r.flushHeaders(); setTimeout(() => r.destroy(), 1) }`:            []any{200.0, "OK", []any{}, "socket hang up"},
		`(q, r) => q.pipe(r)`:                         []any{200.0, "OK", []any{}, "in"},
		`(q, r) => { throw new Error("mine") }`:       "undefined mine",
		`(q, r) => { r.destroy() }`:                   "ECONNRESET the server has ended the request without a response",
		`(q, r) => { r.writeHead(99) }`:               "ERR_HTTP_INVALID_STATUS_CODE Invalid status code: 99",
		`(q, r) => { r.setHeader("a", "b\r\nc: d") }`: `ERR_INVALID_CHAR Invalid character in header content ["a"]`,
		`(q, r) => { r.writeHead(200, "a\nb") }`:      "ERR_INVALID_CHAR Invalid character in statusMessage",
		`(q, r) => { let n = 0; r.setHeader("a", { toString: () => n++ < 1 ? "b" : "b\r\nc: d" }); r.end() }`: "undefined invalid value of header a",
		// What was checked is sent, whatever a guest makes of the fields later.
		`(q, r) => { r.writeHead(201); r.statusCode = 7; r.statusMessage = "a\r\nb"; r.end("x") }`: []any{201.0, "Created", []any{}, "x"},
		`(q, r) => { r.writeHead(201); r.statusCode = Object.defineProperty([], 0, { get() { throw 1 } }); r.end("x") }`: []any{201.0,
			"Created", []any{}, "x"},
		`(q, r) => { r._implicitHeader = () => {}; r.statusCode = 1000; r.end("x") }`: "ERR_HTTP_INVALID_STATUS_CODE " +
			"the response has no status: writeHead() was not called",
		`(q, r) => { r.on("error", () => {}); r.end("x"); r.write("late") }`: []any{200.0, "OK", []any{}, "x"},
	} {
		require.Equal(t, want, answer(listener), listener)
	}
	require.Equal(t, []any{"finish", "close"}, b.inNode(`const { httpServerHandler } = builtin("cloudflare:node"), seen = [];
		const s = builtin("http").createServer((q, r) => { for (const n of ["finish", "error", "close"]) r.on(n, () => seen.push(n)); r.end("x") });
		const r = await httpServerHandler(s).fetch(new Request("http://w.test/"));
		await r.text();
		await scheduler.wait(1);
		return seen`))
	require.Equal(t, []any{"EADDRINUSE", "Http server with port 2 not found", 10000.0}, b.inNode(`
		const http = builtin("http"), { handleAsNodeRequest } = builtin("cloudflare:node");
		http.createServer().listen(1);
		const code = await new Promise((done) => http.createServer().on("error", (e) => done(e.code)).listen(1));
		const why = await handleAsNodeRequest(2, new Request("http://x/")).catch((e) => e.message.split(".")[0]);
		const s = http.createServer((q, r) => { for (let i = 0; i < 10_000; i++) r.setHeader("h" + i, "v"); r.end(String(r.getHeaderNames().length)) }).listen(3);
		return [code, why, +(await (await handleAsNodeRequest({ port: 3 }, new Request("http://x/"))).text())]`))
}

// A listener that never ends is an event that never ends: its limits end it. What it does later is too late.
func TestNodeHTTPServerNeverEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := served(`() => { setInterval(() => {}, 1) }`)
	w.Limits.Wall = workers.Millis(100 * time.Millisecond)
	o := b.run(w, fetch("GET", "http://w.test/", ""))
	require.Equal(t, events.ReasonTimeout, o.end.Failure.Reason)
	o = b.run(served(`() => {}`), fetch("GET", "http://w.test/", ""))
	require.NotNil(t, o.end.Failure, "nothing can answer it any more")
	require.Contains(t, o.end.Failure.Message, "the handler can never finish")
	o = b.run(served(`(req, res) => { res.end("x"); throw new Error("mine") }`), fetch("GET", "http://w.test/", ""))
	require.Equal(t, "x", string(o.reply.Body))
	require.Contains(t, fmt.Sprint(b.lines()), "mine", "what is thrown after the response is logged")
	w = served(`(req, res) => { res.write("begun"); setInterval(() => {}, 1) }`)
	w.Limits.Wall = workers.Millis(100 * time.Millisecond)
	o = b.run(w, fetch("GET", "http://w.test/", ""))
	require.Equal(t, events.ReasonTimeout, o.end.Failure.Reason)
	b.holdsNothing()
}
