package isolates

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// coders make a body of each content coding.
var coders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw": func(w io.Writer) io.WriteCloser {
		f, _ := flate.NewWriter(w, 5)
		return f
	},
	"br": func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w)
		return z
	},
}

func coded(coding, text string) []byte {
	var b bytes.Buffer
	w := coders[coding](&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// codedServer answers /CODING with text in a coding, whatever the request accepts.
func codedServer(t *testing.T, text string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		coding := strings.TrimPrefix(r.URL.Path, "/")
		if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
			_, _ = fmt.Fprintf(w, "%s|%s", r.Header.Get("Content-Encoding"), body)
			return
		}
		body := []byte(text)
		name := coding
		switch coding {
		case "raw":
			name = "deflate"
		case "unknown", "none", "wrong":
		default:
		}
		switch coding {
		case "unknown":
		case "wrong":
			name = "gzip"
		case "short":
			name, body = "gzip", coded("gzip", text)[:20]
		case "empty":
			name, body = "gzip", nil
		default:
			body = coded(coding, text)
		}
		w.Header().Set("Content-Encoding", name)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// What JavaScript reads of a response is decoded, whoever asked for the coding: as the Fetch standard has it.
func TestBodiesAreDecoded(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	text := strings.Repeat("grüße, 世界! ", 20_000)
	target := codedServer(t, text)
	for coding := range coders {
		e := fetch("GET", "http://x/", "")
		e.HTTPHeaders = []string{"Accept-Encoding", "gzip, deflate, br, zstd"}
		o := b.run(worker("w", `export default { fetch: async (request) => {
			const url = "`+target+`/`+coding+`", get = () => fetch(url, { headers: request.headers }), text = await (await get()).text();
			const same = [await new Response((await get()).body).text(), new TextDecoder().decode(await (await get()).arrayBuffer()),
				await (await (await get()).clone()).text(), await (await fetch(url, { headers: { "accept-encoding": "br" } })).text(),
				await (await get()).body.pipeThrough(new TextDecoderStream()).getReader().read().then((r) => text.startsWith(r.value) ? text : r.value)];
			return Response.json([text.length, same.map((other) => other === text), (await get()).headers.get("content-encoding")]);
		} }`), e)
		require.Nil(t, o.end.Failure, coding)
		name := map[string]string{"raw": "deflate"}[coding]
		if name == "" {
			name = coding
		}
		require.JSONEq(t, fmt.Sprintf(`[%d, [true, true, true, true, true], %q]`, 11*20_000, name),
			string(o.reply.Body), coding)
	}
	require.Equal(t, []any{"", strings.Repeat("x", 3), "TypeError: fetch failed: the body of the response from HOST is not the gzip that it is said to be",
		"TypeError: fetch failed: the body of the response from HOST is not the gzip that it is said to be"},
		b.task(`export default { task: (event) => Promise.all(["empty", "unknown", "wrong", "short"].map(async (path) => {
			const r = await fetch(event.payload + "/" + path, { headers: { "accept-encoding": "gzip" } });
			return r.text().catch((e) => String(e).replace(new URL(event.payload).host, "HOST"));
		})) }`, `"`+codedServer(t, "xxx")+`"`)["data"])
}

// The CPU time of decoding is the run's.
func TestDecodingIsCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	random := make([]byte, 10<<20) // text that takes long to decode
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	body := coded("gzip", hex.EncodeToString(random))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	runtime.LockOSThread() // CPU time is a thread's
	defer runtime.UnlockOSThread()
	began := perowner.ThreadTime()
	z, err := gzip.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, z)
	require.NoError(t, err)
	alone := perowner.ThreadTime() - began
	run := func(limit time.Duration) *outcome {
		// Counting what comes costs little beside decoding.
		w := worker("w", `export default { fetch: async () => {
			let n = 0;
			for await (const part of (await fetch("`+s.URL+`")).body) n += part.length;
			return new Response(String(n));
		} }`)
		w.Limits = workers.Limits{CPU: workers.Millis(limit), Wall: workers.Millis(patience)}
		return b.run(w, fetch("GET", "http://x/", ""))
	}
	o := run(20 * time.Second)
	require.Equal(t, fmt.Sprint(20<<20), string(o.reply.Body))
	require.Greater(t, o.end.CPU, alone*3/4)
	o = run(max(5*time.Millisecond, alone/4))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
}

// A response that is passed on unread goes as it came. What was read, or is made of it, goes without its coding.
func TestCodedBodiesThatArePassedOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	text := strings.Repeat("grüße, 世界! ", 20_000)
	target := codedServer(t, text)
	for _, coding := range []string{"gzip", "br", "zstd", "deflate"} {
		raw := coded(coding, text)
		for code, want := range map[string][]string{
			`fetch(url, request)`: {coding, fmt.Sprint(len(raw)), string(raw)},
			`fetch(url, request).then((r) => new Response(r.body, r))`:                                                                           {coding, fmt.Sprint(len(raw)), string(raw)},
			`fetch(url, request).then((r) => new Response(r.body))`:                                                                              {"", "", text},
			`fetch(url, request).then(async (r) => new Response(await r.text(), r))`:                                                             {"", "", text},
			`fetch(url, request).then(async (r) => new Response(await r.text(), { headers: new Headers(r.headers) }))`:                           {"", "", text},
			`fetch(url, request).then((r) => new Response(r.body.pipeThrough(new TransformStream()), r))`:                                        {"", "", text},
			`fetch(url, request).then((r) => { r = new Response(r.body, r); r.headers.delete("content-encoding"); return r })`:                   {"", "", text},
			`fetch(url, request).then((r) => r.clone())`:                                                                                         {"", "", text},
			`fetch(url, request).then(async (r) => { r = new Response(await r.text(), r); r.headers.set("content-encoding", "own"); return r })`: {"own", fmt.Sprint(len(raw)), text},
			`fetch(url, request).then((r) => fetch(url, { method: "POST", body: r.body }))`:                                                      {"", "", "|" + text},
		} {
			e := fetch("GET", "http://x/", "")
			e.HTTPHeaders = []string{"Accept-Encoding", "gzip, br"}
			e.Requester = &events.Requester{Credit: 10 << 20}
			o := b.start(worker("w", `const url = "`+target+`/`+coding+`"; export default { fetch: (request) => `+code+` }`), e)
			o.wait(t, o.replied)
			body, failure := bodyOf(t, o.reply, 10<<20, nil)
			require.Nil(t, failure, code)
			require.Equal(t, want[0], headerOf(o.reply, "content-encoding"), code)
			if !strings.Contains(code, "POST") {
				require.Equal(t, want[1], headerOf(o.reply, "content-length"), code)
			}
			require.Equal(t, want[2], string(body), code)
		}
	}
}
