package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// placed is a placer with owners that have one event each, without a dispatcher.
func placed(cfg Config, warm ...threadSet) (*placer, *pool, []*owner) {
	cfg = cfg.OrDefault()
	b := newBacklog(cfg)
	p := newPlacer(cfg, &b)
	var owners []*owner
	for i, set := range warm {
		o := modelOwner(i, set)
		o.counted = 1
		o.pool = b.pools.pool(0)
		o.pool.queues[light].enter(o)
		o.pool.runnable[light]++
		owners = append(owners, o)
	}
	return &p, b.pools.pool(0), owners
}

// A thread serves the owner that is warm on it. An owner that is warm on a thread that sleeps is left to that one.
func TestPlacerPicksWarmOwners(t *testing.T) {
	now := time.Now()
	p, in, owners := placed(Config{Threads: 2}, 0b10, 0b01)
	require.Same(t, owners[1], p.pick(in, 0, now))
	require.Same(t, owners[0], p.pick(in, 1, now))

	p, in, owners = placed(Config{Threads: 2}, 0b10)
	require.Same(t, owners[0], p.pick(in, 0, now.Add(time.Hour)), "thread 1 works, and nobody knows for how long")
	in.idle.sleep(1, &p.b.pools.rest, now)
	require.Nil(t, p.pick(in, 0, now))
}

// The thread is woken on which the next owner is warm, and no other one for that owner.
func TestPlacerWakesWarmThreads(t *testing.T) {
	now := time.Now()
	p, in, _ := placed(Config{Threads: 4}, 0b100)
	for thread := range 4 {
		in.idle.sleep(thread, &p.b.pools.rest, now)
	}
	require.Equal(t, threadSet(0b100), p.wake(in, in.runnable, in.runnable, now))
	require.Zero(t, p.wake(in, in.runnable, in.runnable, now), "it is waking")
	require.False(t, p.othersWait(nil, in, 0, in.runnable, now))

	p, in, _ = placed(Config{Threads: 1}, 0)
	require.True(t, p.othersWait(nil, in, 0, in.runnable, now), "no thread sleeps")
}

// Owners beyond their share run on background threads, and on pinned threads that are not kept for the others.
func TestPlacerKeepsThreadsForLightOwners(t *testing.T) {
	p, in, owners := placed(Config{Threads: 2, Background: 1}, 0)
	require.Equal(t, [classes]threadSet{light: 0b011, heavy: 0b110}, p.of)
	p.b.pools.move(owners[0], in, heavy)
	require.Nil(t, p.pick(in, 0, time.Now()))
	require.Same(t, owners[0], p.pick(in, 2, time.Now()))
}
