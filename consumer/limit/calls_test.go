package limit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
)

// Calls goes by the policy of now, and by the number of processes of now. What was used stays used.
func TestCallsGoByThePolicyOfNow(t *testing.T) {
	t.Parallel()
	var all catalog.Catalog
	c, now := NewCalls(&all), time.Now()
	passed := func() (n int) {
		for range 100 {
			if c.Admit("acme", 1, now) == nil {
				n++
			}
		}
		return n
	}
	require.Equal(t, 100, passed())
	require.Empty(t, c.owners)
	all.SetPolicy("acme", workers.Policy{Calls: 10})
	require.Equal(t, 10, passed())
	require.Zero(t, passed())
	all.SetPolicy("acme", workers.Policy{Calls: 20})
	require.Zero(t, passed())
	now = now.Add(time.Second)
	require.Equal(t, 20, passed())
	c.SetProcesses(4)
	now = now.Add(time.Minute)
	require.Equal(t, 5, passed())
	require.Nil(t, c.Admit("beta", 1, now))
	require.Len(t, c.owners, 1)
	all.SetPolicy("acme", workers.Policy{Weight: 2})
	require.Equal(t, 100, passed())
	require.Empty(t, c.owners)
}
