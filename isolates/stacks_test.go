package isolates

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/isolates/stacks"
)

// mapped is a worker with a source map: line n of the bundle is line n of w.ts.
func mapped(code string) *workers.Worker {
	w := worker("w", code)
	w.SourceMap = []byte(`{"version":3,"sources":["w.ts"],"names":[],"mappings":"AAAA` + strings.Repeat(";AACA", 10_000) + `"}`)
	return w
}

// Stacks that a handler reports are mapped at its own expense, and no more of them than its output may have.
func TestReportedStacksAreCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const code = `const e = new Error("x");
		export default { task() { %s; for (let i = 0; i < 20000; i++) reportError(e) } }`
	for what, more := range map[string]string{
		"many": ``, "long": `e.stack = "Error: x\n" + "    at f (bundle:w.js:1:1)\n".repeat(20000)`, "one line": `e.stack = "at (bundle:w.js:1:1) ".repeat(50000)`,
	} {
		w := mapped(fmt.Sprintf(code, more))
		w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Second), LogBytes: 1 << 20}
		o := b.run(w, task("null"))
		total := 0
		for _, l := range b.logs {
			require.LessOrEqual(t, len(l.Stack), stacks.MaxRaw)
			total += len(l.Stack)
		}
		require.Less(t, total, 2<<20, what)
		require.Positive(t, o.end.CPU)
		b.mu.Lock()
		b.logs = nil
		b.mu.Unlock()
	}
}

// What the commands of a turn take in Go is the run's CPU time, and beyond its limit it ends.
func TestCommandsAreCharged(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread() // CPU time is a thread's
	defer runtime.UnlockOSThread()
	b := newBench(t)
	p := b.pool
	th := newThread(p, 0)
	r := &run{thread: th, attempt: &lifecycle.Attempt{Worker: mapped("")}, limits: workers.DefaultLimits,
		cpuLeft: time.Second, begun: true}
	began := perowner.ThreadTime()
	r.author("Error: x\n    at f (bundle:w.js:1:1)\n")
	require.Positive(t, th.aside, "a source map was parsed")
	require.LessOrEqual(t, th.aside, perowner.ThreadTime()-began)
	r.charge(400 * time.Millisecond)
	require.Equal(t, 400*time.Millisecond, r.cpu)
	require.False(t, r.over)
	r.attempt.Event = task("null")
	r.charge(700 * time.Millisecond)
	require.True(t, r.over)
	require.Equal(t, events.ReasonCPU, r.end.Failure.Reason)
	require.Equal(t, 1100*time.Millisecond, r.end.CPU)
}

// A stack has the author's lines wherever it can be read: in error.stack, in a reply, in the output and in a failure.
// An error that the runtime makes when a call is over has the line of the call.
func TestStacksHaveTheAuthorsLines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for what, code := range map[string]string{
		"thrown":              `throw new Error("x")`,
		"of a class":          `throw new (class PaymentError extends Error {})("x")`,
		"by the runtime":      `new URL("x")`,
		"by V8 for it":        `await new Response("{").json()`,
		"DOMException":        `structuredClone(() => {})`,
		"fetch":               `await fetch("http://127.0.0.1:1/")`,
		"fetch of a request":  `await fetch(new Request("http://127.0.0.1:1/", { method: "POST", body: "x" }))`,
		"aborted":             `await fetch("http://127.0.0.1:1/", { signal: AbortSignal.timeout(0) })`,
		"signal":              `await new Promise((_, no) => { const s = AbortSignal.timeout(1); s.onabort = () => no(s.reason) })`,
		"crypto":              `await crypto.subtle.importKey("pkcs8", new Uint8Array(10), { name: "RSA-PSS", hash: "SHA-1" }, true, ["sign"])`,
		"stream":              `await new Response(new Blob(["x".repeat(20)]).stream().pipeThrough(new DecompressionStream("gzip"))).text()`,
		"captureStackTrace":   `const e = new Error("x"); Error.captureStackTrace(e); throw e`,
		"callbacks of timers": `await new Promise((_, no) => setTimeout(() => no(new Error("x")), 1))`,
		"of a microtask":      `await new Promise((_, no) => queueMicrotask(() => no(new Error("x"))))`,
	} {
		// The code is in line 3, and what calls it in line 6.
		source := "async function under(test) {\n  const at = 1;\n  " + code + ";\n}\nconst call = async () => {\n  await under();\n};\n" +
			"export default { async fetch(r) { try { await call() } catch (e) { console.error(e); return new Response(e.stack) } },\n" +
			"  async task() { await call() } }"
		w := mapped(source)
		lines := func(stack string) {
			t.Helper()
			require.Regexp(t, `\n    at [^\n]*w\.ts:3:\d+`, stack, what)
			require.NotRegexp(t, `pinwheel:|bundle:|w\.js`, stack, what)
		}
		o := b.run(w, fetch("GET", "http://w/", ""))
		lines(string(o.reply.Body))
		lines(b.logs[len(b.logs)-1].Text)
		o = b.run(w, task("null"))
		lines(o.end.Failure.Stack)
	}
}

// Error.prepareStackTrace is the author's to replace, and has no more than its arguments: whoever calls it.
func TestPrepareStackTrace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.run(mapped(`export default { fetch() {
		const own = Error.prepareStackTrace, out = [];
		Error.prepareStackTrace = (e, sites) => sites.length + " sites of " + e.message;
		out.push(new Error("x").stack);
		Error.prepareStackTrace = own;
		for (const sites of [null, {}, [{}], [{ toString() { return "bundle:w.js:1:1" } }]]) {
			try { out.push(own(new Error("x"), sites)) } catch (e) { out.push(e.name) }
		}
		Error.prepareStackTrace = undefined;
		out.push(new Error("y").stack.split("\n")[0]);
		return new Response(out.join("; "));
	} }`), fetch("GET", "http://w/", ""))
	require.Regexp(t, `^\d+ sites of x; TypeError; Error: x; TypeError; TypeError; Error: y$`, string(o.reply.Body))
}
