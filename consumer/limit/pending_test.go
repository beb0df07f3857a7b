package limit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Messages of one owner that wait to be stored leave room for others.
func TestPendingIsShared(t *testing.T) {
	var s Pending
	n := 0
	for s.Begin("acme", 100) {
		n++
	}
	require.Equal(t, maxCalls/2, n)
	require.Contains(t, s.Full("acme"), "8192 calls and parts of bodies of owner acme")
	for _, owner := range []string{"b", "c", "d", "e"} {
		for range maxOwnerCalls {
			require.True(t, s.Begin(owner, 100))
		}
	}
	require.False(t, s.Begin("beta", 100))
	require.Contains(t, s.Full("beta"), "too many calls")
	s.End("acme", 100)
	require.True(t, s.Begin("beta", 100))
	require.False(t, s.Begin("acme", 100))
	s.End("beta", 100)
	require.NotContains(t, s.of, "beta")
}

// Large messages that wait take no more memory than many small ones.
func TestPendingIsWeighed(t *testing.T) {
	var s Pending
	const large = 1 << 20
	n := 0
	for s.Begin("acme", large) {
		n++
	}
	require.Equal(t, maxCallBytes/2/large, n)
	require.Contains(t, s.Full("acme"), "32 calls and parts of bodies of owner acme, with 33554432 bytes")
	for _, owner := range []string{"b", "c", "d", "e"} {
		for range maxOwnerCallBytes / large {
			require.True(t, s.Begin(owner, large))
		}
		s.Begin(owner, large) // one more, if half of the room is free
		require.False(t, s.Begin(owner, large), "beyond its share")
	}
	require.LessOrEqual(t, s.all.bytes, maxCallBytes)
	for s.all.n > 0 {
		for owner := range s.of {
			s.End(owner, large)
		}
	}
	require.Empty(t, s.of)
	require.Zero(t, s.all)
	require.True(t, s.Begin("acme", 2*maxCallBytes), "one message of any size")
	require.False(t, s.Begin("beta", 1))
}
