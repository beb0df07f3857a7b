package isolates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// manyFunctions makes a worker whose module has that many functions.
func manyFunctions(owner string, n int) *workers.Worker {
	w := worker("w", `export default { fetch: (r) => r ? new Response("ok") : [`+strings.Repeat("()=>0,", n)+`] }`)
	w.Owner, w.Limits = owner, workers.Limits{CPU: ample, HeapMB: 128}
	return w
}

// Functions are charged for what they take of V8's table.
func TestFunctionsAreCharged(t *testing.T) {
	const each = 100_000
	b := newBench(t, func(c *Config) { c.SpareIsolates = 0 })
	b.run(manyFunctions("acme", each), fetch("GET", "http://x/", ""))
	require.GreaterOrEqual(t, b.pool.charged(), each*b.pool.memory.charges.Function)
	require.Less(t, b.pool.Stats().HeapBytes, b.pool.charged(), "the heap is smaller")
}

// Owners whose functions would not fit have isolates closed.
func TestFunctionsCloseIsolates(t *testing.T) {
	b := openBench(t, func(p *Pool) { p.memory.charges.Function = 1024 << 20 / (20 * v8x.RuntimeFunctions) },
		func(c *Config) { c.SpareIsolates, c.HeapMB, c.OwnerHeapMB = 0, 1024, 512 })
	for i := range 40 {
		o := b.run(workerOf(fmt.Sprint("owner", i), countsCalls), fetch("GET", "http://x/", ""))
		require.Nil(t, o.end.Failure)
		require.LessOrEqual(t, b.pool.charged(), 1024<<20+v8x.RuntimeFunctions*b.pool.memory.charges.Function,
			"of one context too many")
	}
	require.LessOrEqual(t, b.pool.Stats().Contexts, 21)
	require.NotZero(t, b.pool.Stats().Evictions)
}
