package consumer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What one owner uses is its own, and who has used nothing lately is forgotten.
func TestRates(t *testing.T) {
	r := rates{perSecond: 10, burst: 3}
	now := time.Now()
	for range 3 {
		require.True(t, r.take("acme", now))
	}
	require.False(t, r.take("acme", now))
	require.True(t, r.take("beta", now))
	require.True(t, r.take("acme", now.Add(100*time.Millisecond)))
	require.False(t, r.take("acme", now.Add(100*time.Millisecond)))
	for i := range 100_000 {
		at := now.Add(time.Duration(i) * time.Millisecond)
		require.True(t, r.take(fmt.Sprint("owner", i), at))
		require.LessOrEqual(t, len(r.of), 2*keptRates)
	}
}
