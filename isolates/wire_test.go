package isolates

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wire is a server that answers each request by its path: /sent with the lines of its head as received, and other paths
// with the value in answers.
func wire(t *testing.T, answers map[string]string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				in := bufio.NewReader(conn)
				first, err := in.ReadString('\n')
				if err != nil {
					return
				}
				var head strings.Builder
				for line := ""; err == nil && line != "\r\n"; line, err = in.ReadString('\n') {
					head.WriteString(strings.ReplaceAll(line, "\r", ""))
				}
				answer, ok := answers[strings.Fields(first)[1]]
				if !ok {
					answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", head.Len(), head.String())
				}
				_, _ = conn.Write([]byte(answer))
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// Each header is sent once, in the handler's spelling, with its values together.
func TestHeadersAreSentAsSpelled(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	base := wire(t, nil) + "/sent"
	doc := b.task(`export default { async task(event) {
		const sent = async (...args) => (await (await fetch(...args)).text()).trim().split("\n").filter((line) => !/^(host|connection|accept|accept-language|accept-encoding|user-agent|content-length):/i.test(line));
		const request = new Request(event.payload, { headers: { "DNT": "1", "x-A_b": "2", "cookie": "a=1" } });
		request.headers.append("Cookie", "b=2");
		request.headers.append("dnt", "3");
		const h = new Headers([["X-One", "1"], ["x-one", "2"], ["Set-Cookie", "a=1"], ["Set-Cookie", "b=2"]]);
		const gone = new Request(event.payload, { headers: { "X-ONE": "1", "X-TWO": "1" } });
		gone.headers.delete("x-one");
		gone.headers.set("x-one", "2");
		gone.headers.set("x-two", "2");
		return [await sent(request), await sent(request.clone()), await sent(event.payload, { headers: h }), await sent(gone),
			await sent(event.payload, { headers: { "AUTHORIZATION": "a", "user-agent": "me", "X-MINE": "v" } }),
			await sent(event.payload, { referrer: event.payload + "?own", headers: { Referer: "http://other/" } })];
	} }`, fmt.Sprintf("%q", base))
	require.Equal(t, []any{
		[]any{"Cookie: a=1; b=2", "DNT: 1, 3", "x-A_b: 2"},
		[]any{"Cookie: a=1; b=2", "DNT: 1, 3", "x-A_b: 2"},
		[]any{"set-cookie: a=1", "set-cookie: b=2", "x-one: 1, 2"},
		[]any{"X-TWO: 2", "x-one: 2"},
		[]any{"Authorization: a", "X-MINE: v"},
		[]any{"referer: " + base + "?own"},
	}, doc["data"])
}

// An empty Location is the URL itself, and so an endless redirect. Without a Location the response is not a redirect.
func TestRedirectsWithoutAPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	base := wire(t, map[string]string{
		"/empty": "HTTP/1.1 302 Found\r\nLocation:\r\nContent-Length: 0\r\n\r\n",
		"/none":  "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
		"/two":   "HTTP/1.1 302 Found\r\nLocation: /sent\r\nLocation: /sent\r\nContent-Length: 0\r\n\r\n",
	})
	doc := b.task(`export default { async task(event) {
		const out = [];
		for (const path of ["/empty", "/none", "/two"]) for (const redirect of ["follow", "manual", "error"]) {
			out.push(await fetch(event.payload + path, { redirect }).then((r) => [r.status, r.headers.get("location")], (e) => e.name));
		}
		return out;
	} }`, fmt.Sprintf("%q", base))
	require.Equal(t, []any{
		"TypeError", []any{302.0, ""}, "TypeError",
		[]any{302.0, nil}, []any{302.0, nil}, "TypeError",
		"TypeError", []any{302.0, "/sent, /sent"}, "TypeError",
	}, doc["data"])
}

// The Origin that a handler sets is sent along, until one origin redirects the request to another that is not the
// handler's.
func TestOriginOfAHandler(t *testing.T) {
	t.Parallel()
	one, two := redirectServers(t)
	b := newBench(t, loopback)
	b.cpu = ample
	for _, c := range []struct{ origin, url, want string }{
		{one, one + "/to", one}, {one, two + "/to", one}, {one, one + "/a?to=/to", one},
		{one, one + "/a?to=" + two + "/to", one},
		{one, two + "/a?to=/to", one}, {one, two + "/a?to=" + one + "/to", "null"},
		{"https://mine.example", one + "/a?to=" + two + "/to", "null"},
		{one, one + "/a?to=" + two + "/b%3Fto=" + one + "/to", "null"},
	} {
		for _, method := range []string{"GET", "POST"} {
			for _, status := range []int{301, 303, 307} {
				s, _, failed := b.redirected(fmt.Sprintf("%s&status=%d", strings.Replace(c.url, "/to&", "/to?", 1), status),
					fmt.Sprintf(`{ method: %q, headers: { Origin: %q } }`, method, c.origin))
				require.Empty(t, failed)
				require.Equal(t, c.want, s.Header.Get("Origin"), "%s from %s", c.url, c.origin)
			}
		}
	}
}

// Headers about the connection to a server are not part of the reply that its response becomes.
func TestHeadersOfAConnectionDoNotTravel(t *testing.T) {
	t.Parallel()
	base := wire(t, map[string]string{"/hop": "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: a/b\r\nContent-Length: 4\r\nKeep-Alive: v\r\nProxy-Authenticate: v\r\nProxy-Connection: v\r\n" +
		"Upgrade: v\r\nTE: v\r\nX-Hop: v\r\nX-Own: v\r\nConnection: X-Hop , keep-alive\r\nConnection: other\r\n\r\nbody"})
	b := newBench(t, loopback)
	b.cpu = ample
	for _, code := range []string{
		`fetch(request) { return fetch(request.url.slice(10)) }`,
		`async fetch(request) { const r = await fetch(request.url.slice(10)); return new Response(r.body, r) }`,
		`fetch(request) { return new Response("", { headers: { "Transfer-Encoding": "chunked", "Connection": "keep-alive, x-hop", "x-hop": "1", "X-Own": "v", "content-length": "0", "content-type": "a/b", "date": "now" } }) }`,
	} {
		o := b.run(worker("w", `export default { `+code+` }`), fetch("GET", "http://x/?"+base+"/hop", ""))
		require.Nil(t, o.end.Failure)
		names := map[string]bool{}
		for i := 0; i < len(o.reply.Headers); i += 2 {
			names[o.reply.Headers[i]] = true
		}
		require.Equal(t, map[string]bool{"content-length": true, "content-type": true, "date": true, "x-own": true}, names)
	}
}
