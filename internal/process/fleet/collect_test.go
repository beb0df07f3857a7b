package fleet

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// While events hold much of Go's memory the collector has a limit. Afterwards it has none.
func TestCollectMore(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	collectMore(heldMuch)
	require.GreaterOrEqual(t, debug.SetMemoryLimit(-1), int64(headroom+2*heldMuch))
	require.Less(t, debug.SetMemoryLimit(-1), int64(math.MaxInt64))
	collectMore(heldMuch - 1)
	require.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(-1))
	t.Setenv("GOMEMLIMIT", "1GiB")
	collectMore(heldMuch)
	require.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(-1), "what an operator says stands")
}
