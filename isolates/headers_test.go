package isolates

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func TestHeadersOfAResponseAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	for name, tc := range map[string]struct{ headers, message string }{
		"most":       {`for (let i = 0; i < 99; i++) h.append("x-" + i, "v")`, ""},
		"too many":   {`for (let i = 0; i < 101; i++) h.append("x-" + i, "v")`, "101 headers: at most 100"},
		"large":      {`h.append("x", "v".repeat(8191))`, ""},
		"too large":  {`h.append("x", "v".repeat(8192))`, `header "x" of the response has 8193 bytes: at most 8192`},
		"all":        {`for (let i = 0; i < 8; i++) h.append("x", "v".repeat(8100))`, "at most 8192"}, // combined
		"all cookie": {`for (let i = 0; i < 9; i++) h.append("set-cookie", "v".repeat(8000))`, "the headers of the response have 72090 bytes: at most 65536"},
	} {
		for _, late := range []string{"", "ctx.waitUntil(new Promise(done => setTimeout(done, 1)));"} {
			o := b.run(worker("w", `export default { fetch(r, env, ctx) { const h = new Headers(); `+tc.headers+`; `+late+
				` return new Response(null, { headers: h }) } }`), fetch("GET", "http://x/", ""))
			if tc.message == "" {
				require.Nil(t, o.end.Failure, name)
				require.NotEmpty(t, o.reply.Headers, name)
				continue
			}
			require.NotNil(t, o.end.Failure, name)
			require.Nil(t, o.reply, name)
			require.Equal(t, events.ReasonException, o.end.Failure.Reason)
			require.Contains(t, o.end.Failure.Message, tc.message)
		}
	}
}

// The value of a header is bytes. JavaScript sees one character for each.
func TestHeadersOfSubrequestsAreBytes(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("X-Value"))
		_, _ = fmt.Fprintf(w, "%x", r.Header.Get("X-Value"))
	}))
	defer s.Close()
	b := newBench(t, loopback)
	b.cpu = ample
	doc := b.task(`export default { async task(event) {
		const r = await fetch(event.payload, { headers: { "x-value": "a\xe9\xff" } });
		return [r.headers.get("x-echo"), await r.text()];
	} }`, `"`+s.URL+`"`)
	require.Equal(t, []any{"aéÿ", "61e9ff"}, doc["data"])
}

// A URL in the usual form is taken as it is. A URL that only resembles it is parsed.
func TestRequestURLIsInItsNormalForm(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	w := worker("w", `export default { fetch(request) { return new Response(request.url); } };`)
	for given, want := range map[string]string{
		"http://example.com/a?b=c": "http://example.com/a?b=c",
		"http://0xa/":              "http://0.0.0.10/",
		"https://1.2.0x3.0xff/p":   "https://1.2.3.255/p",
		"http://a10xb.c/":          "http://a10xb.c/",
		"http://a/b/../c":          "http://a/c",
	} {
		o := b.run(w, fetch("GET", given, ""))
		require.Nil(t, o.end.Failure, given)
		require.Equal(t, want, string(o.reply.Body))
	}
}
