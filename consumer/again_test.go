package consumer_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// makeAgain deletes the stream of events and creates it again from its configuration, as an operator does. So the
// stream uses its old sequences again.
func makeAgain(t testing.TB, js jetstream.JetStream) {
	t.Helper()
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), events.StreamEvents))
	again, err := js.CreateStream(t.Context(), s.CachedInfo().Config)
	require.NoError(t, err)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Anchor()},
		jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil { // a process was here first
		_, err = again.GetLastMsgForSubject(t.Context(), subjects.Anchor())
	}
	require.NoError(t, err)
}

// A stream that a fleet creates again uses no earlier sequence again.
func TestStreamsMadeAgainHaveOtherSequences(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	for _, name := range []string{events.StreamEvents, events.StreamParked, events.StreamSchedules} {
		var last uint64
		for range 3 {
			require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
			s, err := js.Stream(t.Context(), name)
			require.NoError(t, err)
			info := s.CachedInfo()
			require.Greater(t, info.State.FirstSeq, last)
			last = info.State.LastSeq + 1000 // it could have had
			require.NoError(t, js.DeleteStream(t.Context(), name))
		}
	}
}

// Several processes that create a stream at once agree on its first sequence.
func TestProcessesMakeAStreamAtOnce(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var all sync.WaitGroup
	for range 4 {
		nc := natstest.Connect(t, srv)
		all.Go(func() {
			js, err := jetstream.New(nc)
			if err == nil {
				err = consumer.CreateAssets(t.Context(), js, testConfig(), nc.MaxPayload())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// A delayed event of a deleted stream does not prevent the delay of an event with the same number in the new stream.
func TestDelayedEventsOfAStreamMadeAgainRun(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	d := &dispatcher{handle: ack}
	f := start(t, nc, cfg, d)
	const n = 10
	delayed := func(when string) (sequences []uint64) {
		for i := range n {
			sequences = append(sequences, publish(t, nc, events.Task, "acme", nats.Header{"Deliver-After": {when}},
				fmt.Sprint(when, i)))
		}
		return sequences
	}
	before := delayed("6")
	eventuallyStored(t, js, events.StreamEvents, 0)
	makeAgain(t, js)
	require.Equal(t, before, delayed("2"))
	require.Eventually(t, func() bool { return len(d.events()) == 2*n }, patience, 10*time.Millisecond)
	eventuallyStored(t, js, events.StreamSchedules, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
	bodies := map[string]bool{}
	for _, e := range d.events() {
		bodies[string(e.Body)] = true
	}
	require.Len(t, bodies, 2*n)
}

// Nor do events that wait for their next run.
func TestLongRetriesOfAStreamMadeAgainRun(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.LongRetry = 100 * time.Millisecond
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Attempt > 2 {
			return ack(e)
		}
		wait := time.Second
		if e.Attempt == 1 && string(e.Body) == "before" {
			wait = 3 * time.Second
		}
		return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Retry, Delay: wait,
			Version: "1-a", Failure: events.Fail(events.ReasonException, "x")}}, true
	}}
	start(t, nc, cfg, d)
	before := publish(t, nc, events.Task, "acme", nil, "before")
	eventuallyStored(t, js, events.StreamEvents, 0)
	makeAgain(t, js)
	require.Equal(t, before, publish(t, nc, events.Task, "acme", nil, "now"))
	runs := func(body string) (attempts []int) {
		for _, e := range d.events() {
			if string(e.Body) == body {
				attempts = append(attempts, 0)
			}
		}
		return attempts
	}
	require.Eventually(t, func() bool { return len(runs("before")) == 3 && len(runs("now")) == 3 }, patience,
		10*time.Millisecond)
	eventuallyStored(t, js, events.StreamSchedules, 0)
}

// An ack names only a sequence. The ack of an event of a deleted stream acks nothing in the stream that the fleet
// creates in its place.
func TestAckOfADeletedStreamHitsNothing(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	next := func(body string) jetstream.Msg {
		require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
		seq := publish(t, nc, events.Task, "acme", nil, body)
		lane, err := js.Consumer(t.Context(), events.StreamEvents, "lane-"+laneOf(t, js, seq))
		require.NoError(t, err)
		m, err := lane.Next()
		require.NoError(t, err)
		return m
	}
	before := next("before")
	makeAgain(t, js)
	now := next("now")
	require.NoError(t, before.DoubleAck(t.Context()))
	require.Zero(t, stored(t, js, events.StreamEvents), "what an operator makes again has the sequences again")
	require.NoError(t, now.Ack())

	require.NoError(t, js.DeleteStream(t.Context(), events.StreamEvents))
	next("now")
	_ = now.DoubleAck(t.Context()) // no one answers, or the server does
	require.Equal(t, 1, stored(t, js, events.StreamEvents), "what the fleet makes again has others")
}
