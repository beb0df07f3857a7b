package limit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each owner has its own limit, and an owner that has used nothing recently is forgotten.
func TestRates(t *testing.T) {
	r := Rates{PerSecond: 10, Burst: 3}
	now := time.Now()
	for range 3 {
		require.True(t, r.Take("acme", now))
	}
	require.False(t, r.Take("acme", now))
	require.True(t, r.Take("beta", now))
	require.True(t, r.Take("acme", now.Add(100*time.Millisecond)))
	require.False(t, r.Take("acme", now.Add(100*time.Millisecond)))
	for i := range 100_000 {
		at := now.Add(time.Duration(i) * time.Millisecond)
		require.True(t, r.Take(fmt.Sprint("owner", i), at))
		require.LessOrEqual(t, len(r.of), 2*keptRates)
	}
}
