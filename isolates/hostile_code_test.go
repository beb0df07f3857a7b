//go:build hostile

package isolates

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Owners whose code would fill V8's range for it have isolates closed or runs ended, and nobody loses a thread.
func TestHostileCode(t *testing.T) {
	b := newBench(t, func(c *Config) { c.SpareIsolates = 0 })
	greedy := func(owner int) *workers.Worker {
		w := worker("w", `const keep = []; export default { fetch() {
			for (let n = 0; n < 60; n++) {
				const parts = []; for (let k = 0; k < 900; k++) parts.push("w" + n + "x" + k + "[a-f]+q");
				const x = new RegExp(parts.join("|")); for (let j = 0; j < 4; j++) x.test("zzzz" + j); keep.push(x);
			}
			return new Response("kept") } }`)
		w.Owner, w.Limits = fmt.Sprint("greedy", owner), workers.Limits{CPU: ample, HeapMB: 128}
		return w
	}
	victim := worker("victim", `export default { fetch: () => { const x = new RegExp("ab+c" + Math.random());
		for (let i = 0; i < 10; i++) x.test("abbbc" + i); return new Response("ok") } }`)
	for i := range 10 {
		w := greedy(i)
		for range 3 {
			if o := b.run(w, fetch("GET", "http://x/", "")); o.end.Failure != nil {
				require.Equal(t, events.ReasonMemory, o.end.Failure.Reason)
				require.Regexp(t, `^(heap limit of 128 MB \(limits.heapMB\)|the process has no room for more machine code \(\d+ MB\), of which this isolate has [1-9]\d* MB)$`, o.end.Failure.Message)
			}
		}
		require.Nil(t, b.run(victim, fetch("GET", "http://x/", "")).end.Failure)
		require.Zero(t, b.pool.Stats().Parked)
	}
	require.NotZero(t, b.pool.Stats().Evictions)
}
