package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// hostileLimits leave time for a loaded machine.
const hostileLimits = `{"services": {"SELF": "w", "AUTH": "auth", "NAMED": "w#Named"}, "limits": {"cpuMs": 60000, "wallMs": 60000, "subrequests": 1000}}`

// held returns the bytes that the process holds for runs outside of V8.
func (h *testFleet) held() float64 { return h.metric("pinwheel_held_bytes") }

// isFree waits until nothing is held, and then has the other owner's worker answer.
func (h *testFleet) isFree() {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.held() == 0 }, patience, 5*time.Millisecond)
	require.Equal(h.t, "fine", string(h.call("other/auth").Body))
}

// Owners attack through their services. Each attack ends with an error for its author, nothing stays held, and another
// owner's worker answers.
func TestHostileServiceCalls(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.OwnerMaxRunning = 64 })
	h.deploy("other", "auth", `export default { fetch() { return new Response("fine") } }`)
	for name, test := range map[string]struct{ code, want string }{
		"nine deep": {
			`deep(n) { return n === 0 ? "bottom" : this.env.SELF.deep(n - 1) }
			attack() { return Promise.all([this.env.SELF.deep(7), this.env.SELF.deep(8).catch((e) => e.message)]) }`,
			`["bottom","subrequest depth limit exceeded: at most 8 service calls may wait for one another"]`,
		},
		"10 000 calls": {
			`one() { return 1 }
			async attack() {
				const made = await Promise.allSettled(Array.from({ length: 10000 }, () => this.env.SELF.one()));
				let more = 0;
				try { for (;;) { await this.env.SELF.one(); more++ } } catch (e) { const n = made.filter((m) => m.status === "fulfilled").length; return [n >= 32 && n < 10000, n + more, e.message] }
			}`,
			`[true,1000,"too many Worker invocations: an event may cause at most 1000 service calls"]`,
		},
		"other owners": {
			`async attack() {
				const out = [typeof this.env.OTHER, typeof this.ctx.exports["../other/auth"], typeof this.ctx.exports.toString, typeof this.ctx.exports.helper];
				try { Object.defineProperty(this.env.AUTH, "name", { value: "other/auth" }) } catch (e) { out.push(e.name) }
				for (const get of [() => this.env.AUTH.fetch("http://other/auth"), () => this.env.AUTH["../other/auth"](), () => Reflect.get(this.env.AUTH, "who", { name: "other/auth" })()]) {
					try { await get(); out.push("answered") } catch (e) { out.push(e.message) }
				}
				return out;
			}`,
			`["undefined","undefined","function","undefined","TypeError","fetch failed: no-worker: there is no worker acme/auth","no-worker: there is no worker acme/auth","Illegal invocation: this is not a Fetcher"]`,
		},
		"33 MiB": {
			`size(b) { return b.byteLength }
			async attack() { try { return await this.env.SELF.size(new Uint8Array(33 << 20)) } catch (e) { return [e.name, e.message] } }`,
			`["TypeError","the arguments have more than 33554432 bytes"]`,
		},
		"arguments that act": {
			`echo(v) { return v }
			async attack() {
				const out = [];
				const self = this.env.SELF;
				for (const make of [() => ({ get a() { throw new RangeError("got") } }), () => new Proxy({}, { ownKeys() { throw new RangeError("trap") } }), () => ({ get a() { self.echo(1); return 7 } })]) {
					try { out.push(await self.echo(make())) } catch (e) { out.push(e.name) }
				}
				return out;
			}`,
			`["RangeError","DataCloneError",{"a":7}]`,
		},
		"patched": {
			`echo(v) { return v }
			fails() { const e = new TypeError("no"); e.code = 1; throw e }
			async attack() {
				const seen = [];
				globalThis.patch(seen);
				const out = [await this.env.SELF.echo({ a: [1, 2] }), await this.env.SELF.fails().catch((e) => [e.message, e.code, e.remote]), await (await this.env.SELF.fetch("http://x/ok")).text()];
				return [out, seen.length];
			}`,
			`[[{"a":[1,2]},["no",1,true],"ok"],0]`,
		},
		"never answers": {
			`never() { return new Promise(() => {}) }
			async attack() { try { return await this.env.SELF.never() } catch (e) { return e.message } }`,
			`"timeout: the handler can never finish: nothing it waits for is pending"`,
		},
		"calls that nobody waits for": {
			`slow(b) { return new Promise((done) => setTimeout(done, 300, b)) }
			attack() { for (let i = 0; i < 8; i++) this.env.SELF.slow(new Uint8Array(1 << 20)).catch(() => {}); return "left" }`,
			`"left"`,
		},
	} {
		code := `import { WorkerEntrypoint } from "cloudflare:workers";
globalThis.patch = (seen) => {
	for (const [o, k] of [[Object.prototype, "0"], [Object.prototype, "3"], [Object.prototype, "name"], [Object.prototype, "value"], [Array.prototype, "0"], [Array.prototype, "1"], [Array.prototype, "3"]]) {
		Object.defineProperty(o, k, { __proto__: null, configurable: true, get() { return undefined }, set(v) { seen.push(k) } });
	}
	Array.prototype[Symbol.iterator] = function* () { seen.push("iterator") };
	globalThis.Error = globalThis.TypeError = function () { seen.push("Error") };
};
export function helper() {}
export class Named extends WorkerEntrypoint { who() { return "named" } }
export default class extends WorkerEntrypoint {
	async fetch(r) {
		if (new URL(r.url).pathname === "/ok") return new Response("ok");
		return new Response(JSON.stringify(await this.attack()));
	}
	` + test.code + `
}`
		t.Run(name, func(t *testing.T) {
			h.deploy("acme", "w", code, hostileLimits)
			require.JSONEq(t, test.want, string(h.call("acme/w").Body))
			h.isFree()
		})
	}
}

// What a called worker does to itself is an error of the caller.
func TestServiceThatBreaksItsLimits(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("other", "auth", `export default { fetch() { return new Response("fine") } }`)
	h.deploy("acme", "auth", `import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
	fetch() {}
	burn() { for (;;); }
	grow() { const a = []; for (;;) a.push(new Array(1000).fill(a.length)); }
}`, `{"limits": {"cpuMs": 300, "heapMB": 32}}`)
	h.deploy("acme", "w", `export default { async fetch(r, env) {
		const out = [];
		for (const name of ["burn", "grow"]) try { out.push(await env.AUTH[name]()) } catch (e) { out.push(e.message.split(":")[0]) }
		return Response.json(out);
	} }`, hostileLimits)
	// growth may take longer than the CPU limit
	require.Contains(t, []string{`["cpu","memory"]`, `["cpu","cpu"]`}, string(h.call("acme/w").Body))
	h.isFree()
}

// A worker with a limit of one that calls itself gets an error at once, also through another worker.
func TestServiceWithConcurrencyCallsItself(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("other", "auth", `export default { fetch() { return new Response("fine") } }`)
	h.deploy("acme", "auth", `export default { fetch(r, env) { return env.W.fetch("http://x/inner") } }`, `{"services": {"W": "w"}}`)
	h.deploy("acme", "w", `export default { async fetch(r, env) {
		if (r.url.endsWith("/inner")) return new Response("inner");
		const out = [];
		for (const s of [env.SELF, env.AUTH]) try { out.push(await (await s.fetch("http://x/inner")).text()) } catch (e) { out.push(e.message) }
		return Response.json(out);
	} }`, strings.Replace(hostileLimits, "{", `{"concurrency": 1, `, 1))
	body := string(h.call("acme/w").Body)
	require.NotContains(t, body, `"inner"`)
	require.Equal(t, 2, strings.Count(body, "has a limit of 1 events at once, and would wait for itself"), body)
	h.isFree()
}

// What a caller has given to a call is charged as long as the called event has it, also when the caller has gone.
func TestCallsThatNobodyWaitsForAreCharged(t *testing.T) {
	t.Parallel()
	h := openFleet(t, inProcess) // a cell bounds such bytes by what all its calls may have
	h.deploy("acme", "called", `import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
	async keep(b) { while (await this.env.KV.get("go") === null) await new Promise((done) => setTimeout(done, 5)); }
}`, `{"kv": {"KV": "space"}, "limits": {"cpuMs": 60000, "wallMs": 600000}}`)
	h.deploy("acme", "caller", `export default { fetch(r, env) { env.CALLED.keep(new Uint8Array(8 << 20)).catch(() => {}); return new Response("left") } }`,
		`{"services": {"CALLED": "called"}, "limits": {"cpuMs": 60000}}`)
	h.deploy("acme", "opener", `export default { async fetch(r, env) { await env.KV.put("go", "1"); return new Response("open") } }`, `{"kv": {"KV": "space"}}`)
	require.Equal(t, "left", string(h.call("acme/caller").Body))
	require.GreaterOrEqual(t, h.held(), float64(8<<20))
	require.Equal(t, "open", string(h.call("acme/opener").Body))
	require.Eventually(t, func() bool { return h.held() == 0 }, patience, 5*time.Millisecond)
}
