package consumer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// TestEndsOfADeletedStreamGoNowhere has an event run while its stream is deleted and made again, by the fleet or as an
// operator does, and while another event gets its place. However the first one ends, that does nothing to the second.
func TestEndsOfADeletedStreamGoNowhere(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]handler{
		"ack": echo, "dead": dead, "park": park,
		"give back": func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			return lifecycle.Settlement{Event: e, Order: lifecycle.Return}, true
		},
		"retry": func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
				Verdict: lifecycle.Retry, Delay: 10 * time.Millisecond, Version: "1-a", Failure: events.Fail(events.ReasonException,
					"x"),
			}}, true
		},
		"early reply": func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			s, ok := echo(e)
			s.Outcome.Verdict = lifecycle.None
			return s, ok
		},
	} {
		t.Run(name+" by the fleet", func(t *testing.T) {
			t.Parallel()
			endsGoNowhere(t, end,
				func(js jetstream.JetStream) { require.NoError(t, js.DeleteStream(t.Context(), events.StreamEvents)) })
		})
		t.Run(name+" by an operator", func(t *testing.T) {
			t.Parallel()
			endsGoNowhere(t, end, func(js jetstream.JetStream) { makeAgain(t, js) })
		})
	}
}

func endsGoNowhere(t *testing.T, end handler, again func(js jetstream.JetStream)) {
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	js := jetStream(t, pub)
	to, replies := inbox(t, pub)
	goOn, began := make(chan struct{}), make(chan string, 10)
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		began <- string(e.Body)
		if string(e.Body) == "now" {
			return never(e)
		}
		<-goOn
		return end(e)
	}}
	cfg := shortLease()
	doomed := natstest.Connect(t, srv)
	f := start(t, doomed, cfg, d)
	before := publish(t, pub, events.Task, "acme", nats.Header{"Reply-To": {to}}, "before")
	require.Equal(t, "before", <-began)
	again(js)
	var now uint64
	require.Eventually(t, func() bool { // a stream may have to be made first
		ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Event(events.Task, "acme", "w"),
			Data: []byte("now")}, jetstream.WithRetryAttempts(0))
		if err == nil {
			now = ack.Sequence
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	require.Equal(t, "now", <-began)
	require.Eventually(t, func() bool { return f.Stats().Held == 1 }, patience, time.Millisecond,
		"%d is forgotten, and %d held", before, now)
	close(goOn)
	require.Eventually(t, func() bool { return f.Stats().Settling == 0 }, patience, time.Millisecond)
	_, err := replies.NextMsg(2 * cfg.AckWait)
	require.ErrorIs(t, err, nats.ErrTimeout, "nothing is said to whoever asked")
	require.Equal(t, 1, f.Stats().Held)
	require.Equal(t, 1, stored(t, js, events.StreamEvents), "the event that has its place is still there")
	for _, name := range []string{events.StreamParked, events.StreamDead, events.StreamSchedules} {
		require.Zero(t, stored(t, js, name), name)
	}

	doomed.Close()
	third := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), cfg, third)
	eventuallyStored(t, js, events.StreamEvents, 0)
	e := third.events()[0]
	require.Equal(t, "now", string(e.Body))
	require.Equal(t, 2, e.Attempt, "one run was started, and it did not fail before")
}

// The same holds for an event that waits here for its next run, and for the room that it takes.
func TestWaitingRetriesOfADeletedStreamAreForgotten(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := shortLease()
	cfg.LongRetry = 2 * time.Hour // so that they wait here
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if string(e.Body) == "now" {
			return ack(e)
		}
		return failUntil(99, time.Hour)(e)
	}}
	f := start(t, nc, cfg, d)
	const n = 5
	for range n {
		publish(t, nc, events.Task, "acme", nil, "before")
	}
	require.Eventually(t, func() bool { return f.Stats().Waiting == n }, patience, time.Millisecond)
	makeAgain(t, js)
	require.Eventually(t, func() bool { return f.Stats().Waiting == 0 && f.Stats().Held == 0 }, patience, time.Millisecond)
	for range n {
		publish(t, nc, events.Task, "acme", nil, "now")
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	for _, e := range d.events()[n:] {
		require.Equal(t, 1, e.Attempt, "it has not the count of the one that had its place")
	}
}
