package isolates

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// noCalls is the part of a Host whose workers have no bindings with methods.
type noCalls struct{}

func (noCalls) Call(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
	return lifecycle.Answer{}, errors.New("there are no bindings")
}

// Call answers with the arguments: those of put as the values of all keys. The key "never" is not answered, and "fail"
// fails.
func (b *bench) Call(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	b.mu.Lock()
	b.calling++
	b.mostCalling = max(b.mostCalling, b.calling)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calling--
	}()
	switch key := c.Texts[0]; {
	case key == "never":
		<-ctx.Done()
		return lifecycle.Answer{}, ctx.Err()
	case key == "fail":
		return lifecycle.Answer{}, errors.New("it failed")
	case strings.HasPrefix(key, "kept/"):
		return b.callKept(c)
	case strings.HasPrefix(key, "large"):
		if err := c.Hold(10 << 20); err != nil {
			return lifecycle.Answer{}, err
		}
		return lifecycle.Answer{Texts: []string{""}, Body: make([]byte, 10<<20)}, nil
	}
	if c.Binding.Kind == workers.BindingObjects && c.Texts[0] == "object" {
		a := lifecycle.Answer{Texts: []string{`{"key":"object","version":"v","size":4,"etag":"e","uploaded":1,"http":{"contentType":"a/b"},"custom":{"k":"v"},"sums":{}}`}}
		if c.Method == "get" {
			a.Texts, a.Body = append(a.Texts, "body"), []byte("data")
		}
		return a, nil
	}
	return lifecycle.Answer{Texts: []string{""}, Body: fmt.Appendf(nil, "%s/%s/%s.%s(%s)", c.Owner, c.Binding.Kind,
		c.Binding.Value, c.Method, strings.Join(c.Texts, ","))}, nil
}

func kvWorker(code string) *workers.Worker {
	w := worker("w", code)
	w.KV = map[string]string{"KV": "space"}
	return w
}

// A call names the owner and the binding of the worker that runs.
func TestBindingCall(t *testing.T) {
	b := newBench(t)
	o := b.run(kvWorker(`export default { async fetch(r, env) {
		const failed = await env.KV.get("fail").catch((e) => e.constructor.name + ": " + e.message);
		return Response.json([await env.KV.get("a"), failed]);
	} }`), fetch("GET", "http://w/", ""))
	require.JSONEq(t, `["acme/kv/space.get(a)", "Error: it failed"]`, string(o.reply.Body))
}

// No more calls of a kind are under way at once than the budget says. The others wait, and calls beyond the budget of a
// run fail. Another run has its own.
func TestBindingBudget(t *testing.T) {
	b := newBench(t)
	w := kvWorker(`export default { async fetch(r, env) {
		const all = await Promise.allSettled(Array.from({ length: 10000 }, (_, i) => env.KV.get("k" + i)));
		const failed = all.filter((x) => x.status === "rejected");
		return Response.json([all.length - failed.length, failed.length, failed[0].reason.message]);
	} }`)
	w.Limits.CPU = workers.Millis(60e9)
	for range 2 {
		o := b.run(w, fetch("GET", "http://w/", ""))
		require.JSONEq(t, `[1000, 9000, "too many calls of kv bindings: at most 1000 per event"]`, string(o.reply.Body), o.end.Failure)
	}
	require.LessOrEqual(t, b.mostCalling, 10)
	b.holdsNothing()
}

// Answers count against the memory of the run until JavaScript has them.
func TestBindingAnswersAreHeld(t *testing.T) {
	b := newBench(t)
	w := kvWorker(`export default { async fetch(r, env) {
		const all = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => env.KV.get("large" + i, "arrayBuffer").then((b) => b.byteLength)));
		return Response.json(all.map((x) => x.value ?? x.reason.message));
	} }`)
	w.Limits.HeapMB = 32
	o := b.run(w, fetch("GET", "http://w/", ""))
	require.NotNil(t, o.reply, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "10485760")
	require.Contains(t, string(o.reply.Body), "limits.heapMB")
	b.holdsNothing()
}

// A call that is not answered ends with its run, also one that waits for others.
func TestBindingCallEndsWithItsRun(t *testing.T) {
	b := newBench(t)
	w := kvWorker(`export default { async fetch(r, env) {
		for (let i = 0; i < 100; i++) env.KV.get("never").catch(() => {});
		return new Response(await env.KV.get("never"));
	} }`)
	w.Limits.Wall = workers.Millis(300e6)
	o := b.run(w, fetch("GET", "http://w/", ""))
	require.Equal(t, events.ReasonTimeout, o.end.Failure.Reason)
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.calling == 0
	}, patience, time.Millisecond)
	b.holdsNothing()
}

// JavaScript cannot make the runtime call a binding that the worker does not have, whatever it replaces.
func TestBindingForged(t *testing.T) {
	b := newBench(t)
	o := b.run(kvWorker(`
	let seen = 0;
	for (const name of ["push", "concat", "map", Symbol.iterator]) Array.prototype[name] = function () { seen++ };
	Object.defineProperty(Object.prototype, "0", { set(v) { seen++ }, configurable: true });
	Object.defineProperty(Object.prototype, "then", { get() { return undefined }, configurable: true });
	const KV = (env) => env.KV.constructor;
	export default { async fetch(r, env) {
		let tries = "";
		const attempt = async (f) => { try { tries += await f() } catch (e) { tries += e.constructor.name + " " } };
		await attempt(() => new (KV(env))());
		await attempt(() => new (KV(env))({}, "OTHER").get("a"));
		await attempt(() => env.KV.get.call({}, "a"));
		await attempt(() => env.KV.get.call(Object.create(env.KV), "a"));
		await attempt(() => { env.KV.name = "x"; return env.KV.get("a"); });
		return new Response(tries + seen + typeof KvNamespace);
	} }`), fetch("GET", "http://w/", ""))
	require.NotNil(t, o.reply, o.end.Failure)
	require.Equal(t, "TypeError TypeError TypeError TypeError TypeError 0undefined", string(o.reply.Body))
}

func objectsWorker(code string) *workers.Worker {
	w := worker("w", code)
	w.Objects = map[string]string{"R2": "files"}
	return w
}

// An objects binding has a budget of its own, which 10 000 calls at once do not exceed.
func TestObjectsBudget(t *testing.T) {
	b := newBench(t)
	w := objectsWorker(`export default { async fetch(r, env) {
		const all = await Promise.allSettled(Array.from({ length: 10000 }, (_, i) => env.R2.delete("k" + i)));
		const failed = all.filter((x) => x.status === "rejected");
		return Response.json([all.length - failed.length, failed.length, failed[0].reason.message]);
	} }`)
	w.Limits.CPU = workers.Millis(60e9)
	o := b.run(w, fetch("GET", "http://w/", ""))
	require.JSONEq(t, `[100, 9900, "too many calls of objects bindings: at most 100 per event"]`, string(o.reply.Body), o.end.Failure)
	require.LessOrEqual(t, b.mostCalling, 3)
	b.holdsNothing()
}

// What a handler replaces changes neither what an objects binding sends nor what it gives.
func TestObjectsForged(t *testing.T) {
	b := newBench(t)
	o := b.run(objectsWorker(`
	let seen = 0;
	for (const key of ["0", "http", "custom", "range", "body", "sums", "md5", "key", "toJSON"]) Object.defineProperty(Object.prototype, key, { get() { seen++ }, set(v) { seen++ }, configurable: true });
	for (const name of ["get", "set", "has"]) Headers.prototype[name] = function () { seen++ };
	Date.prototype.getTime = Date.prototype.toUTCString = JSON.parse = Object.keys = function () { seen++ };
	for (const name of ["push", "concat", "map", Symbol.iterator]) Array.prototype[name] = function () { seen++ };
	const R2 = (env) => env.R2.constructor;
	export default { async fetch(r, env) {
		let tries = "";
		const attempt = async (f) => { try { tries += await f() } catch (e) { tries += e.constructor.name + " " } };
		await attempt(() => new (R2(env))());
		await attempt(() => new (R2(env))({}, "OTHER").get("a"));
		await attempt(() => env.R2.get.call({}, "a"));
		await attempt(() => env.R2.list.call(Object.create(env.R2)));
		await attempt(async () => new ((await env.R2.head("object")).constructor)({}, "{}"));
		await attempt(async () => { const o = await env.R2.head("object"); return [o.key, o.size, o.etag, o.httpMetadata.contentType, o.customMetadata.k, o.uploaded.toISOString()] + " "; });
		await attempt(async () => { const o = await env.R2.get("object", { onlyIf: new Headers({ "if-match": "*" }), range: { offset: 1 } }); return await o.text() + " "; });
		await attempt(async () => { const o = await env.R2.get("object"); return Object.getPrototypeOf(o).text.call({}) });
		await attempt(async () => { const o = await env.R2.get("object"); return o.writeHttpMetadata({}) });
		await attempt(() => { env.R2.name = "x"; });
		return new Response(tries + seen);
	} }`), fetch("GET", "http://w/", ""))
	require.NotNil(t, o.reply, o.end.Failure)
	require.Equal(t, "TypeError TypeError TypeError TypeError TypeError object,4,e,a/b,v,1970-01-01T00:00:00.001Z data TypeError TypeError TypeError 0", string(o.reply.Body))
}
