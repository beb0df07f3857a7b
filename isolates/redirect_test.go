package isolates

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// seen is a request as the server received it.
type seen struct {
	Server, Method, Path, Body, Length string
	Header                             http.Header
}

// redirectServers starts two servers, which are two origins. Each answers /to with the request as it received it. Any
// other request with ?status=&to= is redirected there, with ?policy= as Referrer-Policy.
func redirectServers(t *testing.T) (one, two string) {
	serve := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			if to := q.Get("to"); to != "" {
				_, _ = io.Copy(io.Discard, r.Body)
				for _, p := range q["policy"] {
					w.Header().Add("Referrer-Policy", p)
				}
				w.Header()["Location"] = q["to"]
				status := http.StatusFound
				_, _ = fmt.Sscan(q.Get("status"), &status)
				w.WriteHeader(status)
				return
			}
			body, _ := io.ReadAll(r.Body)
			_ = json.NewEncoder(w).Encode(seen{name, r.Method, r.URL.RequestURI(), string(body), fmt.Sprint(r.ContentLength),
				r.Header})
		}))
		t.Cleanup(s.Close)
		return s
	}
	return serve("one").URL, serve("two").URL
}

// redirected does a request in JavaScript. It returns the request that the last server saw, and the URL of the
// response, or the error.
func (b *bench) redirected(url, init string) (s seen, last, failed string) {
	b.t.Helper()
	doc := b.task(`export default { async task(event) {
		try {
			const r = await fetch(event.payload, `+init+`);
			return { url: r.url, redirected: r.redirected, status: r.status, text: await r.text() };
		} catch (error) { return { failed: error.name + ": " + error.message } }
	} }`, fmt.Sprintf("%q", url))["data"].(map[string]any)
	if f, ok := doc["failed"]; ok {
		return s, "", f.(string)
	}
	_ = json.Unmarshal([]byte(doc["text"].(string)), &s)
	return s, doc["url"].(string), ""
}

// Credentials for an origin go to no other origin: not directly, nor by a detour, nor back again.
func TestRedirectsKeepCredentials(t *testing.T) {
	t.Parallel()
	one, two := redirectServers(t)
	b := newBench(t, loopback)
	secrets := `{ headers: { authorization: "Bearer secret", cookie: "session=secret", "proxy-authorization": "Basic secret", referer: "http://own/?secret", "x-own": "kept" } }`
	for _, c := range []struct {
		name, url string
		kept      bool
	}{
		{"same origin", one + "/a?to=/to", true},
		{"same origin, absolute", one + "/a?to=" + one + "/to", true},
		{"other origin", one + "/a?to=" + two + "/to", false},
		{"without scheme", one + "/a?to=//" + strings.TrimPrefix(two, "http://") + "/to", false},
		{"backslashes", one + `/a?to=\\` + strings.TrimPrefix(two, "http://") + `\to`, false},
		{"other name of the host", one + "/a?to=" + strings.Replace(one, "127.0.0.1", "localhost", 1) + "/to", false},
		{"there and back", one + "/a?to=" + two + "/b%3Fto=" + one + "/to", false},
		{"after another", one + "/a?to=/b%3Fto=" + two + "/to", false},
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			s, url, failed := b.redirected(fmt.Sprintf("%s&status=%d", c.url, status), secrets)
			require.Empty(t, failed, c.name)
			require.True(t, strings.HasSuffix(url, "/to"), "%s: %s", c.name, url)
			for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization", "Referer"} {
				require.Equal(t, c.kept, s.Header.Get(name) != "", "%s %d: %s", c.name, status, name)
			}
			require.Equal(t, "kept", s.Header.Get("X-Own"))
		}
	}
	// No Referer is added.
	for _, init := range []string{`{}`, `{ referrerPolicy: "no-referrer" }`, `{ referrerPolicy: "unsafe-url" }`,
		`{ referrer: "" }`} {
		for _, to := range []string{"/to", two + "/to"} {
			s, _, failed := b.redirected(one+"/a?token=secret&to="+to, init)
			require.Empty(t, failed)
			require.NotContains(t, s.Header, "Referer", init)
		}
	}
}

// Methods, bodies and the headers that describe them follow the Fetch standard.
func TestRedirectsOfBodies(t *testing.T) {
	t.Parallel()
	one, two := redirectServers(t)
	b := newBench(t, loopback)
	long := strings.Repeat("0123456789", 20_000)
	for _, c := range []struct {
		status       int
		method, want string
		keeps        bool
	}{
		{301, "POST", "GET", false}, {302, "POST", "GET", false}, {303, "POST", "GET", false}, {307, "POST", "POST", true},
		{308, "POST", "POST", true},
		{301, "PUT", "PUT", true}, {302, "PUT", "PUT", true}, {303, "PUT", "GET", false}, {307, "PUT", "PUT", true},
		{303, "DELETE", "GET", false},
	} {
		for _, body := range []string{`"short"`, `"0123456789".repeat(20_000)`, `new Blob(["0123456789".repeat(20_000)])`} {
			s, _, failed := b.redirected(fmt.Sprintf("%s/a?to=%s/to&status=%d", one, two, c.status),
				fmt.Sprintf(`{ method: %q, body: %s, headers: { "content-type": "a/b", "content-language": "de", "x-own": "kept" } }`, c.method, body))
			require.Empty(t, failed)
			require.Equal(t, c.want, s.Method, c.status)
			require.Equal(t, "kept", s.Header.Get("X-Own"))
			require.Equal(t, c.keeps, s.Header.Get("Content-Type") != "", c.status)
			require.Equal(t, c.keeps, s.Header.Get("Content-Language") != "", c.status)
			want := ""
			if c.keeps {
				if want = long; body == `"short"` {
					want = "short"
				}
			}
			require.Equal(t, want, s.Body, "%d %s", c.status, body)
			require.Equal(t, fmt.Sprint(len(want)), s.Length)
		}
	}
	stream := `{ method: "POST", duplex: "half", body: new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("some")) }, pull(c) { c.close() } }) }`
	s, _, failed := b.redirected(one+"/a?status=303&to=/to", stream)
	require.Empty(t, failed)
	require.Equal(t, "GET", s.Method)
	_, _, failed = b.redirected(one+"/a?status=307&to=/to", stream)
	require.Contains(t, failed, "TypeError: fetch: a redirect of a request whose body is a stream")
	// HEAD stays HEAD.
	doc := b.task(`export default { async task(event) { const r = await fetch(event.payload, { method: "HEAD" }); return [r.status, r.url, await r.text()] } }`, fmt.Sprintf("%q", one+"/a?status=303&to=/to"))
	require.Equal(t, []any{200.0, one + "/to", ""}, doc["data"])
}

// Where a redirect may lead.
func TestRedirectsAreFollowed(t *testing.T) {
	t.Parallel()
	one, two := redirectServers(t)
	b := newBench(t, loopback)
	host := strings.TrimPrefix(two, "http://")
	for _, c := range []struct{ url, want, failed string }{
		{one + "/a?to=b/../to%23there#here", one + "/to", ""},
		{one + "/a?to=%3Fx", one + "/a?x", ""},
		{one + "/a?to=/%C3%A9", one + "/%C3%A9", ""},
		{one + "/a?to=/%E9%2541%FF%E2%98%83", one + "/%E9%41%FF%E2%98%83", ""}, // bytes do not change, UTF-8 or not
		{one + "/a?to=http:to", one + "/to", ""},
		{one + "/a?to=" + strings.Replace(two, "127.0.0.1", "2130706433", 1) + "/to", two + "/to", ""},
		{one + "/a?to=http://user:password@" + host + "/to", "", "a redirect to a URL with credentials"},
		{one + "/a?to=http://user@" + strings.TrimPrefix(one, "http://") + "/to", "", "a redirect to a URL with credentials"},
		{one + "/a?to=file:///etc/passwd", "", "neither http nor https"},
		{one + "/a?to=data:,x", "", "neither http nor https"},
		{one + "/a?to=ws://" + host, "", "neither http nor https"},
		{one + "/a?to=http://[::1", "", "which is no URL"},
		{one + "/a?to=/to&to=/other", "", "a redirect to 2 places"},
	} {
		_, url, failed := b.redirected(c.url, "{}")
		require.Contains(t, failed, c.failed, c.url)
		require.Equal(t, c.failed == "", failed == "", "%s: %s", c.url, failed)
		require.Equal(t, c.want, url, c.url)
	}
	doc := b.task(`export default { async task(event) {
		const base = event.payload, out = [];
		const chain = (n) => { let to = "/to"; for (let i = 0; i < n; i++) to = "/" + i + "?to=" + encodeURIComponent(to); return base + to };
		for (const n of [0, 1, 20, 21]) out.push(await fetch(chain(n)).then((r) => [r.status, r.redirected], (e) => e.message));
		for (const redirect of ["manual", "error"]) for (const to of ["/to", ""]) {
			out.push(await fetch(base + "/a?to=" + to, { redirect }).then((r) => [r.status, r.redirected, r.url.slice(base.length)], (e) => e.message));
		}
		return out;
	} }`, fmt.Sprintf("%q", one))
	require.Equal(t, []any{
		[]any{200.0, false}, []any{200.0, true}, []any{200.0, true}, "fetch: more than 20 redirects",
		[]any{302.0, false, "/a?to=/to"}, []any{200.0, false, "/a?to="}, `fetch failed: the response is a redirect, and redirect is "error"`,
		[]any{200.0, false, "/a?to="},
	}, doc["data"])
}

// A Referer is sent only if the handler gives a referrer, and as its policy says.
func TestReferrer(t *testing.T) {
	t.Parallel()
	one, two := redirectServers(t)
	b := newBench(t, loopback)
	own := one + "/own?token=secret"
	for _, c := range []struct{ policy, same, other string }{
		{"", own, one + "/"}, {"no-referrer", "", ""}, {"origin", one + "/", one + "/"}, {"unsafe-url", own, own},
		{"same-origin", own, ""},
		{"strict-origin", one + "/", one + "/"}, {"origin-when-cross-origin", own, one + "/"},
		{"strict-origin-when-cross-origin", own, one + "/"}, {"no-referrer-when-downgrade", own, own},
	} {
		init := fmt.Sprintf(`{ referrer: %q, referrerPolicy: %q }`, strings.Replace(own, "http://", "http://user:password@",
			1)+"#part", c.policy)
		for _, to := range []string{one + "/to", one + "/a?to=/to", two + "/a?to=" + one + "/to"} {
			s, _, failed := b.redirected(to, init)
			require.Empty(t, failed)
			require.Equal(t, c.same, s.Header.Get("Referer"), "%q: %s", c.policy, to)
		}
		for _, to := range []string{two + "/to", one + "/a?to=" + two + "/to"} {
			s, _, failed := b.redirected(to, init)
			require.Empty(t, failed)
			require.Equal(t, c.other, s.Header.Get("Referer"), "%q: %s", c.policy, to)
		}
	}
	init := fmt.Sprintf(`{ referrer: %q, referrerPolicy: "unsafe-url" }`, own)
	for policy, want := range map[string]string{
		"no-referrer": "", "nonsense": own, "no-referrer,%20origin": one + "/", "origin,nonsense,%20No-Referrer%09,": "",
		"origin&policy=no-referrer": "",
	} {
		s, _, failed := b.redirected(one+"/a?policy="+policy+"&to="+two+"/to", init)
		require.Empty(t, failed)
		require.Equal(t, want, s.Header.Get("Referer"), policy)
	}
	// To plain HTTP from a secure page.
	for policy, want := range map[string]string{"": "", "strict-origin": "", "no-referrer-when-downgrade": "",
		"origin": "https://safe.example/", "unsafe-url": "https://safe.example/x"} {
		s, _, failed := b.redirected(one+"/to", fmt.Sprintf(`{ referrer: "https://safe.example/x", referrerPolicy: %q }`, policy))
		require.Empty(t, failed)
		require.Equal(t, want, s.Header.Get("Referer"), policy)
	}
}

// Redirects are not subrequests, and the guard of addresses checks each.
func TestRedirectsCountAndAreGuarded(t *testing.T) {
	t.Parallel()
	one, _ := redirectServers(t)
	b := newBench(t, loopback)
	w := worker("w", `export default { async task(event) { const out = []; for (let i = 0; i < 3; i++) out.push(await fetch(event.payload).then((r) => r.status, (e) => e.message)); return out } }`)
	w.Limits = workers.Limits{Subrequests: 2, CPU: workers.Millis(10 * time.Second)}
	o := b.run(w, task(fmt.Sprintf("%q", one+"/a?to=/b%3Fto=/c%253Fto=/to")))
	require.Contains(t, string(o.reply.Body), `[200,200,"fetch failed: too many subrequests: at most 2 per event"]`)
	_, _, failed := b.redirected(one+"/a?to=http://10.0.0.1/", "{}")
	require.Contains(t, failed, "address is not allowed")
}

// Whatever a server sends in Location and Referrer-Policy, no other server gets data that was meant for it, and the
// event continues.
func FuzzRedirect(f *testing.F) {
	var leaked atomic.Value
	two := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || strings.Contains(r.Header.Get("Referer"), "secret") {
			leaked.Store(fmt.Sprint(r.URL, r.Header))
		}
	}))
	f.Cleanup(two.Close)
	var location, policy string
	one := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/start" {
			return
		}
		w.Header()["Location"], w.Header()["Referrer-Policy"] = []string{location}, []string{policy}
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	f.Cleanup(one.Close)
	b := newBench(f, loopback)
	w := worker("w", `export default { async task(event) {
		const url = event.payload + "/start?secret";
		return await fetch(url, { method: "POST", body: "b", headers: { authorization: "secret" }, referrer: url }).then((r) => r.status, (e) => e.message);
	} }`)
	w.Limits.CPU = workers.Millis(10 * time.Second)
	host := strings.TrimPrefix(two.URL, "http://")
	for _, l := range []string{"", "/to", two.URL, "//" + host, `\\` + host, "http:\t//" + host, "HTTP:" + host,
		"http://user:pass@" + host, "\x00//" + host, "http://" + host + "#\xff", "http://0x7f.1:" +
			host[10:], "javascript:1"} {
		f.Add(l, "unsafe-url, origin")
	}
	f.Fuzz(func(t *testing.T, l, p string) {
		location, policy = strings.ReplaceAll(l, "TWO", host), strings.ToLower(p)
		// The server may allow others to get its own URL: such policies are removed.
		for _, open := range []string{"unsafe-url", "no-referrer-when-downgrade"} {
			policy = strings.ReplaceAll(policy, open, "")
		}
		o := b.start(w, task(fmt.Sprintf("%q", one.URL)))
		o.wait(t, o.ended)
		require.Nil(t, o.end.Failure)
		require.Nil(t, leaked.Load())
	})
}

// The body of a redirect may never come. The next request does not wait for it.
func TestRedirectsWithoutTheirBodyAreFollowed(t *testing.T) {
	t.Parallel()
	var target string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/target" {
			_, _ = io.WriteString(w, "here")
			return
		}
		w.Header().Set("Location", target+"/target")
		w.Header().Set("Content-Length", "10")
		w.WriteHeader(http.StatusFound)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	target = s.URL
	b := newBench(t, loopback)
	b.cpu = ample
	w := worker("w", `export default { task: async (event) => (await fetch(event.payload)).text() }`)
	w.Limits.Wall = workers.Millis(10 * time.Second)
	o := b.run(w, task(`"`+s.URL+`/"`))
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `{"success": true, "data": "here"}`, string(o.reply.Body))
}
