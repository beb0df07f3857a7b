package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// wrongClock is a dispatcher of a process whose clock is wrong.
type wrongClock struct {
	submitted chan *lifecycle.Delivery
	c         *Consumer
}

func (*wrongClock) Through(string, uint64) bool { return false }

func (*wrongClock) Cancel([]*lifecycle.Delivery, bool) []*lifecycle.Delivery { return nil }

func (d *wrongClock) Submit(batch []*lifecycle.Delivery) {
	for _, e := range batch {
		d.submitted <- e
		d.c.Settle([]lifecycle.Settlement{{Event: e, Outcome: lifecycle.Outcome{
			Verdict: lifecycle.Retry, Delay: time.Hour, Version: "1-a", Failure: events.Fail(events.ReasonException, "x"),
		}}})
	}
}

// A process that is ten minutes slow judges deadlines, sets times and makes ticks as one whose clock is right.
func TestProcessGoesByTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	cfg := DefaultConfig()
	cfg.Node, cfg.MaxBytes, cfg.AckWait = "n", 64<<20, time.Hour // it does not look again soon
	d := &wrongClock{submitted: make(chan *lifecycle.Delivery, 1)}
	c, err := New(cfg, nc, d, zerolog.Nop(), nil)
	require.NoError(t, err)
	d.c = c
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-done)
	}()
	require.Eventually(t, func() bool { return c.Ready() == nil }, time.Minute, time.Millisecond)
	now := time.Now()
	require.WithinDuration(t, now, c.clock.Now(), 5*time.Second, "it has looked")
	const slow = 10 * time.Minute
	c.clock.Read(now.Add(slow), now, now)
	require.WithinDuration(t, now.Add(slow), c.clock.Now(), 5*time.Second)

	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: cfg.Prefix.Event(events.Task, "acme", "w"), Header: nats.Header{
		"Deadline": {now.Add(slow + 30*time.Second).UTC().Format(time.RFC3339Nano)},
	}})
	require.NoError(t, err)
	require.WithinDuration(t, now.Add(30*time.Second), (<-d.submitted).Deadline, 5*time.Second)
	waiting := func() (at time.Time) {
		for w, err := range schedule.NewStore(js, cfg.Prefix).Waiting(t.Context(), "acme", "w") {
			require.NoError(t, err)
			at = w.At
		}
		return at
	}
	require.Eventually(t, func() bool { return !waiting().IsZero() }, time.Minute, 10*time.Millisecond)
	require.WithinDuration(t, now.Add(slow+time.Hour), waiting(), 5*time.Second)
}
