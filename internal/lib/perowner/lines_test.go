package perowner

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Owners take turns, and the items of each stay in order. An owner without items is forgotten.
func TestLinesTakeOwnersInTurn(t *testing.T) {
	t.Parallel()
	var l Lines[string]
	_, ok := l.Pop()
	require.False(t, ok)
	for _, item := range []string{"a0", "a1", "a2", "b0", "c0", "c1"} {
		l.Push(item[:1], item)
	}
	require.Equal(t, 3, l.Owners())
	require.Equal(t, 2, l.Waiting("c"))
	taken := []string{}
	for item, ok := l.Pop(); ok; item, ok = l.Pop() {
		if taken = append(taken, item); item == "b0" {
			l.Push("b", "b1") // it was the only one of its owner
		}
	}
	require.Equal(t, []string{"a0", "b0", "c0", "a1", "b1", "c1", "a2"}, taken)
	require.Zero(t, l.Owners())
	require.Zero(t, l.Waiting("a"))
}
