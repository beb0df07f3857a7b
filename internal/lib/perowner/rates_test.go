package perowner

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

// What was used beyond the limit is owed, and takes its time.
func TestRatesChargeWhatWasUsed(t *testing.T) {
	t.Parallel()
	r := Rates{PerSecond: 100, Burst: 200}
	now := time.Now()
	require.Zero(t, r.Owes("acme", now))
	r.Charge("acme", 200, now)
	require.Zero(t, r.Owes("acme", now))
	r.Charge("acme", 450, now)
	require.InDelta(t, 4.5, r.Owes("acme", now).Seconds(), 0.01)
	require.Zero(t, r.Owes("beta", now))
	require.False(t, r.Take("acme", now.Add(4*time.Second)))
	require.Zero(t, r.Owes("acme", now.Add(5*time.Second)))
}

// Owners that need not exist take a bounded room, whatever they do.
func TestRatesForgetOwners(t *testing.T) {
	t.Parallel()
	r := Rates{PerSecond: 1, Burst: 2}
	now := time.Now()
	for i := range 50_000 {
		r.Charge(fmt.Sprint("owner", i), 5, now)
		require.LessOrEqual(t, len(r.of), MostRates)
	}
}

// What was refused is counted until something is allowed again, and kept for a while although the owner has all of its
// burst again. Owners that are few are forgotten, too.
func TestRatesCountWhatTheyRefuse(t *testing.T) {
	t.Parallel()
	r := Rates{PerSecond: 10, Burst: 2}
	now := time.Now()
	for range 5 {
		r.Allow("acme", now)
	}
	r.Allow("beta", now)
	now = now.Add(sweepEvery - time.Second)
	r.Allow("acme", now)
	for range 4 {
		r.Allow("acme", now)
	}
	now = now.Add(time.Second)
	before, ok := r.Allow("acme", now)
	require.True(t, ok)
	require.Equal(t, 3, before)
	before, _ = r.Allow("acme", now)
	require.Zero(t, before)
	require.Equal(t, 1, r.Len(), "beta is forgotten")
}

// A user that asks for room has no debt forgotten.
func TestRatesHaveRoom(t *testing.T) {
	t.Parallel()
	r := Rates{PerSecond: 1, Burst: 2}
	now := time.Now()
	for i := range 100 {
		require.True(t, r.Room(fmt.Sprint("owner", i), 100, now))
		r.Charge(fmt.Sprint("owner", i), 5, now)
	}
	require.False(t, r.Room("late", 100, now))
	require.True(t, r.Room("owner1", 100, now))
	require.True(t, r.Room("late", 100, now.Add(5*time.Second)))
	require.Zero(t, r.Len())
}

// An owner that is known costs no allocation.
func TestRatesAllocateNothing(t *testing.T) {
	r, now := Rates{PerSecond: 10, Burst: 3}, time.Now()
	require.Zero(t, int(testing.AllocsPerRun(1000, func() {
		r.Take("acme", now)
		r.Allow("acme", now)
		r.Charge("acme", 1, now)
		r.Owes("acme", now)
	})))
}
