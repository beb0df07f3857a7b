package isolates

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// upload is a live body of n parts of a MiB. It notes how many were read.
type uploaded struct {
	read atomic.Int64
	sum  [sha256.Size]byte
}

func uploading(n int) (*lifecycle.Delivery, *uploaded) {
	u := &uploaded{}
	part := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	all := sha256.New()
	for range n {
		all.Write(part)
	}
	u.sum = [sha256.Size]byte(all.Sum(nil))
	e := fetch("POST", "http://x/", "")
	e.Requester = &events.Requester{Credit: 256 << 10}
	e.Parts = &events.Parts{ID: "b", Live: true, Size: int64(n) << 20,
		Read: func(ctx context.Context, i int) ([]byte, error) {
			if i >= n {
				return nil, io.EOF
			}
			u.read.Add(1)
			return bytes.Clone(part), ctx.Err()
		}}
	return e, u
}

// passes a body of 16 MiB, with the default limit of 50 ms of CPU, through code.
func passes(t *testing.T, b *bench, w *workers.Worker) *outcome {
	t.Helper()
	const mib = 16
	e, u := uploading(mib)
	o := b.start(w, e)
	o.wait(t, o.replied)
	require.NotNil(t, o.reply.Stream, "%v %v", o.reply, b.lines())
	sum, size := sha256.New(), 0
	_, failure := bodyOf(t, &events.Reply{Stream: o.reply.Stream}, 256<<10,
		func(_ int, c events.Chunk) { sum.Write(c.Data); size += len(c.Data) })
	require.Nil(t, failure, "%v", b.lines())
	o.wait(t, o.ended)
	require.Nil(t, o.end.Failure)
	require.Nil(t, o.end.Broken)
	require.Equal(t, mib<<20, size)
	require.Equal(t, u.sum[:], sum.Sum(nil))
	return o
}

// mirror answers with the body of the request, and with its length if that is known.
func mirror(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("X-Length", strconv.FormatInt(r.ContentLength, 10))
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A body that no code reads does not enter JavaScript: it passes through a worker with little CPU time and heap,
// whichever way the handler hands it on.
func TestBodiesPassWithoutJavaScript(t *testing.T) {
	t.Parallel()
	url := mirror(t)
	for name, code := range map[string]string{
		"request to response":             `return new Response(r.body)`,
		"a response with headers":         `return new Response(r.body, { status: 201, headers: { "x-a": "b" } })`,
		"a new request":                   `const next = new Request(r, { headers: { "x-a": "b" } }); return new Response(next.body)`,
		"request to subrequest, and back": `return fetch("` + url + `", { method: "POST", body: r.body })`,
		"the request itself":              `return fetch(new Request("` + url + `", r))`,
		"subrequest to response":          `const got = await fetch("` + url + `", { method: "POST", body: r.body }); return new Response(got.body, got)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModes(t, func(t *testing.T, b *bench) {
				w := worker("w", `export default { async fetch(r) { `+code+` } }`)
				w.Limits.HeapMB = 16
				o := passes(t, b, w)
				hops := 1 // each moves all of the body
				if strings.Contains(code, "fetch(") {
					hops = 2
				}
				require.EqualValues(t, hops*16<<20, b.pool.done.piped.Load())
				if name == "request to response" {
					require.Equal(t, []string{"content-length", strconv.Itoa(16 << 20)}, o.reply.Headers)
				}
			}, loopback)
		})
	}
}

// What reads a body gets all of it in one piece, as fast as it comes.
func TestBodiesAreGatheredOnce(t *testing.T) {
	t.Parallel()
	url := mirror(t)
	inModes(t, func(t *testing.T, b *bench) {
		for code, want := range map[string]string{
			`const x = await r.bytes(); return new Response(x.length + " " + x[17] + " " + r.bodyUsed)`:                                            "8388608 49 true",
			`const x = await r.arrayBuffer(); return new Response(x.byteLength + "")`:                                                              "8388608",
			`const x = await (await fetch("` + url + `", { method: "POST", body: r.body })).arrayBuffer(); return new Response(x.byteLength + "")`: "8388608",
		} {
			e, _ := uploading(8)
			o := b.run(worker("w", `export default { async fetch(r) { `+code+` } }`), e)
			require.Nil(t, o.end.Failure, "%s: %v", code, b.lines())
			require.Equal(t, want, string(o.reply.Body), code)
		}
		require.EqualValues(t, 4*8<<20, b.pool.done.piped.Load(), "the third body moved twice")
	}, loopback)
	b := newBench(t)
	w := worker("w", `export default { async fetch(r) { try { await r.bytes() } catch (e) { return new Response(e.name + ": " + e.message) } } }`)
	w.Limits.HeapMB = 16
	e, u := uploading(1000)
	o := b.run(w, e)
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "the event holds")
	require.Less(t, u.read.Load(), int64(20), "the rest is not read")
}

// A requester that takes nothing holds the sender back.
func TestPipeWaitsForItsReader(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, u := uploading(1000)
	o := b.start(worker("w", `export default { fetch: r => new Response(r.body) }`), e)
	o.wait(t, o.replied)
	require.Eventually(t, func() bool { return len(o.reply.Stream.Take()) > 0 || u.read.Load() == 1 }, patience,
		time.Millisecond)
	require.Nil(t, b.run(quick(), task("null")).end.Failure, "the thread has other work meanwhile")
	require.LessOrEqual(t, u.read.Load(), int64(1), "a part has a MiB, and 256 KiB were granted")
	require.LessOrEqual(t, b.pool.holdings.Total(), int64(1<<20))
	o.reply.Stream.Cancel("gone")
	o.wait(t, o.ended)
	require.Nil(t, o.end.Broken, "the requester did not wait for the rest")
	require.LessOrEqual(t, u.read.Load(), int64(2), "the source is left")
}

// A source that fails breaks the body off, and a sink that fails cancels its source.
func TestPipesThatFail(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	e := reading("", 1<<20)
	e.Method = "POST"
	e.Parts = &events.Parts{ID: "b", Live: true, Read: func(_ context.Context, i int) ([]byte, error) {
		if i == 1 {
			return nil, errors.New("no more parts")
		}
		return []byte("first"), nil
	}}
	o := b.start(worker("w", `export default { fetch: r => new Response(r.body) }`), e)
	o.wait(t, o.replied)
	body, failure := bodyOf(t, o.reply, 1<<20, nil)
	require.Equal(t, "first", string(body))
	require.Contains(t, failure.Message, "no more parts")
	o.wait(t, o.ended)
	require.Equal(t, failure, o.end.Broken)

	gone := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/breaks" {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "first")
			return
		}
		defer close(gone)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	w := worker("w", `export default { fetch: r => fetch("`+s.URL+`" + new URL(r.url).pathname) }`)
	o = b.start(w, reading("breaks", 1<<20))
	o.wait(t, o.replied)
	_, failure = bodyOf(t, o.reply, 1<<20, nil)
	require.NotNil(t, failure)
	o.wait(t, o.ended)
	require.NotNil(t, o.end.Broken)

	o = b.start(w, reading("endless", 1<<20))
	o.wait(t, o.replied)
	o.reply.Stream.Cancel("gone")
	o.wait(t, o.ended)
	require.Nil(t, o.end.Broken)
	<-gone
}

// The wall-clock limit ends a run whose pipe waits.
func TestPipeEndsWithItsRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var once sync.Once
	left := make(chan struct{})
	e := reading("", 1<<20)
	e.Method = "POST"
	e.Parts = &events.Parts{ID: "b", Live: true, Read: func(ctx context.Context, _ int) ([]byte, error) {
		<-ctx.Done()
		once.Do(func() { close(left) })
		return nil, ctx.Err()
	}}
	w := worker("w", `export default { fetch: r => new Response(r.body) }`)
	w.Limits.Wall = workers.Millis(100 * time.Millisecond)
	o := b.start(w, e)
	o.wait(t, o.ended)
	require.Equal(t, events.ReasonTimeout, o.end.Broken.Reason)
	<-left
}

// Code that has changed what it can reach gets no other body, and cannot read one twice.
func TestPipesCannotBeForged(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		for code, want := range map[string]string{
			// a stream that was handed on is locked and disturbed
			`new Response(r.body); const p = new Response(r.body); const q = p.text(); let e = ""; try { await r.text() } catch (x) { e = x.name } return new Response(await q + e + r.body.locked + r.bodyUsed)`: "onetwoTypeErrortruetrue",
			`const x = new Request(r); let e = ""; try { r.body.getReader() } catch (y) { e = y.name } return new Response(e + r.bodyUsed + x.bodyUsed + await x.text())`:                                         "TypeErrortruefalseonetwo",
			// one that code has read begins where it stopped
			`const reader = r.body.getReader(); const { value } = await reader.read(); reader.releaseLock(); let e = ""; try { new Response(r.body) } catch (x) { e = x.name } return new Response(new TextDecoder().decode(value) + e)`: "oneTypeError",
			`const [a, c] = r.body.tee(); return new Response(await new Response(a).text() + await new Response(c).text())`:                                                                                                              "onetwoonetwo",
			`return new Response(r.body.pipeThrough(new TransformStream({ transform(x, c) { c.enqueue(x); c.enqueue(x) } })))`:                                                                                                           "oneonetwotwo",
			// prototypes and globals that are not the runtime's
			`for (const name of ["getReader", "cancel", "tee", "pipeTo", "pipeThrough", Symbol.asyncIterator]) ReadableStream.prototype[name] = () => { throw new Error("reached") };
			 Object.prototype.source = { id: 0 }; Object.prototype.run = 1; Map.prototype.get = Map.prototype.set = () => { throw new Error("reached") };
			 Object.defineProperty(ReadableStream.prototype, "locked", { get() { throw new Error("reached") } });
			 return new Response(r.body)`: "onetwo",
			`const fake = Object.create(ReadableStream.prototype); let e = ""; try { fake.locked } catch (x) { e = x.name } return new Response(e)`:                                                    "TypeError",
			`const init = { get status() { r.body.getReader(); return 200 } }; const s = new Response(r.body, init); try { s.clone() } catch (x) { return new Response("locked " + x.name) } return s`: "locked TypeError",
			`const before = r.body; const s = new Response(r.body); before.getReader = null; return s`:                                                                                                 "onetwo",
			`await r.body.cancel(); try { return new Response(r.body) } catch (x) { return new Response("cancelled " + x.name) }`:                                                                      "cancelled TypeError",
		} {
			e := partly("one", "two")
			e.Requester = &events.Requester{Credit: 1 << 20}
			o := b.start(worker("w"+strconv.Itoa(len(code)), `export default { async fetch(r) { `+code+` } }`), e)
			select {
			case <-o.replied:
			case <-o.ended:
			}
			require.NotNil(t, o.reply, "%s: %v", code, b.lines())
			body, failure := bodyOf(t, o.reply, 1<<20, nil)
			o.wait(t, o.ended)
			require.Nil(t, failure, "%s: %v", code, b.lines())
			require.Equal(t, want, string(body), code)
		}
	})
}
