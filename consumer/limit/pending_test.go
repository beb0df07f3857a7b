package limit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Messages of one owner that wait to be stored leave room for others.
func TestPendingIsShared(t *testing.T) {
	var s Pending
	n := 0
	for s.Begin("acme") {
		n++
	}
	require.Equal(t, maxCalls/2, n)
	require.Contains(t, s.Full("acme"), "8192 calls and parts of bodies of owner acme")
	for _, owner := range []string{"b", "c", "d", "e"} {
		for range maxOwnerCalls {
			require.True(t, s.Begin(owner))
		}
	}
	require.False(t, s.Begin("beta"))
	require.Contains(t, s.Full("beta"), "too many calls")
	s.End("acme")
	require.True(t, s.Begin("beta"))
	require.False(t, s.Begin("acme"))
	s.End("beta")
	require.NotContains(t, s.of, "beta")
}
