package affinity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// The first thread that asks is assigned, until it is unassigned or another takes its place.
func TestThreads(t *testing.T) {
	var s Threads[int]
	r := Of(&workers.Worker{Owner: "acme", Name: "a", Version: "1"})
	require.Equal(t, 0, s.Assign(r, 0), "the zero value of T is a thread like any other")
	require.Equal(t, 0, s.Assign(r, 2))
	s.Reassign(r, 1, 2)
	require.Equal(t, 0, s.Assign(r, 2), "it is not at 1")
	s.Reassign(r, 0, 2)
	require.Equal(t, 2, s.Assign(r, 0))
	s.Unassign(r, 0)
	require.Equal(t, 2, s.Assign(r, 0), "it is not at 0")
	s.Unassign(r, 2)
	s.Reassign(r, 2, 5)
	require.Equal(t, 3, s.Assign(r, 3), "it has none, also after Move")
}

// Versions have threads of their own, and owners share nothing.
func TestEachThread(t *testing.T) {
	var s Threads[int]
	for i, w := range []*workers.Worker{
		{Owner: "acme", Name: "a", Version: "1"}, {Owner: "acme", Name: "a", Version: "2"},
		{Owner: "acme", Name: "b", Version: "1"}, {Owner: "beta", Name: "a", Version: "1"},
	} {
		require.Equal(t, i, s.Assign(Of(w), i))
	}
	of := func(owner, name string) (list []int) {
		s.Each(owner, name, func(_ Release, h int) { list = append(list, h) })
		return list
	}
	require.ElementsMatch(t, []int{0, 1}, of("acme", "a"))
	require.ElementsMatch(t, []int{0, 1, 2}, of("acme", ""))
	require.ElementsMatch(t, []int{3}, of("beta", "a"))
	require.Empty(t, of("gamma", ""))
}
