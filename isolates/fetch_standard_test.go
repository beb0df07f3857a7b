package isolates

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// Properties of a request that a handler does not set have the values of the Fetch standard. The response's URL has no
// fragment.
func TestFetchDefaults(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			w.Header().Set("Location", "/to?x=|#moved")
			w.WriteHeader(http.StatusFound)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s", r.Header.Get("Accept"), r.Header.Get("Accept-Language"))
	}))
	t.Cleanup(s.Close)
	b := newBench(t, loopback)
	b.cpu = ample
	doc := b.task(`export default { async task(event) {
		const plain = await fetch(event.payload + "/a?x=|#fragment");
		const own = await fetch(event.payload + "/", { headers: { accept: "a/b", "accept-language": "de" } });
		const redirected = await fetch(event.payload + "/redirect#fragment");
		return [plain.url, await plain.text(), await own.text(), redirected.url, redirected.redirected];
	} }`, `"`+s.URL+`"`)
	require.Equal(t, []any{s.URL + "/a?x=|", "*/* *", "a/b de", s.URL + "/to?x=|", true}, doc["data"])
}

// An abort discards a body that has come and was not read. It does not affect a body that was read.
func TestAbortAfterTheBodyHasCome(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte("body"))
	}))
	t.Cleanup(s.Close)
	b := newBench(t, loopback)
	b.cpu = ample
	doc := b.task(`export default { async task(event) {
		const seen = [];
		for (const readFirst of [false, true]) {
			const c = new AbortController();
			const response = await fetch(event.payload, { signal: c.signal });
			const copy = readFirst ? await response.text() : undefined;
			// The end of the body comes before that of a request which is sent later, over the same connection or another.
			for (let i = 0; i < 3; i++) await (await fetch(event.payload)).text();
			c.abort("why");
			seen.push(copy ?? await response.text().catch((reason) => ["rejected", reason]));
		}
		return seen;
	} }`, `"`+s.URL+`"`)
	require.Equal(t, []any{[]any{"rejected", "why"}, "body"}, doc["data"])
}

// A body that does not match integrity is a failure. The handler gets nothing of it.
func TestFetchIntegrity(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			_, _ = w.Write([]byte("hello"))
		}
	}))
	t.Cleanup(s.Close)
	b := newBench(t, loopback)
	b.cpu = ample
	doc := b.task(`export default { async task(event) {
		const hash = async (name, text) => btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest(name, new TextEncoder().encode(text)))));
		const good = "sha256-" + await hash("SHA-256", "hello"), bad = "sha256-" + await hash("SHA-256", "other");
		const strong = "sha512-" + await hash("SHA-512", "hello"), wrong = "sha384-" + await hash("SHA-384", "other");
		const seen = [];
		for (const [integrity, init] of [[good], [bad], [bad + " " + good + "?option"], [bad + " " + strong], [good + " " + wrong], ["md5-x"], [""],
			["sha256-"], [good, { method: "HEAD" }], [good, { signal: AbortSignal.abort("why") }]]) {
			for (const url of [event.payload, "data:,hello"]) {
				try {
					const r = await fetch(url, { ...init, integrity });
					seen.push([await r.clone().text(), r.url === url, r.bodyUsed]);
				} catch (error) { seen.push(error.name ?? error); }
			}
		}
		return seen.map(String).filter((x, i, all) => i % 2 === 0 || x !== all[i - 1]);
	} }`, `"`+s.URL+`/"`)
	ok, refused := "hello,true,false", "TypeError"
	require.Equal(t, []any{ok, refused, ok, ok, refused, ok, ok, refused, refused, "why"}, doc["data"])
}
