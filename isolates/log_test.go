package isolates

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Output of an event in the turn in which it ends is logged. Its later output is not.
func TestLastWords(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { fetch(request, env) {
			Promise.reject(new Error("forgotten"));
			queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => { console.log("after"); env.JOBS.send("after"); setTimeout(() => console.log("never"), 1) })));
			return new Response("ok");
		} }`)
		w.Queues = map[string]string{"JOBS": "jobs"}
		for range 2 {
			o := b.run(w, fetch("GET", "http://x/", ""))
			require.Nil(t, o.end.Failure)
			require.Equal(t, "ok", string(o.reply.Body))
		}
		said := []string{"after", "uncaught: Error: forgotten", "uncaught: Error: Queue.send: the event is over"}
		require.Equal(t, slices.Concat(said, said), b.lines())
		require.Empty(t, b.sent)
	})
}

// The failure of a run is in its worker's output, whatever else the run has written.
func TestFailuresAreLogged(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { fetch(r) { console.log("x".repeat(100)); if (r.url.endsWith("throw")) throw new TypeError("no"); for (;;); } }`)
		w.Limits.LogBytes, w.Limits.CPU = 10, short.CPU
		for path, want := range map[string]string{"throw": "failed: exception: TypeError: no",
			"loop": "failed: cpu: CPU time limit of 50ms (limits.cpuMs)"} {
			o := b.run(w, fetch("GET", "http://x/"+path, ""))
			b.mu.Lock()
			last := b.logs[len(b.logs)-1]
			b.mu.Unlock()
			require.Equal(t, want, last.Text)
			require.Equal(t, o.end.Failure.Stack, last.Stack)
			require.Equal(t, "error", last.Level)
			require.NotEmpty(t, last.EventID)
		}
	})
}

// A module that throws fails its event, and the failure is logged once.
func TestLoadErrorIsToldOnce(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		for i, code := range []string{`throw new Error("at load")`, `await 1; throw new Error("at load")`} {
			o := b.run(worker("w", code), fetch("GET", "http://x/", ""))
			require.Contains(t, o.end.Failure.Message, "at load")
			require.Equal(t, slices.Repeat([]string{"failed: exception: Error: at load"}, i+1), b.lines())
		}
	})
}
