package isolates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func TestImportInALoopIsLimited(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{
		"awaited":     `for (;;) await import("x").catch(() => {})`,
		"not awaited": `for (;;) import("x")`,
		"recursive":   `const again = () => import("x").catch(again); await again()`,
		"long names":  `for (let name = "x";; name += name) await import(name).catch(() => {})`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := worker("w", `export default { async task() { `+loop+` } }`)
			w.Limits = workers.Limits{CPU: workers.Millis(200 * time.Millisecond), HeapMB: 32}
			f := b.run(w, task("{}")).end.Failure
			require.NotNil(t, f)
			require.Contains(t, []events.Reason{events.ReasonCPU, events.ReasonMemory, events.ReasonException}, f.Reason, "%v",
				f)
			require.Equal(t, "hello", b.task(hello, "{}")["data"]) // the thread continues
			require.Zero(t, b.pool.Stats().Parked)
		})
	}
}

// Code that an event left behind imports while the next one runs, and no code catches the error.
func TestImportOfAFinishedEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `
		let go;
		const late = new Promise((done) => { go = done }).then(() => import("./late.js"));
		export default { task({ payload }) {
			if (payload.first) { late.catch((e) => { globalThis.said = String(e) }); return "first" }
			go();
			return new Promise((done) => setTimeout(() => done(globalThis.said), 1));
		} }`)
	require.JSONEq(t, `{"success":true,"data":"first"}`, string(b.run(w, task(`{"first":true}`)).reply.Body))
	o := b.run(w, task(`{}`))
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `{"success":true,"data":"TypeError: cannot import \"./late.js\": imports are bundled at deploy"}`, string(o.reply.Body))
}

func TestImportThatNobodyCatches(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.run(worker("w", `export default { async task() {
		import("./" + "x.js");
		await new Promise((done) => setTimeout(done, 1));
	} }`), task("{}"))
	require.Nil(t, o.end.Failure)
	require.Contains(t, b.lines()[0], `TypeError: cannot import "./x.js": imports are bundled at deploy`)
}

// At deploy such an import is an error of the worker, not of the fleet.
func TestImportAtTheTopLevel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.run(worker("w", `await import("x")`), task("{}")).end.Failure
	require.Equal(t, events.ReasonException, f.Reason)
	require.Equal(t, `TypeError: cannot import "x": imports are bundled at deploy`, f.Message)
}
