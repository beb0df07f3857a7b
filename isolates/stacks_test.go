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

// mapped is a worker with a source map of some lines.
func mapped(code string) *workers.Worker {
	w := worker("w", code)
	w.SourceMap = []byte(`{"version":3,"sources":["w.ts"],"names":[],"mappings":"` + strings.Repeat("AAAA;AACA;", 5000) + `"}`)
	return w
}

// Stacks that a handler reports are mapped at its own expense, and no more of them than its output may have.
func TestReportedStacksAreCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const code = `const e = new Error("x");
		export default { task() { %s; for (let i = 0; i < 20000; i++) reportError(e) } }`
	for what, more := range map[string]string{
		"many": ``, "long": `e.stack = "Error: x\n" + "    at f (w.js:1:1)\n".repeat(20000)`, "one line": `e.stack = "at (w.js:1:1) ".repeat(50000)`,
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
	r.author("Error: x\n    at f (w.js:1:1)\n")
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
