package isolates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// keptObject is what an object "kept/…" has, until a put of another: 8 MiB that differ from part to part.
var keptObject = bytes.Repeat([]byte("0123456789abcdef"), 8<<16)

// callKept answers calls for keys that begin with "kept/". A put is stored.
func (b *bench) callKept(c *lifecycle.Call) (lifecycle.Answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := c.Texts[0]
	described := fmt.Sprintf(`{"key":%q,"version":"v","size":%d,"etag":"e","uploaded":1,"sums":{}}`, key, len(keptObject))
	if c.Method == "put" {
		if b.stored == nil {
			b.stored = map[string][]byte{}
		}
		b.stored[key] = bytes.Clone(c.Body)
		return lifecycle.Answer{Texts: []string{described}}, nil
	}
	data := keptObject
	if c.Binding.Kind == workers.BindingKV {
		data, described = data[:512<<10], ""
	}
	if err := c.Hold(len(data)); err != nil {
		return lifecycle.Answer{}, err
	}
	texts := []string{described}
	if c.Binding.Kind == workers.BindingObjects {
		texts = append(texts, "body")
	}
	return lifecycle.Answer{Texts: texts, Body: bytes.Clone(data)}, nil
}

func keeper(code string) *workers.Worker {
	w := worker("w"+strconv.Itoa(len(code)), `export default { async fetch(r, env) { `+code+` } }`)
	w.KV, w.Objects = map[string]string{"KV": "space"}, map[string]string{"B": "bucket"}
	return w
}

// Values of KV and objects do not enter JavaScript, wherever they go: they pass through a worker whose ArrayBuffers
// have no room for one.
func TestValuesPassWithoutJavaScript(t *testing.T) {
	t.Parallel()
	url := mirror(t)
	for name, c := range map[string]struct {
		code   string
		moved  int    // bytes that pipes move
		reply  []byte // nil = it is text
		stored []byte
	}{
		"object to response":   {`return new Response((await env.B.get("kept/a")).body)`, 8 << 20, keptObject, nil},
		"object with its etag": {`const o = await env.B.get("kept/a"); return new Response(o.body, { headers: { etag: o.httpEtag } })`, 8 << 20, keptObject, nil},
		"value to response":    {`return new Response(await env.KV.get("kept/a", "stream"))`, 512 << 10, keptObject[:512<<10], nil},
		"value with metadata":  {`return new Response((await env.KV.getWithMetadata("kept/a", { type: "stream" })).value)`, 512 << 10, keptObject[:512<<10], nil},
		"request to object":    {`await env.B.put("kept/b", r.body); return new Response("stored")`, 8 << 20, nil, keptObject},
		"subrequest to object": {`await env.B.put("kept/b", (await fetch("` + url + `", { method: "POST", body: r.body })).body); return new Response("stored")`,
			16 << 20, nil, keptObject},
		"object to object": {`await env.B.put("kept/b", (await env.B.get("kept/a")).body); return new Response("stored")`, 8 << 20, nil, keptObject},
		"object to subrequest": {`return fetch("` + url + `", { method: "POST", body: (await env.B.get("kept/a")).body })`, 16 << 20, keptObject,
			nil},
		"value to value":  {`await env.KV.put("kept/b", await env.KV.get("kept/a", "stream")); return new Response("stored")`, 512 << 10, nil, keptObject[:512<<10]},
		"value to object": {`await env.B.put("kept/b", await env.KV.get("kept/a", "stream")); return new Response("stored")`, 512 << 10, nil, keptObject[:512<<10]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModes(t, func(t *testing.T, b *bench) {
				w := keeper(`const ballast = new Uint8Array(26 << 20); ` + c.code)
				w.Limits.HeapMB = 32 // no room for 8 MiB more
				e, _ := uploading(8)
				o := b.start(w, e)
				select {
				case <-o.replied:
				case <-o.ended:
				}
				require.NotNil(t, o.reply, "%v", b.lines())
				body, failure := bodyOf(t, o.reply, 256<<10, nil)
				o.wait(t, o.ended)
				require.Nil(t, failure, "%v", b.lines())
				require.Nil(t, o.end.Failure)
				if c.reply == nil {
					require.Equal(t, "stored", string(body))
				} else {
					require.True(t, bytes.Equal(c.reply, body), "%d bytes", len(body))
				}
				require.True(t, bytes.Equal(c.stored, b.stored["kept/b"]))
				require.EqualValues(t, c.moved, b.pool.done.piped.Load())
				b.holdsNothing()
			}, loopback)
		})
	}
}

// A value that stays in Go is to code what it was in JavaScript.
func TestKeptValuesAreRead(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		for code, want := range map[string]string{
			`const t = await o.text(); let e = ""; try { await o.text() } catch (x) { e = x.name } return t.length + t[17] + o.bodyUsed + o.body.locked + e`: "83886081truetrueTypeError",
			`const x = await o.arrayBuffer(); return x.byteLength + "" + o.bodyUsed`:                                                                         "8388608true",
			`const x = await o.bytes(); return x.length + x.constructor.name + x.buffer.byteLength`:                                                          "8388608Uint8Array8388608",
			`return (await o.blob()).size + ""`:                               "8388608",
			`try { await o.json() } catch (x) { return x.name + o.bodyUsed }`: "SyntaxErrortrue",
			`const before = [o.bodyUsed, o.body.locked, o.body === o.body]; const s = new Response(o.body); return before + "" + [o.bodyUsed, s.bodyUsed] + (await s.bytes()).length`:       "false,false,truefalse,false8388608",
			`const [a, c] = o.body.tee(); return (await new Response(a).bytes()).length + " " + (await new Response(c).bytes()).length`:                                                     "8388608 8388608",
			`const s = new Response(o.body), c = s.clone(); return (await s.bytes()).length + " " + (await c.bytes()).length`:                                                               "8388608 8388608",
			`const s = new IdentityTransformStream(); return (await new Response(o.body.pipeThrough(s)).bytes()).length + ""`:                                                               "8388608",
			`const r = o.body.getReader(); const { value } = await r.read(); r.releaseLock(); let e = ""; try { new Response(o.body) } catch (x) { e = x.name } return (value[1] - 48) + e`: "1TypeError",
			`const r = o.body.getReader({ mode: "byob" }); const { value } = await r.read(new Uint8Array(5)); return new TextDecoder().decode(value)`:                                       "01234",
			`let n = 0; for await (const c of o.body) n += c.length; return n + ""`:                                                                                                         "8388608",
			`await o.body.cancel(); try { await o.text() } catch (x) { return x.name + o.bodyUsed }`:                                                                                        "TypeErrortrue",
			`const s = await env.KV.get("kept/a", "stream"); return (await new Response(s).text()).length + ""`:                                                                             "524288",
			`return (await env.KV.get("kept/a")).length + "" + (await env.KV.get("kept/a", "arrayBuffer")).byteLength`:                                                                      "524288524288",
			`try { await env.KV.put("kept/c", o.body) } catch (x) { return x.name + ": " + x.message }`:                                                                                     "RangeError: the body is too large: more than 524288 bytes",
			`await env.B.put("kept/b", o.body); let e = ""; try { await env.B.put("kept/c", o.body) } catch (x) { e = x.name } return o.bodyUsed + e`:                                       "trueTypeError",
			`const all = []; for (let i = 0; i < 9; i++) all.push(await env.B.get("kept/a")); return (await all[8].bytes()).length + " " + (await all[0].bytes()).length`:                   "8388608 8388608",
			`Object.prototype.kept = Object.prototype.run = 1; Map.prototype.get = Map.prototype.set = () => { throw 1 }; return (await o.bytes()).length + ""`:                             "8388608",
		} {
			w := keeper(`const o = await env.B.get("kept/a"); return new Response(await (async () => { ` + code + ` })())`)
			o := b.run(w, fetch("GET", "http://x/", ""))
			require.Nil(t, o.end.Failure, "%s: %v", code, b.lines())
			require.Equal(t, want, string(o.reply.Body), code)
			require.NotContains(t, b.stored, "kept/c", code)
			b.holdsNothing(code)
		}
	})
}

// Values that code gets and forgets do not use up the memory of its run.
func TestForgottenValuesLeaveRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	w := keeper(`let n = 0; for (let i = 0; i < 40; i++) n += (await env.B.get("kept/a")).size; return new Response(n + "")`)
	w.Limits.HeapMB = 64
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure, "%v", b.lines())
	require.Equal(t, strconv.Itoa(40*len(keptObject)), string(o.reply.Body))
	b.holdsNothing()
}

// Nothing is stored of a source that breaks, or that is longer than an object may be. Memory is given back.
func TestPutsOfBrokenSources(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	code := `try { await env.B.put("kept/b", r.body) } catch (e) { return new Response(e.name + ": " + e.message) } return new Response("stored")`
	e := fetch("POST", "http://x/", "")
	e.Parts = &events.Parts{ID: "b", Live: true, Read: func(_ context.Context, i int) ([]byte, error) {
		if i == 3 {
			return nil, errors.New("the client has gone")
		}
		return make([]byte, 1<<20), nil
	}}
	o := b.run(keeper(code), e)
	require.Nil(t, o.end.Failure)
	require.Equal(t, "TypeError: the client has gone", string(o.reply.Body))
	b.holdsNothing()

	e, u := uploading(1000)
	w := keeper(code)
	w.Limits.HeapMB = 128
	o = b.run(w, e)
	require.Nil(t, o.end.Failure)
	require.Equal(t, "RangeError: the body is too large: more than 26214400 bytes", string(o.reply.Body))
	require.LessOrEqual(t, u.read.Load(), int64(26), "the rest is not read")
	b.holdsNothing()
	require.Empty(t, b.stored)

	// The client of an object leaves.
	o = b.start(keeper(`return new Response((await env.B.get("kept/a")).body)`), reading("", 64<<10))
	select {
	case <-o.replied:
	case <-o.ended:
	}
	require.NotNil(t, o.reply, "%v", b.lines())
	o.reply.Stream.Cancel("gone")
	o.wait(t, o.ended)
	require.Nil(t, o.end.Broken)
	b.holdsNothing()
}

// A response that the server sends faster than code reads it comes in pieces of up to 256 KiB.
func TestResponsesComeInLongPieces(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(32<<20))
		_, _ = w.Write(make([]byte, 32<<20))
	}))
	t.Cleanup(s.Close)
	b := newBench(t, loopback)
	b.cpu = ample
	o := b.run(worker("w", `export default { async fetch(r) { let n = 0, most = 0; for await (const c of (await fetch("`+s.URL+`")).body) { n += c.length; most = Math.max(most, c.length) } return Response.json([n, most]) } }`),
		fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure, "%v", b.lines())
	require.Equal(t, "[33554432,262144]", string(o.reply.Body))
	b.holdsNothing()
}
