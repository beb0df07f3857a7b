package consumer_test

import (
	"strconv"
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

// putOffAsBefore delays an event as earlier versions did: under a key without the time when it was stored.
func putOffAsBefore(t testing.TB, js jetstream.JetStream, e *events.Event, wait time.Duration) {
	t.Helper()
	as := *e
	as.Key = e.FirstStored().Stream + "-" + strconv.FormatUint(e.FirstStored().Seq, 10)
	header := nats.Header(events.EncodeParked(e, events.FirstRun))
	header.Set("Nats-Schedule", "@at "+time.Now().Add(wait).UTC().Format(time.RFC3339Nano))
	header.Set("Nats-Schedule-Target", subjects.Due(&as))
	_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Waiting(&as), Header: header, Data: e.Body})
	require.NoError(t, err)
}

func storedEvent(t testing.TB, js jetstream.JetStream, seq uint64) *events.Event {
	t.Helper()
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	m, err := s.GetMsg(t.Context(), seq)
	require.NoError(t, err)
	e, f := events.Decoder{Subjects: subjects}.Decode(
		events.Origin{Stream: events.StreamEvents, Seq: seq, Subject: m.Subject}, events.Header(m.Header), m.Data, m.Time)
	require.Nil(t, f)
	return e
}

// An event that an earlier version delayed runs, and either version may delay it again.
func TestEventsThatEarlierBinariesPutOffRun(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.LongRetry = 100 * time.Millisecond
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	e := storedEvent(t, js, publish(t, nc, events.Task, "acme", nil, "x"))
	putOffAsBefore(t, js, e, 500*time.Millisecond)
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.NoError(t, s.DeleteMsg(t.Context(), e.Origin.Seq))

	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Attempt > 2 {
			return ack(e)
		}
		return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
			Verdict: lifecycle.Retry, Delay: 300 * time.Millisecond, Version: "1-a", Failure: events.Fail(events.ReasonException,
				"x"),
		}}, true
	}}
	start(t, nc, cfg, d)
	require.Eventually(t, func() bool { return len(d.events()) == 3 }, patience, time.Millisecond)
	eventuallyStored(t, js, events.StreamSchedules, 0)
}

// An event that is redelivered after an earlier version has delayed it is not delayed twice.
func TestTwinsThatEarlierBinariesPutOffAreFound(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	js := jetStream(t, pub)
	cfg := shortLease()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, pub.MaxPayload()))
	at := time.Now().Add(time.Hour)
	seq := publish(t, pub, events.Task, "acme", nats.Header{"Deliver-At": {at.UTC().Format(time.RFC3339Nano)}}, "x")
	lane, err := js.Consumer(t.Context(), events.StreamEvents, "lane-"+laneOf(t, js, seq))
	require.NoError(t, err)
	_, err = lane.Next() // as the process that died before the ack
	require.NoError(t, err)
	putOffAsBefore(t, js, storedEvent(t, js, seq), time.Until(at))

	d := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), cfg, d)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Equal(t, 1, stored(t, js, events.StreamSchedules))
	require.Empty(t, d.events())
}

func laneOf(t testing.TB, js jetstream.JetStream, seq uint64) string {
	t.Helper()
	lane, _, _, _, ok := subjects.ParseStored(storedEvent(t, js, seq).Origin.Subject)
	require.True(t, ok)
	return strconv.Itoa(lane)
}
