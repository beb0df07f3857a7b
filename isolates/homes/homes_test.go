package homes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// The first thread that asks becomes the home, until it leaves or another takes its place.
func TestHomes(t *testing.T) {
	var s Set[int]
	r := Of(&workers.Worker{Owner: "acme", Name: "a", Version: "1"})
	require.Equal(t, 0, s.Find(r, 0), "the zero value of H is a home like any other")
	require.Equal(t, 0, s.Find(r, 2))
	s.Move(r, 1, 2)
	require.Equal(t, 0, s.Find(r, 2), "1 is not its home")
	s.Move(r, 0, 2)
	require.Equal(t, 2, s.Find(r, 0))
	s.Leave(r, 0)
	require.Equal(t, 2, s.Find(r, 0), "0 is not its home")
	s.Leave(r, 2)
	s.Move(r, 2, 5)
	require.Equal(t, 3, s.Find(r, 3), "it has none, also after Move")
}

// Versions have homes of their own, and owners share nothing.
func TestEachHome(t *testing.T) {
	var s Set[int]
	for i, w := range []*workers.Worker{
		{Owner: "acme", Name: "a", Version: "1"}, {Owner: "acme", Name: "a", Version: "2"},
		{Owner: "acme", Name: "b", Version: "1"}, {Owner: "beta", Name: "a", Version: "1"},
	} {
		require.Equal(t, i, s.Find(Of(w), i))
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
