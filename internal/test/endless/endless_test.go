package endless

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShapes(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range bodies {
		require.False(t, seen[b], b)
		seen[b] = true
	}
	require.Greater(t, len(bodies), 275)
	list := All(1, 3)
	require.Len(t, list, 3*len(bodies))
	require.Equal(t, list, All(1, 3))
	require.NotEqual(t, list, All(2, 3))
	require.Equal(t, Mixed(Bytes([]byte("abcdef"))), Mixed(Bytes([]byte("abcdef"))))
	t.Logf("%d bodies", len(bodies))
}
