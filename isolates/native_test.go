package isolates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// native is work of V8 that cannot be interrupted, and that ends by itself. Each takes longer than the CPU time that a
// run has left.
var native = map[string]string{
	"a string that is made flat":    `let s = ""; for (let i = 0; i < 3e6; i++) s += i & 7; return s.charCodeAt(3)`,
	"a long result":                 `return "x".repeat(8 << 20)`,
	"JSON.stringify":                `return JSON.stringify(Array(2e6).fill("some text"))`,
	"JSON.parse":                    `return JSON.parse("[" + "[1.5],".repeat(1e6) + "1]").length`,
	"structuredClone":               `return structuredClone(Array(1e6).fill("some text")).length`,
	"a sort":                        `return new Float64Array(6e6).map((_, i) => (i * 7919) % 1e6).sort()[3]`,
	"join":                          `return Array(3e6).fill("some text").join(",").length`,
	"a copy of a buffer":            `const b = new ArrayBuffer(50e6); for (let i = 0; i < 60; i++) b.slice(0); return 1`,
	"a product of large numbers":    `const n = 3n ** 1000000n; return String((n * n * n) & 255n)`,
	"a text that is encoded":        `return new TextEncoder().encode("ä".repeat(2 ** 24)).length`,
	"a text that is decoded":        `return new TextDecoder().decode(new Uint8Array(4e7).fill(65)).length`,
	"a search of an array-like":     strays + `; return 1`,
	"an expression that backtracks": `return /(a+)+b/.test("a".repeat(28))`,
	"a normal form":                 `return "ä".repeat(2 ** 22).normalize("NFD").length`,
	"an upper case":                 `return "ß".repeat(2 ** 22).toUpperCase().length`,
}

// A run whose CPU time ends in such work fails, and the message names the limit. Its thread is not lost, and runs in
// other contexts of its isolate, such as the one that called it, go on.
func TestNativeWorkLosesNoThread(t *testing.T) {
	t.Parallel()
	b := openBench(t, func(p *Pool) { p.losses.lostAfter = lostAfter })
	caller := worker("caller", `export default { fetch: () => new Promise((done) => setTimeout(() => done(new Response("went on")), 1e3)) }`)
	caller.Limits.HeapMB = 256
	for name, code := range native {
		w := worker("callee", `import { WorkerEntrypoint } from "cloudflare:workers";
			export default class extends WorkerEntrypoint { big() { `+code+` } }`)
		w.Hash, w.Limits = name, workers.Limits{CPU: workers.Millis(10 * time.Millisecond), HeapMB: 256}
		beside := b.begin(caller, fetch("GET", "http://x/", ""))
		e := fetch("POST", "http://w/", "\xff\x0fA\x00$\x00\x00")
		e.Service = &events.ServiceCall{Method: "big"}
		o := b.run(w, e)
		require.False(t, o.end.Lost, name)
		require.False(t, o.end.Interrupted, name)
		if f := o.end.Failure; f != nil && f.Reason != events.ReasonMemory {
			require.Equal(t, events.Fail(events.ReasonCPU, "CPU time limit of 10ms (limits.cpuMs)"), f, name)
			beside.wait(t, beside.ended)
			require.False(t, beside.end.Interrupted, name)
			require.Equal(t, "went on", string(beside.reply.Body), name)
		}
		beside.wait(t, beside.ended)
	}
	require.Zero(t, b.pool.losses.ranAway.Load())
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.lost)
	require.NotZero(t, b.stayed, "of some, the owner had to wait")
	require.Zero(t, b.staying)
}

// What V8 does not end within lostAfter loses its thread also if the turn went away before, and the owner waits from
// overstaysAfter on. Other owners lose nothing.
func TestEndlessNativeWorkLosesItsThread(t *testing.T) {
	t.Parallel()
	b := openBench(t, func(p *Pool) { p.losses.lostAfter = 2 * overstaysAfter })
	sleeper := of("beta", worker("sleeper", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("slept")), 1000)) }`))
	beside := b.begin(sleeper, fetch("GET", "http://x/", ""))
	w := worker("endless", `export default { fetch() { Array.prototype.indexOf.call({ length: 2 ** 40 }, 1, 2 ** 40 - 3e6) } }`)
	w.Limits = short
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	require.True(t, o.end.Lost)
	beside.wait(t, beside.ended)
	require.False(t, beside.end.Interrupted)
	require.Equal(t, "slept", string(beside.reply.Body))
	b.mu.Lock()
	require.Equal(t, []string{w.Target()}, b.lost)
	require.Equal(t, 1, b.stayed)
	require.Zero(t, b.staying)
	b.mu.Unlock()
	awaitRunaways(t, b.pool)
}

// A turn that is terminated leaves nothing to the other contexts of its isolate: no microtask and no frame.
func TestTerminatedTurnLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, before := range []string{``, `await 1;`} {
		loops := worker("loops", `const store = new AsyncLocalStorage();
			export default { fetch: () => store.run("secret", async () => {
				`+before+`
				for (let i = 0; i < 100; i++) Promise.resolve().then(() => console.log("ran in another's turn"));
				for (;;); }) }`)
		loops.Limits = short
		w := worker("next", `export default { async fetch() {
				const store = new AsyncLocalStorage();
				return new Response([store.getStore(), await store.run("mine", async () => { await 1; return store.getStore() }), store.getStore()].join())
			} }`)
		require.Equal(t, ",mine,", string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
		made := b.pool.memory.live.Load()
		require.Equal(t, events.ReasonCPU, b.run(loops, fetch("GET", "http://x/", "")).end.Failure.Reason)
		require.Equal(t, ",mine,", string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
		require.Equal(t, made, b.pool.memory.live.Load(), "it is the same isolate")
	}
	for _, line := range b.lines() {
		require.NotContains(t, line, "another's turn")
	}
}
