package charges

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a closed context had counts until V8 has collected it.
func TestFunctionsOfClosedContexts(t *testing.T) {
	var f Functions
	f.Opened(5)
	f.Opened(7)
	f.Dropped(5)
	require.EqualValues(t, 12, f.Count())
	f.Collected(1)
	require.EqualValues(t, 12, f.Count(), "V8 may have begun before the context was closed")
	f.Collected(2)
	require.EqualValues(t, 7, f.Count())
	f.Dropped(7)
	f.Collected(4)
	require.Zero(t, f.Count())
}

// An isolate is charged for the most of the three, each as a part of what a process may have of it.
func TestRates(t *testing.T) {
	r := For(1024)
	require.EqualValues(t, 5<<20, r.Of(5<<20, 1, 1))
	require.EqualValues(t, 1000*r.Function, r.Of(0, 1000, 0))
	require.EqualValues(t, 7*r.CodeKB, r.Of(0, 0, 7<<10))
	require.InDelta(t, 1024<<20, r.Of(0, mostFunctions, 0), 1024<<20/100, "all functions cost all heaps")
	require.InDelta(t, 1024<<20, r.Of(0, 0, mostCode), 1024<<20/100)
	tiny := For(0)
	require.Positive(t, tiny.Function, "a function is never free")
	require.Positive(t, tiny.CodeKB)
}
