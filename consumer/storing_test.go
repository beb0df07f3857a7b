package consumer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What one owner has waiting to be stored leaves room for others.
func TestStoringIsShared(t *testing.T) {
	var s storing
	n := 0
	for s.begin("acme") {
		n++
	}
	require.Equal(t, maxCalls/2, n)
	require.Contains(t, s.full("acme"), "8192 calls and parts of bodies of owner acme")
	for _, owner := range []string{"b", "c", "d", "e"} {
		for range maxOwnerCalls {
			require.True(t, s.begin(owner))
		}
	}
	require.False(t, s.begin("beta"))
	require.Contains(t, s.full("beta"), "too many calls")
	s.end("acme")
	require.True(t, s.begin("beta"))
	require.False(t, s.begin("acme"))
	s.end("beta")
	require.NotContains(t, s.of, "beta")
}
