package perowner

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func burn(d time.Duration) func() {
	return func() {
		for began := time.Now(); time.Since(began) < d; { //nolint:revive // it computes
		}
	}
}

// An owner with any amount of work has one piece under way, and another owner's begins although it waits.
func TestAnOwnerDelaysItself(t *testing.T) {
	ts := NewTurns()
	ctx, end := context.WithCancel(t.Context())
	var running, most, began atomic.Int64
	held := make(chan struct{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_ = ts.Do(ctx, "acme", func() {
				most.Store(max(most.Load(), running.Add(1)))
				began.Add(1)
				<-held
				running.Add(-1)
			})
		})
	}
	require.Eventually(t, func() bool { return began.Load() == 1 }, time.Minute, time.Millisecond)
	if runtime.GOMAXPROCS(0) > 1 {
		for range 100 {
			require.NoError(t, ts.Do(t.Context(), "beta", func() {}))
		}
	}
	end() // their clients have gone
	close(held)
	all.Wait()
	require.Equal(t, int64(1), most.Load())
	require.Less(t, began.Load(), int64(3), "work that waits ends with its client")
	require.ErrorIs(t, ts.Do(ctx, "beta", func() { t.Error("it ran") }), context.Canceled)
	for range 100 {
		require.NoError(t, ts.Do(t.Context(), "gamma", func() {}))
	}
	require.Equal(t, runtime.GOMAXPROCS(0), ts.free)
	require.Empty(t, ts.ready)
}

// An owner that has taken more than its burst waits until it has paid back, and no other does.
func TestDebts(t *testing.T) {
	ts := NewTurns()
	require.NoError(t, ts.Do(t.Context(), "acme", burn(TurnBurst+50*time.Millisecond)))
	ended := time.Now()
	ran := make(chan time.Time, 1)
	var all sync.WaitGroup
	all.Go(func() {
		_ = ts.Do(t.Context(), "acme", func() { ran <- time.Now() })
	})
	for range 100 {
		require.NoError(t, ts.Do(t.Context(), "beta", func() {}))
	}
	require.Empty(t, ran, "others ran meanwhile")
	require.GreaterOrEqual(t, (<-ran).Sub(ended), 150*time.Millisecond, "a quarter of a processor pays 50 ms back in 200 ms")
	all.Wait()
}

// Owners that have nothing to do are forgotten.
func TestOwnersAreForgotten(t *testing.T) {
	ts := NewTurns()
	for i := range 1000 {
		require.NoError(t, ts.Do(t.Context(), string(rune('a'+i)), func() {}))
	}
	require.Eventually(t, func() bool {
		_ = ts.Do(t.Context(), "last", func() {})
		return len(ts.of) < 10
	}, time.Minute, time.Microsecond)
}

// Work that need not wait costs no allocation.
func TestTurnsAllocateNothing(t *testing.T) {
	ts, ctx := NewTurns(), t.Context()
	require.Zero(t, int(testing.AllocsPerRun(2000, func() { _ = ts.Do(ctx, "acme", func() {}) })))
	require.Empty(t, ts.of, "an owner without work is forgotten")
}
