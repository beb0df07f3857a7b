package isolates

import (
	"crypto/sha256"
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

// Bodies of requests, of any kind, stay in JavaScript until they are written.
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/early" {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		_, _ = fmt.Fprintf(w, "%d %d %x %v", r.ContentLength, n, h.Sum(nil)[:4], err)
	}))
	t.Cleanup(s.Close)
	b := newBench(t, loopback)
	w := worker("w", `const pieces = (list, fail) => new ReadableStream({ async pull(c) {
		await 0; const next = list.shift();
		if (next !== undefined) c.enqueue(new Uint8Array(next).fill(7)); else if (fail) c.error(new RangeError("broke")); else c.close();
	} });
	export default { async task(event) {
		const out = [], put = async (body, path = "/") => {
			try { const r = await fetch(event.payload + path, { method: "PUT", body, duplex: "half" }); out.push(r.status + " " + await r.text()) } catch (e) { out.push(e.name) }
		};
		for (const n of [0, 1, 16384, 16385, 65536, 3_000_000]) await put(new Uint8Array(n).fill(7));
		await put("\u0007".repeat(200_000));
		await put(new Blob(["\u0007".repeat(100_000), new Uint8Array(100_000).fill(7)]));
		await put(new Response(new Uint8Array(5).fill(7)).body);      // all there: its length is known
		await put(pieces([5, 0, 5]));
		await put(pieces([1, 100_000, 0, 0, 65536, 200_000]));
		await put(new Blob([new Uint8Array(1_000_000).fill(7)]).stream().pipeThrough(new TransformStream()));
		await put(pieces([]));
		await put(pieces([5, 5], true));
		await put(pieces([100_000, 5], true));
		await put(new ReadableStream({ start(c) { c.enqueue("text") } }));
		const endless = pieces(Array.from({ length: 1000 }, () => 65536));
		await put(endless, "/early");
		const c = new AbortController(), long = fetch(event.payload, { method: "PUT", signal: c.signal, duplex: "half", body: new ReadableStream({ async pull() { c.abort("why"); await new Promise(() => {}) }, cancel(why) { out.push("cancelled " + why) } }) });
		out.push(await long.catch((e) => e));
		return out;
	} }`)
	w.Limits.CPU = workers.Millis(20 * time.Second)
	o := b.run(w, task(fmt.Sprintf("%q", s.URL)))
	require.Nil(t, o.end.Failure, "%v", b.lines())
	want := []string{}
	for _, c := range []struct{ length, n int }{
		{0, 0}, {1, 1}, {16384, 16384}, {16385, 16385}, {65536, 65536}, {3_000_000, 3_000_000}, {200_000, 200_000},
		{200_000, 200_000}, {5, 5}, {-1, 10}, {-1, 365_537}, {-1, 1_000_000}, {0, 0},
	} {
		sum := sha256.Sum256([]byte(strings.Repeat("\a", c.n)))
		want = append(want, fmt.Sprintf("200 %d %d %x <nil>", c.length, c.n, sum[:4]))
	}
	want = append(want, "RangeError", "RangeError", "TypeError", "413 ", "cancelled why", "why")
	require.Equal(t, fmt.Sprintf(`{"success":true,"data":["%s"]}`, strings.Join(want, `","`)), string(o.reply.Body))
	require.Zero(t, b.held())
}

// A response without a reader is not read from the server. It does not delay the run or other subrequests.
func TestResponsesWaitForTheirReader(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 40 << 4 {
			n, err := w.Write(make([]byte, 64<<10))
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	b := newBench(t, loopback)
	// More such responses than subrequests that may be under way at once.
	o := b.run(worker("many", `export default { async task(event) { const all = []; for (let i = 0; i < 10; i++) all.push(await fetch(event.payload)); return all.map((r) => r.status) } }`), task(fmt.Sprintf("%q", s.URL)))
	require.Nil(t, o.end.Failure)
	require.Equal(t, 10, strings.Count(string(o.reply.Body), "200"))
	require.Less(t, written.Load(), int64(200<<20), "buffers of the system take some")
	o = b.run(worker("stuck", `export default { async task(event) { globalThis.kept = await fetch(event.payload); await new Promise(() => {}) } }`), task(fmt.Sprintf("%q", s.URL)))
	require.Contains(t, o.end.Failure.Message, "the handler can never finish")
	// A slow reader gets all of it.
	w := worker("reads",
		`export default { async task(event) { const r = await fetch(event.payload); await scheduler.wait(20); let n = 0, wait = 0;
		for await (const chunk of r.body) { n += chunk.length; if (wait++ % 50 === 0) await scheduler.wait(1) } return n } }`)
	w.Limits.CPU = workers.Millis(20 * time.Second)
	o = b.run(w, task(fmt.Sprintf("%q", s.URL)))
	require.Nil(t, o.end.Failure)
	require.Equal(t, fmt.Sprintf(`{"success":true,"data":%d}`, 40<<20), string(o.reply.Body))
	require.Zero(t, b.held())
}
