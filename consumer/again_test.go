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
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// makeAgain deletes the stream of events and makes it again as an operator does, from its configuration: so it has the sequences again that it had.
func makeAgain(t testing.TB, js jetstream.JetStream) {
	t.Helper()
	s, err := js.Stream(t.Context(), consumer.StreamEvents)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), consumer.StreamEvents))
	again, err := js.CreateStream(t.Context(), s.CachedInfo().Config)
	require.NoError(t, err)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Pin()}, jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil { // a process was here first
		_, err = again.GetLastMsgForSubject(t.Context(), subjects.Pin())
	}
	require.NoError(t, err)
}

// A stream that a fleet makes again has no sequence that it had before.
func TestStreamsMadeAgainHaveOtherSequences(t *testing.T) {
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	for _, name := range []string{consumer.StreamEvents, consumer.StreamParked, consumer.StreamSchedules} {
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

// Several processes that make a stream at once agree on where it begins.
func TestProcessesMakeAStreamAtOnce(t *testing.T) {
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

// What waits for its time does not keep others from doing so that have its place in a stream that was made again.
func TestDelayedEventsOfAStreamMadeAgainRun(t *testing.T) {
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	d := &dispatcher{handle: ack}
	f := start(t, nc, cfg, d)
	const n = 10
	delayed := func(when string) (sequences []uint64) {
		for i := range n {
			sequences = append(sequences, publish(t, nc, events.Task, "acme", nats.Header{"Deliver-After": {when}}, fmt.Sprint(when, i)))
		}
		return sequences
	}
	before := delayed("6")
	eventuallyStored(t, js, consumer.StreamEvents, 0)
	makeAgain(t, js)
	require.Equal(t, before, delayed("2"))
	require.Eventually(t, func() bool { return len(d.events()) == 2*n }, patience, 10*time.Millisecond)
	eventuallyStored(t, js, consumer.StreamSchedules, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
	bodies := map[string]bool{}
	for _, e := range d.events() {
		bodies[string(e.Body)] = true
	}
	require.Len(t, bodies, 2*n)
}

// Nor do those that wait for their next run.
func TestLongRetriesOfAStreamMadeAgainRun(t *testing.T) {
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.LongRetry = 100 * time.Millisecond
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	d := &dispatcher{handle: func(e *events.Event) (events.Settlement, bool) {
		if e.Attempt > 2 {
			return ack(e)
		}
		wait := time.Second
		if e.Attempt == 1 && string(e.Body) == "before" {
			wait = 3 * time.Second
		}
		return events.Settlement{Event: e, Outcome: events.Outcome{Verdict: events.Retry, Delay: wait, Version: "1-a", Failure: events.Fail(events.ReasonException, "x")}}, true
	}}
	start(t, nc, cfg, d)
	before := publish(t, nc, events.Task, "acme", nil, "before")
	eventuallyStored(t, js, consumer.StreamEvents, 0)
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
	require.Eventually(t, func() bool { return len(runs("before")) == 3 && len(runs("now")) == 3 }, patience, 10*time.Millisecond)
	eventuallyStored(t, js, consumer.StreamSchedules, 0)
}

// An ack names a sequence only. That of an event of a stream that was deleted hits nothing in the one that the fleet makes in its place.
func TestAckOfADeletedStreamHitsNothing(t *testing.T) {
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	next := func(body string) jetstream.Msg {
		require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
		seq := publish(t, nc, events.Task, "acme", nil, body)
		lane, err := js.Consumer(t.Context(), consumer.StreamEvents, "lane-"+laneOf(t, js, seq))
		require.NoError(t, err)
		m, err := lane.Next()
		require.NoError(t, err)
		return m
	}
	before := next("before")
	makeAgain(t, js)
	now := next("now")
	require.NoError(t, before.DoubleAck(t.Context()))
	require.Zero(t, stored(t, js, consumer.StreamEvents), "what an operator makes again has the sequences again")
	require.NoError(t, now.Ack())

	require.NoError(t, js.DeleteStream(t.Context(), consumer.StreamEvents))
	next("now")
	_ = now.DoubleAck(t.Context()) // nobody answers, or the server does
	require.Equal(t, 1, stored(t, js, consumer.StreamEvents), "what the fleet makes again has others")
}
