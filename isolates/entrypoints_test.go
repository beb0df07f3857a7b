package isolates

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// A worker imports env from "cloudflare:workers", at the top level and in any function, in every mode.
func TestImportOfEnv(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `
			import * as all from "cloudflare:workers";
			import { env, WorkerEntrypoint, RpcTarget } from "cloudflare:workers";
			import { env as again } from "cloudflare:workers";
			const top = env.NAME;
			const later = async () => { await new Promise((done) => setTimeout(done, 1)); return env.NAME };
			export default { async task(e, given) {
				return [top, await later(), env === given, env === again, env === all.env, Object.keys(all), all[Symbol.toStringTag],
					typeof WorkerEntrypoint, new RpcTarget() instanceof RpcTarget, "WorkerEntrypoint" in globalThis, "RpcTarget" in globalThis];
			} }`)
		w.Vars = map[string]string{"NAME": "Ada"}
		o := b.run(w, task("null"))
		require.Nil(t, o.end.Failure)
		require.JSONEq(t, `{"success":true,"data":["Ada","Ada",true,true,true,["RpcTarget","WorkerEntrypoint","env","exports","waitUntil"],"Module","function",true,false,false]}`,
			string(o.reply.Body))
	})
}

func TestImportsOfTheRuntimesModuleThatFail(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for code, want := range map[string]string{
		`import { nonesuch } from "cloudflare:workers"; export default {}`: `The requested module 'cloudflare:workers' does not provide an export named 'nonesuch'`,
		`import "cloudflare:email"; export default {}`:                     `cannot import "cloudflare:email": imports are bundled at deploy`,
		`import "cloudflare:workers\0"; export default {}`:                 `cannot import "cloudflare:workers`,
	} {
		f := b.run(worker("w", code), task("null")).end.Failure
		require.NotNil(t, f, code)
		require.Contains(t, f.Message, want)
	}
	require.Equal(t, "TypeError: Cannot assign to read only property 'env' of object '[object Module]'", b.task(
		`import * as all from "cloudflare:workers"; export default { task() { try { all.env = 1 } catch (e) { return String(e) } } }`, "1")["data"])
	// What a handler has replaced is not called.
	require.Equal(t, "ok", b.task(`import { env, waitUntil } from "cloudflare:workers";
		export default { task() { waitUntil(Promise.resolve()); return env ? "ok" : "" } };
		Promise.prototype.then = Array.prototype[Symbol.iterator] = Function.prototype.call = () => { throw new Error("called") };`, "1")["data"])
}

// waitUntil belongs to the event that runs: its end waits for the promise.
func TestImportOfWaitUntil(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		o := b.run(worker("w", `
			import { waitUntil } from "cloudflare:workers";
			let top; try { waitUntil(Promise.resolve()) } catch (e) { top = String(e) }
			const deep = async () => { await null; waitUntil(new Promise((done) => setTimeout(done, 5)).then(() => console.log("waited"))) };
			export default { async task() {
				let none; try { waitUntil() } catch (e) { none = String(e) }
				waitUntil(3);
				await deep();
				return [top, none];
			} }`), task("null"))
		require.Nil(t, o.end.Failure)
		require.JSONEq(t,
			`{"success":true,"data":["Error: waitUntil: no event runs; call it in a handler, or in what a handler calls",
			"TypeError: waitUntil: 1 argument required, but only 0 present"]}`, string(o.reply.Body))
		require.Contains(t, b.lines(), "waited")
	})
}

// Code that an event left behind cannot make a later event wait, nor can one of several that run at once.
func TestWaitUntilOfAnEventThatIsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mode = workers.Persistent
	w := worker("w", `
		import { waitUntil } from "cloudflare:workers";
		let go; const gate = new Promise((done) => { go = done });
		export default { async task({ payload }) {
			if (payload === 1) { gate.then(() => { try { waitUntil(new Promise(() => {})) } catch (e) { globalThis.said = e.name } }); return }
			go(); await new Promise((done) => setTimeout(done, 1));
			return globalThis.said;
		} }`)
	require.Nil(t, b.run(w, task("1")).end.Failure)
	require.JSONEq(t, `{"success":true,"data":"InvalidStateError"}`, string(b.run(w, task("2")).reply.Body))
}

// Each event gets an instance of the class that the default export is.
func TestClassAsDefaultExport(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"WorkerEntrypoint": `import { WorkerEntrypoint } from "cloudflare:workers";
			class Base extends WorkerEntrypoint { async task({ payload }) { return this.answer(payload) } }
			export default class extends Base {
				n = 0;
				answer(payload) { this.n++; return [this.n, payload, this.env.NAME, typeof this.ctx.waitUntil, Object.keys(this)] }
				fetch(request) { return new Response(request.method + this.env.NAME + arguments.length) }
				scheduled(controller) { return controller.cron + this.env.NAME }
			}`,
		"plain": `export default class Plain {
				n = 0;
				constructor(ctx, env) { this.ctx = ctx; this.env = env }
				async task({ payload }) { this.n++; return [this.n, payload, this.env.NAME, typeof this.ctx.waitUntil, ["ctx", "env", "n"].filter((k) => k in this)] }
				fetch(request) { return new Response(request.method + this.env.NAME + arguments.length) }
				scheduled(controller) { return controller.cron + this.env.NAME }
			}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModes(t, func(t *testing.T, b *bench) {
				w := worker("w", code)
				w.Vars = map[string]string{"NAME": "Ada"}
				for range 2 {
					o := b.run(w, task("7"))
					require.Nil(t, o.end.Failure)
					require.JSONEq(t, `{"success":true,"data":[1,7,"Ada","function",["ctx","env","n"]]}`, string(o.reply.Body))
				}
				o := b.run(w, fetch("PUT", "http://x/", ""))
				require.Nil(t, o.end.Failure)
				require.Equal(t, http.StatusOK, o.reply.Status)
				require.Equal(t, "PUTAda1", string(o.reply.Body))
				e := task("null")
				e.Kind, e.Cron = events.Scheduled, "* * * * *"
				require.JSONEq(t, `{"success":true,"data":"* * * * *Ada"}`, string(b.run(w, e).reply.Body))
			})
		})
	}
}

// The request of an event has a cf, of Cloudflare, with nothing in it.
func TestRequestOfAnEventHasAnEmptyCf(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.run(worker("w", `export default { fetch(request) {
		const copies = [new Request(request), request.clone(), new Request("http://x/", request)];
		return Response.json([request.cf, Object.isFrozen(request.cf), copies.map((r) => typeof r.cf)]);
	} }`), fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `[{},true,["object","object","object"]]`, string(o.reply.Body))
}

// A Response keeps the cf that it is made with, as at Cloudflare.
func TestResponsesKeepTheirCf(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.run(worker("w", `export default { fetch() {
		const made = new Response("", { cf: { a: 1 } }), type = (cf) => { try { new Response("", { cf }) } catch (e) { return e.constructor.name } };
		return Response.json([made.cf, made.clone().cf, new Response("", made).cf, Response.json(1, { cf: { b: 2 } }).cf,
			typeof new Response("").cf, type(5), type(null)]);
	} }`), fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `[{"a":1},{"a":1},{"a":1},{"b":2},"undefined","TypeError","TypeError"]`, string(o.reply.Body))
}

// A body from a FixedLengthStream has a Content-Length, as response and as request.
func TestFixedLengthStreamAsBody(t *testing.T) {
	t.Parallel()
	lengths := make(chan int64, 2)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		lengths <- r.ContentLength
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(s.Close)
	b := newBench(t, loopback)
	w := worker("w", `
		const made = (n, text) => {
			const s = new FixedLengthStream(n), w = s.writable.getWriter();
			w.write(new TextEncoder().encode(text)).then(() => w.close()).catch(() => {});
			return s.readable;
		};
		export default {
			fetch(request) {
				const n = Number(new URL(request.url).pathname.slice(1));
				return new Response(made(n, "hello"), { headers: { "x-a": "b" } });
			},
			async task({ payload }) {
				await fetch(payload, { method: "POST", body: made(5, "hello") });
				await fetch(payload, { method: "POST", body: made(5, "hello").pipeThrough(new IdentityTransformStream()) });
			},
		}`)
	for path, want := range map[string]string{"5": "", "6": "did not see all expected bytes", "4": "too many bytes"} {
		o := b.start(w, reading(path, 100))
		o.wait(t, o.replied)
		require.Equal(t, []string{"x-a", "b", "content-length", path}, o.reply.Headers)
		body, failure := bodyOf(t, o.reply, 100, nil)
		if want == "" {
			require.Equal(t, "hello", string(body))
			require.Nil(t, failure)
		} else {
			require.ErrorContains(t, failure, want)
		}
		o.wait(t, o.ended)
	}
	o := b.run(w, task(`"`+s.URL+`"`))
	require.Nil(t, o.end.Failure)
	require.Equal(t, []int64{5, -1}, []int64{<-lengths, <-lengths})
}

func TestClassesThatFail(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for code, want := range map[string]string{
		`export default class { constructor() { throw new Error("made") } task() {} }`:                                                                 "Error: made",
		`export default class { constructor() { this.task = 3 } task() {} }`:                                                                           "TypeError: task is not a method of the class",
		`import { WorkerEntrypoint } from "cloudflare:workers"; export default class extends WorkerEntrypoint { constructor() { super() } task() {} }`: "TypeError: new WorkerEntrypoint: the first argument is not a ctx",
		`import { WorkerEntrypoint } from "cloudflare:workers"; export default { task() { WorkerEntrypoint() } }`:                                      "TypeError: Class constructor WorkerEntrypoint cannot be invoked without 'new'",
	} {
		f := b.run(worker("w", code), task("1")).end.Failure
		require.NotNil(t, f, code)
		require.Equal(t, want, f.Message)
	}
	// A function with handlers as properties is no class.
	require.Equal(t, "own", b.task(`const app = () => {}; app.task = function () { return this === app ? "own" : "" }; export default app`, "1")["data"])
	require.Equal(t, "static", b.task(`export default class { static task() { return "static" } }`, "1")["data"])
}

// The check of a deploy knows the handlers of a class, also those that nothing calls.
func TestCheckOfClasses(t *testing.T) {
	t.Parallel()
	h := &lines{}
	c, err := OpenChecker(h, CheckConfig{})
	require.NoError(t, err)
	defer c.Close()
	for code, want := range map[string]workers.Handlers{
		`import { WorkerEntrypoint } from "cloudflare:workers"; export default class extends WorkerEntrypoint { fetch() {} scheduled() {} }`: {Kinds: []events.Kind{events.Fetch, events.Scheduled}, Entrypoints: true},
		`import { WorkerEntrypoint } from "cloudflare:workers"; export default class extends WorkerEntrypoint { other() {} }`:                {Entrypoints: true},
		`import { WorkerEntrypoint } from "cloudflare:workers"; export class Named extends WorkerEntrypoint { other() {} }`:                  {Entrypoints: true},
		`export default class { task() {} email() {} }`:          {Kinds: []events.Kind{events.Task}},
		`export default class { queue() {} }`:                    {Queue: true},
		`export default class { fetch() {} static routes = {} }`: {Kinds: []events.Kind{events.Fetch}},
	} {
		has, err := c.Check(t.Context(), worker("w", code))
		require.NoError(t, err, code)
		require.Equal(t, want, has, code)
	}
	require.Equal(t, []string{"warn acme/w nothing calls email(), which the default export has: a worker gets fetch, task and scheduled events"}, h.text)
	for _, code := range []string{
		`export default class {}`, `export default () => {}`,
	} {
		_, err = c.Check(t.Context(), worker("w", code))
		require.ErrorContains(t, err, "no handler", code)
	}
}

// Classes and streams that a hostile worker makes end by its limits, and the thread goes on. Without the tag `hostile`
// half of them run.
func TestHostileNamesOfCloudflare(t *testing.T) {
	t.Parallel()
	const imported = `import { env, waitUntil, WorkerEntrypoint } from "cloudflare:workers"; `
	codes := map[string]string{
		"prototypes without end":   `const p = () => new Proxy({}, { getPrototypeOf: p }); class C {} Object.setPrototypeOf(C.prototype, p()); export default C`,
		"a getter that loops":      imported + `export default class extends WorkerEntrypoint { get task() { for (;;); } }`,
		"a prototype that loops":   `export default new Proxy(function () {}, { get(o, name) { if (name === "prototype") for (;;); return o[name] } })`,
		"a constructor that loops": imported + `export default class extends WorkerEntrypoint { constructor(...a) { super(...a); for (;;); } task() {} }`,
		"exports without end":      imported + `export default class C extends WorkerEntrypoint { task() { return new C(new C(this, env), env).task() } }`,
		"waitUntil without end":    imported + `export default { task() { for (;;) waitUntil(new Promise(() => {})) } }`,
		"streams without end":      `export default { task() { const all = []; for (;;) { const s = new FixedLengthStream(2 ** 40); s.writable.getWriter().write(new Uint8Array(65536)); all.push(s) } } }`,
		"writes without end":       `export default { async task() { const s = new IdentityTransformStream(), w = s.writable.getWriter(); for (;;) { w.write(new Uint8Array(65536)); await null } } }`,
		"digests without end":      `export default { async task() { const all = []; for (;;) { const s = new crypto.DigestStream("SHA-512"); await s.getWriter().write(new Uint8Array(65536)); all.push(s) } } }`,
		"long digests":             `export default { async task() { const w = new crypto.DigestStream("MD5").getWriter(), b = new Uint8Array(8 << 20); for (;;) await w.write(b) } }`,
		"immediates without end":   `export default { task() { for (;;) setImmediate(() => {}) } }`,
		"immediates in immediates": `export default { task: () => new Promise(() => { const again = () => setImmediate(again); again() }) }`,
	}
	for _, name := range sampled(t, slices.Sorted(maps.Keys(codes)), len(codes)/2) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w := worker("w", codes[name])
			const limit = 200 * time.Millisecond
			b.pool.load.cpu = limit // some are called while the module loads
			w.Limits = workers.Limits{CPU: workers.Millis(limit), HeapMB: 32}
			f := b.run(w, task("null")).end.Failure
			require.NotNil(t, f)
			require.Contains(t, []events.Reason{events.ReasonCPU, events.ReasonMemory, events.ReasonException}, f.Reason, "%v",
				f)
			require.Equal(t, "hello", b.task(hello, "{}")["data"])
			require.Zero(t, b.pool.Stats().Parked)
		})
	}
}
