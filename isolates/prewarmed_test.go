package isolates

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/prewarm"
)

const hello = `export default { task: () => "hello" }`

// prewarmedReady waits until n isolates are ready.
func prewarmedReady(b *bench, n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.pool.Stats().Prewarmed.Ready == n }, patience, time.Millisecond)
}

func TestSparesAreTakenAndMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.SpareIsolates = 3 })
	for i := range 10 {
		prewarmedReady(b, 3)
		o := b.run(owned(fmt.Sprint("owner", i), hello), task("{}"))
		require.Nil(t, o.end.Failure)
		require.JSONEq(t, `{"success":true,"data":"hello"}`, string(o.reply.Body))
	}
	prewarmedReady(b, 3)
	require.Equal(t, prewarm.Stats{Ready: 3, Used: 10}, b.pool.Stats().Prewarmed)
	// Further contexts of an owner are made in its isolate.
	second := owned("owner1", hello)
	second.Name = "second"
	b.run(second, task("{}"))
	require.EqualValues(t, 10, b.pool.Stats().Prewarmed.Used)
	b.close()
	require.Zero(t, b.pool.Stats().Prewarmed.Ready)
}

func TestSparesServeEveryLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, mb := range []int{8, 64, 128, 200} {
		prewarmedReady(b, 2)
		w := owned(fmt.Sprint("owner", mb), `export default { task({ payload }) {
			const kept = [];
			for (let i = 0; i < payload.mb * 8; i++) kept.push(new Array(16 << 10).fill(i + 0.5)); // 128 KB
			return kept.length;
		} }`)
		w.Limits = workers.Limits{HeapMB: mb, CPU: workers.Millis(20 * time.Second)}
		fits := b.run(w, task(fmt.Sprintf(`{"mb":%d}`, mb/2)))
		require.Nil(t, fits.end.Failure, "half of %d MB", mb)
		tooMuch := b.run(w, task(fmt.Sprintf(`{"mb":%d}`, mb+2)))
		require.Equal(t, events.ReasonMemory, tooMuch.end.Failure.Reason)
		require.Equal(t, fmt.Sprintf("heap limit of %d MB (limits.heapMB)", mb), tooMuch.end.Failure.Message)
	}
	require.Equal(t, uint64(4), b.pool.Stats().Prewarmed.Used)
}

// The content of a prewarmed isolate does not outlast its owner: each one is used only once.
func TestSparesAreUsedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 5 {
		prewarmedReady(b, 2)
		o := b.run(owned(fmt.Sprint("owner", i), `globalThis.seen = (globalThis.seen ?? 0) + 1; Array.prototype.seen = true;
			export default { task: () => seen }`), task("{}"))
		require.JSONEq(t, `{"success":true,"data":1}`, string(o.reply.Body))
	}
}

func TestSparesStayWithinMaxIsolates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ threads, most, spare, each int }{
		{1, 1, 0, 1}, {2, 2, 0, 1}, {1, 5, 1, 4}, {1, 10, 2, 8}, {2, 500, 2, 249},
	} {
		cfg := DefaultConfig(tc.threads)
		cfg.MaxIsolates = tc.most
		require.NoError(t, cfg.Validate())
		require.Equal(t, tc.spare, cfg.prewarmed(), "%v", tc)
		b := newBench(t, func(c *Config) { *c = cfg })
		require.Equal(t, tc.most, b.pool.Stats().Total, "%v", tc)
		require.Equal(t, tc.each, b.pool.Stats().Threads[0].Total, "%v", tc)
	}
	b := newBench(t, func(c *Config) { c.MaxIsolates = 9 })
	for i := range 20 {
		prewarmedReady(b, 2)
		b.run(owned(fmt.Sprint("owner", i), hello), task("{}"))
	}
	require.EqualValues(t, 20-7, b.pool.Stats().Evictions)
}

func TestNoSpares(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.SpareIsolates = 0 })
	b.run(owned("acme", hello), task("{}"))
	require.Equal(t, prewarm.Stats{Missed: 1}, b.pool.Stats().Prewarmed)
}
