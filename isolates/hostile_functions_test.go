//go:build hostile

package isolates

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Owners whose modules would fill V8's table have isolates closed, and nobody loses a thread.
func TestHostileFunctions(t *testing.T) {
	const each = 700_000
	b := newBench(t, func(c *Config) { c.SpareIsolates = 0 })
	for i := range v8x.MaxFunctions/each + 2 {
		o := b.run(manyFunctions(fmt.Sprint("greedy", i), each), fetch("GET", "http://x/", ""))
		require.Nil(t, o.end.Failure, "worker %d", i)
	}
	o := b.run(worker("victim", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure)
	require.NotZero(t, b.pool.Stats().Evictions)
}
