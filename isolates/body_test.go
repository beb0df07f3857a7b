package isolates

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// reading is a fetch event whose requester takes the body in chunks.
func reading(path string, credit int64) *lifecycle.Delivery {
	e := fetch("GET", "http://x/"+path, "")
	e.Requester = &events.Requester{Credit: credit}
	return e
}

// bodyOf reads a reply's body to its end, and grants step bytes after each chunk.
func bodyOf(t *testing.T, r *events.Reply, step int64,
	each func(n int, c events.Chunk)) (body []byte, failure *events.Failure) {
	t.Helper()
	if r.Stream == nil {
		return r.Body, nil
	}
	more := make(chan struct{}, 1)
	r.Stream.OnChunks(func() {
		select {
		case more <- struct{}{}:
		default:
		}
	})
	granted := step
	for n := 0; ; {
		select {
		case <-more:
		case <-time.After(patience):
			t.Fatal("the body does not go on")
		}
		for _, c := range r.Stream.Take() {
			body = append(body, c.Data...)
			if each != nil {
				each(n, c)
			}
			n++
			if c.End || c.Failure != nil {
				return body, c.Failure
			}
			require.LessOrEqual(t, int64(len(body)), granted, "no more than was granted")
		}
		granted = int64(len(body)) + step
		r.Stream.Grant(granted)
	}
}

const source = `const text = new TextEncoder();
	function chunks(n, size, ms, log) {
		let i = 0;
		return new ReadableStream({
			async pull(c) { if (i === n) { c.close(); return } if (ms) await new Promise(done => setTimeout(done, ms)); c.enqueue(new Uint8Array(size).fill(97 + i++ % 26)) },
			cancel(why) { console.log("cancelled: " + why.name) },
		});
	}
	export default { async fetch(r, env, ctx) { const path = new URL(r.url).pathname; `

func TestBodyInChunks(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", source+`return new Response(chunks(40, 10_000, 0), { headers: { "x-a": "b" } }) } }`)
		want := make([]byte, 0, 400_000)
		for i := range 40 {
			want = append(want, bytes.Repeat([]byte{byte(97 + i%26)}, 10_000)...)
		}
		o := b.start(w, reading("", 1000))
		o.wait(t, o.replied)
		require.Contains(t, o.reply.Headers, "x-a")
		require.NotNil(t, o.reply.Stream)
		got, failure := bodyOf(t, o.reply, 1000, nil)
		require.Nil(t, failure)
		require.True(t, bytes.Equal(want, got))
		o.wait(t, o.ended)
		require.Nil(t, o.end.Failure)
	})
}

// A body that is ready at once is sent with its head. So is every body to a requester that takes no chunks.
func TestBodyInOnePiece(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	w := worker("w", source+`return new Response(path === "/large" ? "x".repeat(600_000) : path === "/text" ? "text" : chunks(4, 1000, path === "/slow" ? 5 : 0)) } }`)
	for path, whole := range map[string]bool{"": true, "text": true, "slow": false, "large": false} {
		o := b.start(w, reading(path, 1<<20))
		o.wait(t, o.replied)
		require.Equal(t, whole, o.reply.Stream == nil, path)
		body, failure := bodyOf(t, o.reply, 1<<20, nil)
		require.Nil(t, failure)
		require.Len(t, body, map[string]int{"": 4000, "text": 4, "slow": 4000, "large": 600_000}[path])
		o.wait(t, o.ended)
		require.Nil(t, o.end.Failure)
	}
	o := b.run(w, fetch("GET", "http://x/slow", ""))
	require.Len(t, o.reply.Body, 4000)
}

// Chunks come when they are made, not when the body is complete.
func TestChunksComeAtOnce(t *testing.T) {
	t.Parallel()
	came := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-came:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	b := newBench(t, loopback)
	b.cpu = ample
	// The rest of the body is made only after its first chunk has come.
	w := worker("w", source+`return new Response(new ReadableStream({ async start(c) {
		c.enqueue(text.encode("first "));
		await fetch(`+strconv.Quote(s.URL)+`);
		c.enqueue(text.encode("last"));
		c.close();
	} })) } }`)
	o := b.start(w, reading("", 1<<20))
	o.wait(t, o.replied)
	body, failure := bodyOf(t, o.reply, 1<<20, func(n int, c events.Chunk) {
		if n == 0 {
			require.Equal(t, "first ", string(c.Data))
			close(came)
		}
	})
	require.Nil(t, failure)
	require.Equal(t, "first last", string(body))
}

func TestBodiesThatBreakOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ code, message string }{
		"error":     {`return new Response(new ReadableStream({ async pull(c) { c.enqueue(text.encode("ab")); await new Promise(done => setTimeout(done, 1)); c.error(new Error("broken")) } })) } }`, "Error: broken"},
		"start":     {`return new Response(new ReadableStream({ async start() { await null; throw new Error("no start") } })) } }`, "Error: no start"},
		"not bytes": {`return new Response(new ReadableStream({ async pull(c) { await new Promise(done => setTimeout(done, 1)); c.enqueue("text") } })) } }`, "not a Uint8Array"},
		"never":     {`return new Response(new ReadableStream({ start(c) { c.enqueue(text.encode("ab")); setInterval(() => {}, 10) } })) } }`, "wall-clock limit"},
		"loop":      {`return new Response(new ReadableStream({ async pull(c) { await new Promise(done => setTimeout(done, 1)); for (;;); } })) } }`, "CPU time limit"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := worker("w", source+tc.code)
			if name == "never" {
				w.Limits.Wall = workers.Millis(200 * time.Millisecond)
			}
			o := b.start(w, reading("", 1<<20))
			o.wait(t, o.replied)
			_, failure := bodyOf(t, o.reply, 1<<20, nil)
			require.NotNil(t, failure)
			require.Contains(t, failure.Message, tc.message)
			o.wait(t, o.ended)
			require.Nil(t, o.end.Failure, "the reply stands")
			require.NotNil(t, o.end.Broken)
			require.Equal(t, failure.Error(), o.end.Broken.Error())
			require.EqualValues(t, 1, b.pool.Stats().Done.Broken[string(failure.Reason)])
			require.Zero(t, b.pool.done.waitUntilCut.Load())
			b.mu.Lock()
			defer b.mu.Unlock()
			last := b.logs[len(b.logs)-1]
			require.Equal(t, []string{"error", "the body of the response broke off: " + failure.Error()},
				[]string{last.Level, last.Text})
			if name == "error" || name == "start" {
				require.Contains(t, last.Stack, "w.js:", "where it was thrown")
			}
		})
	}
}

// The run of a lost thread says so too, and so does each run that ends with it. No turn leaves the thread: a turn that
// has left is lost alone.
func TestBodiesOfALostThreadBreakOff(t *testing.T) {
	t.Parallel()
	b := openBench(t, func(p *Pool) { p.away.most = 0 })
	b.cpu = ample
	w := worker("w", source+`return new Response(new ReadableStream({ async start(c) { c.enqueue(text.encode("ab")); await new Promise(done => setTimeout(done, 1)); "a".repeat(2 ** 27).match(/a/g) } })) } }`) // a fatal error of V8
	beside := b.start(of("beta", worker("beside", source+`return new Response(new ReadableStream({ start(c) { c.enqueue(text.encode("ab")); setTimeout(() => {}, 1e6) } })) } }`)), reading("", 1<<20))
	beside.wait(t, beside.replied)
	o := b.start(w, reading("", 1<<20))
	o.wait(t, o.replied)
	for _, one := range []*outcome{o, beside} {
		_, failure := bodyOf(t, one.reply, 1<<20, nil)
		one.wait(t, one.ended)
		require.NotNil(t, one.end.Broken)
		require.Equal(t, failure, one.end.Broken)
	}
	require.True(t, o.end.Lost)
}

// A requester that goes away aborts the request's signal and cancels the body, before and after the head. A reader that
// still reads sees that the body is not complete, even if its author closes the stream then.
func TestRequesterGoes(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", source+`r.signal.addEventListener("abort", () => console.log("aborted: " + r.signal.reason.name));
			if (path === "/early") await new Promise(done => { r.signal.addEventListener("abort", done); setTimeout(done, 1e6) });
			if (path === "/closes") return new Response(new ReadableStream({ start(c) {
				c.enqueue(new Uint8Array(10));
				r.signal.addEventListener("abort", () => { console.log("cancelled: AbortError"); c.close() });
			} }));
			if (path === "/full") return new Response(chunks(1, 1e6, 0));
			return new Response(chunks(1e9, 1000, 1)) } }`)
		for _, path := range []string{"early", "late", "closes", "full"} {
			e := reading(path, 100_000)
			o := b.start(w, e)
			if path == "early" {
				require.Eventually(t, func() bool { return b.pool.Stats().Running == 1 }, patience, time.Millisecond)
				e.Requester.Gone()
			}
			o.wait(t, o.replied)
			o.reply.Stream.Cancel("gone")
			_, failure := bodyOf(t, o.reply, 100_000, nil)
			require.NotNil(t, failure, path)
			require.Contains(t, failure.Message, "gone", path)
			o.wait(t, o.ended)
			require.Nil(t, o.end.Failure)
			require.Nil(t, o.end.Broken, "the requester did not wait for the rest")
			lines := strings.Join(b.lines(), ";")
			require.NotContains(t, lines, "broke off", path)
			if path != "full" {
				require.Contains(t, lines, "aborted: AbortError", path)
				require.Contains(t, lines, "cancelled: AbortError", path)
			}
		}
	})
}

// A body that has used up its credit is reported as waiting, once, and only when there is more.
func TestBodyThatWaitsForCredit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	w := worker("w", source+`return new Response(chunks(3, 10, 20)) } }`)
	for credit, waits := range map[int64]int{10: 2, 15: 1, 30: 0, 100: 0} {
		o := b.start(w, reading("", credit))
		o.wait(t, o.replied)
		granted, asked := credit, 0
		more := make(chan struct{}, 1)
		o.reply.Stream.OnChunks(func() { more <- struct{}{} })
		size, ended := 0, false
		for !ended {
			<-more
			for _, c := range o.reply.Stream.Take() {
				require.Nil(t, c.Failure)
				size += len(c.Data)
				ended = c.End
				if c.Waits {
					asked++
					require.EqualValues(t, granted, size, "all that was granted came before")
					granted += credit
					o.reply.Stream.Grant(granted)
				}
			}
		}
		require.Equal(t, 30, size)
		require.Equal(t, waits, asked, credit)
		o.wait(t, o.ended)
	}
}

// A body far larger than the heap passes through it.
func TestBodyLargerThanTheHeap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	w := worker("w", source+`return new Response(chunks(2000, 65536, 0)) } }`)
	w.Limits.HeapMB, w.Limits.CPU = 16, workers.Millis(30*time.Second)
	o := b.start(w, reading("", 1<<20))
	o.wait(t, o.replied)
	size := 0
	_, failure := bodyOf(t, &events.Reply{Stream: o.reply.Stream}, 1<<20,
		func(_ int, c events.Chunk) { size += len(c.Data) })
	require.Nil(t, failure)
	require.Equal(t, 2000*65536, size)
}

// missing is a part that is not there.
const missing = "\x00"

// partly is a fetch event whose body is stored in these parts.
func partly(parts ...string) *lifecycle.Delivery {
	e := fetch("POST", "http://x/", "")
	e.Parts = &events.Parts{ID: "b", N: len(parts), Read: func(_ context.Context, i int) ([]byte, error) {
		if parts[i] == missing {
			return nil, errors.New("part is not there")
		}
		return []byte(parts[i]), nil
	}}
	return e
}

func TestRequestBodyInParts(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		for code, want := range map[string]string{
			`return new Response(await r.text())`: "onetwothree",
			`let n = 0; for await (const chunk of r.body) n += chunk.length; return new Response(String(n))`:                                                                                                                                              "11",
			`const reader = r.body.getReader({ mode: "byob" }); const out = []; for (;;) { const { value, done } = await reader.read(new Uint8Array(2)); if (done) break; out.push(new TextDecoder().decode(value)) } return new Response(out.join("-"))`: "on-e-tw-o-th-re-e",
			`return new Response(r.body)`: "onetwothree",
			`const c = r.clone(); return new Response(await r.text() + await c.text())`: "onetwothreeonetwothree",
			`await r.body.cancel(); return new Response("cancelled")`:                   "cancelled",
			`return new Response("unread")`:                                             "unread",
		} {
			o := b.run(worker("w", `export default { async fetch(r) { `+code+` } }`), partly("one", "two", "three"))
			require.Nil(t, o.end.Failure, "%s: %v", code, b.lines())
			require.Equal(t, want, string(o.reply.Body), code)
		}
		o := b.run(worker("w", `export default { async fetch(r) { try { await r.text() } catch (e) { return new Response(e.name + ": " + e.message) } } }`), partly("one", missing))
		require.Equal(t, "TypeError: part is not there", string(o.reply.Body))
	})
}

// A part without bytes, at any position, has no effect: any publisher may store one.
func TestEmptyPartsOfRequestBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	var bodies [][]string
	for n := 1; n <= 5; n++ {
		for full := range 1 << n { // which of the n parts have bytes
			parts := make([]string, n)
			for i := range parts {
				parts[i] = strings.Repeat(string(rune('a'+i)), full>>i&1*(i+1))
			}
			bodies = append(bodies, parts)
		}
	}
	w := worker("w", `export default { async fetch(r) {
		switch (new URL(r.url).pathname) {
		case "/text": return new Response(await r.text());
		case "/echo": return new Response(r.body);
		case "/clone": { const c = r.clone(); const [a, b] = await Promise.all([r.text(), c.text()]); return new Response(a === b ? a : a + "|" + b) }
		case "/byob": {
			const reader = r.body.getReader({ mode: "byob" });
			for (let out = ""; ;) {
				const { value, done } = await reader.read(new Uint8Array(2));
				if (done) return new Response(out);
				if (value.length === 0) return new Response("an empty chunk");
				out += new TextDecoder().decode(value);
			}
		}
		default: {
			let out = "";
			for await (const chunk of r.body) out += chunk.length === 0 ? "an empty chunk" : new TextDecoder().decode(chunk);
			return new Response(out);
		}
		}
	} }`)
	for _, parts := range bodies {
		for _, how := range []string{"text", "echo", "clone", "byob", "chunks"} {
			e := partly(parts...)
			e.URL = "http://x/" + how
			o := b.run(w, e)
			require.Nil(t, o.end.Failure, "%s %q: %v", how, parts, b.lines())
			require.Equal(t, strings.Join(parts, ""), string(o.reply.Body), "%s %q", how, parts)
		}
	}
	o := b.run(worker("v", `export default { async fetch(r) { try { await r.text() } catch (e) { return new Response(e.message) } } }`), partly("", "one", "", missing))
	require.Equal(t, "part is not there", string(o.reply.Body))
}

// A request in parts passes through a heap that could not hold all of it, and comes out in chunks.
func TestBodiesBothWays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	part := strings.Repeat("x", 1<<20)
	parts := make([]string, 100)
	for i := range parts {
		parts[i] = part
	}
	e := partly(parts...)
	e.Requester = &events.Requester{Credit: 1 << 20}
	w := worker("w", `export default { fetch: r => new Response(r.body) }`)
	w.Limits.HeapMB, w.Limits.CPU = 16, workers.Millis(30*time.Second)
	o := b.start(w, e)
	o.wait(t, o.replied)
	size := 0
	_, failure := bodyOf(t, o.reply, 1<<20, func(_ int, c events.Chunk) { size += len(c.Data) })
	require.Nil(t, failure)
	require.Equal(t, 100<<20, size)
}

// However many grants come while the thread is busy, only one message waits for it: the highest grant.
func TestGrantsDoNotPileUp(t *testing.T) {
	t.Parallel()
	p := newBench(t).pool
	busy := newThread(p, 0) // which does not run
	r, b := &run{thread: busy}, &body{}
	for i := range int64(100_000) {
		b.grant(busy, r, i%1000)
	}
	require.Equal(t, 1, busy.inbox.Calls())
	require.EqualValues(t, 999, b.upTo.Load())
}
