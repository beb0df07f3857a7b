package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// holder is a dispatcher that holds its events until they are released.
type holder struct {
	mu     sync.Mutex
	events []*lifecycle.Delivery
}

func (h *holder) Submit(batch []*lifecycle.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, batch...)
}

func (h *holder) Through(string, uint64) bool { return true }

func (h *holder) Cancel([]*lifecycle.Delivery, bool) []*lifecycle.Delivery { return nil }

func (h *holder) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.events)
}

// release acks the events that are held, and returns how many.
func (h *holder) release(c *Consumer) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		c.Settle([]lifecycle.Settlement{{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Ack}}})
		n++
	}
	h.events = nil
	return n
}

// Confirmations of acks are awaited while the window is full or a lane is held back, and only then.
func TestConfirmationsAreAwaitedWhenThereIsNoRoom(t *testing.T) {
	t.Parallel()
	const patience = time.Minute
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	cfg := DefaultConfig()
	cfg.Node, cfg.Heartbeat, cfg.MaxBytes, cfg.Window = "test", 200*time.Millisecond, 64<<20, 32
	h := &holder{}
	c, err := New(cfg, nc, h, zerolog.Nop(), nil)
	require.NoError(t, err)
	pull, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(pull, t.Context()) }()
	require.Eventually(t, func() bool { return c.Ready() == nil && !c.puller.demand.waits() }, patience, time.Millisecond)
	require.Nil(t, c.settler.acks.awaited())

	const all = 100
	for range all {
		_, err := js.Publish(t.Context(), events.Subjects(events.DefaultPrefix).Event(events.Task, "acme", "w"), nil)
		require.NoError(t, err)
	}
	ended := 0
	full := func() bool { return c.inflight.taken()+int(c.puller.credits.Load()) == cfg.Window }
	require.Eventually(t, func() bool { return h.len() > 0 && full() && c.puller.demand.waits() }, patience,
		time.Millisecond)
	require.NotNil(t, c.settler.acks.awaited())
	require.Eventually(t, func() bool { ended += h.release(c); return ended == all }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return c.inflight.len() == 0 && !full() && !c.puller.demand.waits() }, patience,
		time.Millisecond)
	require.Nil(t, c.settler.acks.awaited())

	stop()
	require.NoError(t, <-ran)
	require.True(t, c.puller.demand.waits(), "a process that ends waits for all")
}

// An event that leaves wakes the puller only if a lane wants more than it was granted.
func TestEventsThatLeaveWakeAPullerThatWaits(t *testing.T) {
	t.Parallel()
	d := demand{wake: make(chan struct{}, 1), draining: &atomic.Bool{}}
	d.left()
	require.Empty(t, d.wake)
	d.unmet.Store(true)
	d.left()
	require.Len(t, d.wake, 1)
}
