package isolates

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// headerEcho answers with the bytes of the header X-Value, in hex and as they came.
func headerEcho(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("X-Value"))
		_, _ = fmt.Fprintf(w, "%x", r.Header.Get("X-Value"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A header that a worker passes on, to a server or to the client, has the bytes that came, UTF-8 or not.
func TestHeadersThatArePassedOnAreTheSameBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	target := headerEcho(t)
	for name, code := range map[string]string{
		"request":  `fetch(new Request(target, request))`,
		"init":     `fetch(target, request)`,
		"headers":  `fetch(target, { headers: request.headers })`,
		"copy":     `fetch(target, { headers: new Headers(request.headers) })`,
		"record":   `fetch(target, { headers: Object.fromEntries(request.headers) })`,
		"response": `fetch(target, request).then((r) => new Response(r.body, r))`,
	} {
		for _, value := range []string{"grüße 世界 🎡", "\xff\xe9", "a\x80b", "plain"} {
			e := fetch("GET", "http://x/", "")
			e.HTTPHeaders = []string{"X-Value", value}
			o := b.run(worker("w", `const target = "`+target+`"; export default { fetch: async (request) => { const r = await `+code+
				`; return new Response(await r.text(), { headers: { "x-echo": r.headers.get("x-echo") } }) } }`), e)
			require.Nil(t, o.end.Failure, name)
			require.Equal(t, fmt.Sprintf("%x", value), string(o.reply.Body), name)
			require.Equal(t, value, headerOf(o.reply, "x-echo"), name)
		}
	}
}

func headerOf(r *events.Reply, name string) string {
	for i := 0; i+1 < len(r.Headers); i += 2 {
		if r.Headers[i] == name {
			return r.Headers[i+1]
		}
	}
	return ""
}

// The headers of a task are text. fetch() sends text beyond U+00FF as UTF-8, not as other bytes.
func TestHeadersOfATaskAreText(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	e := task(`"` + headerEcho(t) + `"`)
	e.Header = events.Header{"X-Value": {"世界"}}
	o := b.run(worker("w", `export default { task: async (event) => [event.headers.get("x-value"), await (await fetch(event.payload, event)).text()] }`), e)
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, fmt.Sprintf(`{"success": true, "data": ["世界", "%x"]}`, "世界"), string(o.reply.Body))
}

// JSON may begin with a byte order mark, as texts of some editors do.
func TestJSONWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	code := `export default { task: async (event) => [event.payload, await event.json(), await event.text(), (await event.bytes()).length] }`
	for _, contentType := range []string{"application/json", "text/x+json; charset=utf-8", ""} {
		e := task("\ufeff{\"a\":\"é\"}")
		if contentType != "" {
			e.Header = events.Header{"Content-Type": {contentType}}
		}
		o := b.run(worker("w", code), e)
		require.Nil(t, o.end.Failure, contentType)
		require.JSONEq(t, `{"success": true, "data": [{"a":"é"}, {"a":"é"}, "{\"a\":\"é\"}", 13]}`, string(o.reply.Body), contentType)
	}
	o := b.batchOf(worker("w", `export default { queue(batch) { for (const m of batch.messages) console.log(JSON.stringify(m.body)) } }`),
		task("\ufeff1"), task("\ufeff[2]"))
	require.Nil(t, o.end.Failure)
	require.Equal(t, []string{"1", "[2]"}, b.lines())
}

// A header that comes twice has the separator of its kind: RFC 6265 joins cookies by semicolons.
func TestCookiesAreJoinedBySemicolons(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	e := fetch("GET", "http://x/", "")
	e.HTTPHeaders = []string{"Cookie", "a=1", "X-A", "1", "Cookie", "b=2", "X-A", "2"}
	o := b.run(worker("w", `export default { fetch: (request) => Response.json([
		request.headers.get("cookie"), new Map(request.headers).get("cookie"), new Request(request).headers.get("Cookie"),
		request.headers.get("x-a"), new Headers([["cookie", "c=1"], ["cookie", "d=2"]]).get("cookie")]) }`), e)
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `["a=1; b=2", "a=1; b=2", "a=1; b=2", "1, 2", "c=1; d=2"]`, string(o.reply.Body))
}

// An empty body is none where a status allows none, as at Cloudflare.
func TestStatusesWithoutABodyTakeAnEmptyOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	require.Equal(t, []any{[]any{204.0, true}, []any{204.0, true}, []any{205.0, true}, []any{304.0, true},
		[]any{204.0, true},
		"TypeError", "TypeError", "TypeError"}, b.task(`export default { task: () => [
			["", 204], [new Uint8Array(0), 204], [new ArrayBuffer(0), 205], [new Blob([]), 304], [new URLSearchParams(), 204],
			["a", 204], [new Uint8Array(1), 304], [new ReadableStream(), 204],
		].map(([body, status]) => { try { const r = new Response(body, { status }); return [r.status, r.body === null] } catch (e) { return e.name } }) }`, "1")["data"])
	o := b.run(worker("w", `export default { fetch: () => new Response("", { status: 204 }) }`), fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure)
	require.Equal(t, 204, o.reply.Status)
	require.Empty(t, headerOf(o.reply, "content-type"))
}

// A body may be an async iterable of texts and bytes.
func TestBodiesOfAsyncIterables(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer s.Close()
	const gen = `async function* gen() { yield "a"; yield new Uint8Array([0xc3, 0xbc]); await null; yield new Uint16Array([0x6262]).buffer; yield "é" } `
	o := b.run(worker("w", gen+`export default { fetch: () => new Response(gen()) }`), fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure)
	require.Equal(t, "aübbé", string(o.reply.Body))
	require.Empty(t, headerOf(o.reply, "content-type"))
	require.Equal(t, []any{"aübbé", "aübbé", "abc", "1,2", "[object Object]", "own bytes",
		"TypeError: a body's async iterable gave 5: it gives strings and bytes", "Error: own", true},
		b.task(gen+`
		class Own { toString() { return "own text" } async *[Symbol.asyncIterator]() { yield "own bytes" } }
		export default { async task(event) {
			const text = (body) => new Response(body).text().catch(String);
			let closed = false;
			const endless = { [Symbol.asyncIterator]: () => ({ next: async () => ({ value: "x" }), return: async () => { closed = true; return {} } }) };
			await new Response(endless).body.cancel();
			return [await text(gen()), await (await fetch(event.payload, { method: "POST", body: gen(), duplex: "half" })).text(),
				await text(new String("abc")), await text([1, 2]), await text({}), await text(new Own()),
				await text((async function* () { yield 5 })()), await text((async function* () { yield "a"; throw new Error("own") })()), closed];
		} }`, `"`+s.URL+`"`)["data"])
}

// The URL Standard since June 2026 takes domains of ASCII as they are, punycode that is none too (whatwg/url#914).
func TestDomainsOfASCIIAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	require.Equal(t, map[string]any{
		"xn--a": "xn--a", "XN--A": "xn--a", "xn--": "xn--", "a.xn--a.b": "a.xn--a.b", "xn--a%62": "xn--ab",
		"xn--zca":   "xn--zca",
		"xn--a-yoc": "xn--a-yoc", "xn--pokxncvks": "xn--pokxncvks", "xn--1ch.xn--": "xn--1ch.xn--",
		"xn--aé": "", "xn--a.é": "", "xn--a%C3%A9": "", "xn--a b": "", "xn--a.1": "", "é.xn--zca": "xn--9ca.xn--zca",
	}, b.task(`export default { task: () => Object.fromEntries(["xn--a", "XN--A", "xn--", "a.xn--a.b", "xn--a%62", "xn--zca",
		"xn--a-yoc", "xn--pokxncvks", "xn--1ch.xn--", "xn--aé", "xn--a.é", "xn--a%C3%A9", "xn--a b", "xn--a.1", "é.xn--zca",
	].map((host) => [host, URL.parse("http://" + host + "/")?.host ?? ""])) }`, "1")["data"])
}

// next() of a stream settles with as many microtasks as Web IDL says: one more than the read.
func TestNextOfAStreamSettlesWhenWebIDLSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	require.Equal(t, []any{"read", "tick1", "next", "tick2"}, b.task(`export default { async task() {
		const order = [];
		const filled = () => new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2) } });
		const one = filled(), two = filled();
		await new Promise((done) => setTimeout(done, 1));
		const reader = one.getReader(), iterator = two[Symbol.asyncIterator]();
		iterator.next().then(() => order.push("next"));
		reader.read().then(() => order.push("read"));
		Promise.resolve().then(() => { order.push("tick1") }).then(() => { order.push("tick2") });
		await new Promise((done) => setTimeout(done, 1));
		return order;
	} }`, "1")["data"])
}

// Messages arrive in the order in which they were posted, also at different channels of a name.
func TestBroadcastChannelsKeepTheOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	require.Equal(t, []any{"b:1", "c:1", "a:2", "c:2", "a:3", "b:3", "b:4", "c:4"}, b.task(`export default { async task() {
		const order = [], [a, b, c] = ["a", "b", "c"].map((name) => {
			const channel = new BroadcastChannel("x");
			channel.onmessage = (e) => order.push(name + ":" + e.data);
			return channel;
		});
		a.postMessage(1); b.postMessage(2); c.postMessage(3); a.postMessage(4);
		await new Promise((done) => setTimeout(done, 20));
		for (const channel of [a, b, c]) channel.close();
		return order;
	} }`, "1")["data"])
}

// A % in a URL that escapes nothing is sent as it is.
func TestPercentThatEscapesNothingIsSent(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			seen <- strings.TrimSpace(line)
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			_ = c.Close()
		}
	}()
	b := newBench(t, loopback)
	b.cpu = ample
	for path, want := range map[string]string{
		"/100%": "/100%", "/%zz/%41?%#%": "/%zz/%41?%", "/a?b=%": "/a?b=%", "?%4": "/?%4", "/%41": "/%41",
	} {
		doc := b.task(`export default { task: async (event) => (await fetch(event.payload)).status }`, `"http://`+l.Addr().String()+path+`"`)
		require.Equal(t, 204.0, doc["data"], path)
		require.Equal(t, "GET "+want+" HTTP/1.1", <-seen)
	}
	o := b.run(worker("w", `export default { fetch: (request) => new Response(request.url) }`), fetch("GET", "http://x/100%?%", ""))
	require.Nil(t, o.end.Failure)
	require.Equal(t, "http://x/100%?%", string(o.reply.Body))
}
