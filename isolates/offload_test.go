package isolates

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
)

// derive is a worker that derives a key with the number of iterations in its payload.
const derive = `
const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
const bits = (iterations) => crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: new Uint8Array(8), iterations }, key, 256);
export default { async task({ payload }, env, ctx) {
	const { iterations, times = 1, leave = false } = payload;
	if (leave) { bits(iterations); return "left"; }
	const all = await Promise.allSettled(Array.from({ length: times }, () => bits(iterations)));
	return all.map((x) => x.status === "fulfilled" ? x.value.byteLength : x.reason.name + ": " + x.reason.message);
} };`

func deriver(cpu, wall time.Duration) *workers.Worker {
	w := worker("derive", derive)
	w.Limits = workers.Limits{CPU: workers.Millis(cpu), Wall: workers.Millis(wall)}
	return w
}

func results(t *testing.T, o *outcome) []any {
	t.Helper()
	require.Nil(t, o.end.Failure)
	var doc struct{ Data []any }
	require.NoError(t, json.Unmarshal(o.reply.Body, &doc))
	return doc.Data
}

func TestLongOperationsAreChargedToTheirEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := deriver(20*time.Second, 25*time.Second)
	b.run(w, task(`{"iterations":1}`))
	few := b.run(w, task(`{"iterations":100}`)).end.CPU
	o := b.run(w, task(`{"iterations":200000}`))
	require.Equal(t, []any{32.0}, results(t, o))
	require.Greater(t, o.end.CPU, few+10*time.Millisecond, "200 000 rounds of SHA-256 cannot be had for less")
}

// halfOf20Million estimates the CPU time of 10 million iterations here, from that of a fiftieth.
func halfOf20Million(t *testing.T, b *bench) time.Duration {
	t.Helper()
	o := b.run(deriver(20*time.Second, 25*time.Second), task(`{"iterations":200000}`))
	require.Nil(t, o.end.Failure)
	return 50 * o.end.CPU
}

func TestLongOperationsEndWithTheCPUTimeOfTheirEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	half := halfOf20Million(t, b)
	o := b.run(deriver(30*time.Millisecond, 25*time.Second), task(`{"iterations":20000000}`))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	require.Less(t, o.end.CPU, half, "it ended in the middle")
}

func TestLongOperationsDieWithTheirEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := deriver(20*time.Second, 25*time.Second)
	half := halfOf20Million(t, b)
	o := b.run(w, task(`{"iterations":20000000,"leave":true}`))
	require.Nil(t, o.end.Failure)
	require.Less(t, o.end.CPU, half, "it ended in the middle")
	// The pool's worker goroutine is free again at once, and so is the context.
	o = b.run(w, task(`{"iterations":5000}`))
	require.Equal(t, []any{32.0}, results(t, o))
	o = b.run(deriver(20*time.Second, 100*time.Millisecond), task(`{"iterations":20000000}`))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonTimeout, o.end.Failure.Reason)
}

func TestTooManyLongOperationsAtOnceAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.run(deriver(20*time.Second, 25*time.Second),
		task(fmt.Sprintf(`{"iterations":100,"times":%d}`, hostcalls.MaxOffloads+5)))
	list := results(t, o)
	require.Len(t, list, hostcalls.MaxOffloads+5)
	for i, x := range list {
		if i < hostcalls.MaxOffloads {
			require.Equal(t, 32.0, x, i)
		} else {
			require.Contains(t, x, "OperationError: too much at once")
		}
	}
	o = b.run(deriver(20*time.Second, 25*time.Second), task(`{"iterations":4294967295}`))
	require.Contains(t, results(t, o)[0], "OperationError: PBKDF2 with 4294967295 iterations")
}

func TestNothingIsHeldWhenAllIsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("holds", `export default { async task() {
		const open = [];
		for (const format of ["gzip", "deflate"]) for (const Class of [CompressionStream, DecompressionStream]) {
			const s = new Class(format);
			s.writable.getWriter().write(new Uint8Array([0x78])).catch(() => {});
			open.push(s.readable.getReader().read());
		}
		await Promise.race(open);
		for (let i = 0; i < 10; i++) crypto.subtle.digest("SHA-256", new Uint8Array(1 << 18));
		return "left";
	} }`)
	for range 20 {
		require.Nil(t, b.run(w, task("{}")).end.Failure)
	}
	require.Eventually(t, func() bool {
		return b.pool.holdings.Total() == 0 && b.pool.calls.Offload.Idle()
	}, patience, time.Millisecond)
}

func TestKeysThatTheEventCannotAffordAreNotBegun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("keys", `export default { async task() {
		const alg = { name: "RSA-PSS", modulusLength: 4096, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
		try { await crypto.subtle.generateKey(alg, false, ["sign"]); return "made"; } catch (e) { return e.name + ": " + e.message; }
	} }`)
	w.Limits = short
	o := b.run(w, task("{}"))
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "OperationError: the operation takes 400ms")
}

func TestLongOperationsInAPersistentContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := deriver(20*time.Second, 25*time.Second)
	w.Mode = workers.Persistent
	var list []*outcome
	for range 3 {
		list = append(list, b.start(w, task(`{"iterations":20000,"times":3}`)))
	}
	short := b.start(w, task(`{"iterations":20000000,"leave":true}`))
	for _, o := range list {
		o.wait(t, o.ended)
		require.Equal(t, []any{32.0, 32.0, 32.0}, results(t, o))
		require.Greater(t, o.end.CPU, time.Millisecond)
	}
	short.wait(t, short.ended)
	require.Nil(t, short.end.Failure)
}

// BenchmarkSubtle measures the cost of one awaited operation of crypto.subtle inside a handler.
func BenchmarkSubtle(bm *testing.B) {
	for _, c := range []struct{ name, setup, body string }{
		{"digest/32", "const d = new Uint8Array(32)", `crypto.subtle.digest("SHA-256", d)`},
		{"digest/1K", "const d = new Uint8Array(1024)", `crypto.subtle.digest("SHA-256", d)`},
		{"digest/32K", "const d = new Uint8Array(32768)", `crypto.subtle.digest("SHA-256", d)`},
		{"hmac/64", `const d = new Uint8Array(64), k = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"])`,
			`crypto.subtle.sign("HMAC", k, d)`},
		{"gcm/64", `const d = new Uint8Array(64), k = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt"]), iv = new Uint8Array(12)`,
			`crypto.subtle.encrypt({ name: "AES-GCM", iv }, k, d)`},
		{"ecdsa/64", `const d = new Uint8Array(64), k = (await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"])).privateKey`,
			`crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, k, d)`},
		// Handed over to the pool: the cost beyond the work itself is the way there and back.
		{"digest/129K", "const d = new Uint8Array(131073)", `crypto.subtle.digest("SHA-256", d)`},
	} {
		bm.Run(c.name, func(bm *testing.B) {
			b := newBench(bm)
			w := worker("bench", c.setup+";\nexport default { async task({ payload }) { for (let i = 0; i < payload; i++) await "+c.body+"; } }")
			w.Limits = workers.Limits{CPU: workers.Millis(5 * time.Minute), Wall: workers.Millis(5 * time.Minute)}
			b.run(w, task("1"))
			bm.ResetTimer()
			if o := b.run(w, task(fmt.Sprint(bm.N))); o.end.Failure != nil {
				bm.Fatal(o.end.Failure)
			}
		})
	}
}

// It is a test of isolates/offload. It is here because that package links V8, and a test binary more would too.
func TestPoolTakesOwnersInTurn(t *testing.T) {
	t.Parallel()
	p := offload.NewPool(1)
	var order []string
	gate := make(chan struct{})
	p.Submit("a", func() { <-gate })
	for i := range 3 {
		p.Submit("a", func() { order = append(order, fmt.Sprint("a", i)) })
	}
	for i := range 2 {
		p.Submit("b", func() { order = append(order, fmt.Sprint("b", i)) })
	}
	p.Submit("c", func() { order = append(order, "c0") })
	require.False(t, p.Idle())
	close(gate)
	p.Wait()
	require.Equal(t, []string{"a0", "b0", "c0", "a1", "b1", "a2"}, order)
	require.True(t, p.Idle())
	ran := false
	p.Submit("d", func() { ran = true })
	p.Wait()
	require.True(t, ran)
	require.True(t, p.Idle())
}
