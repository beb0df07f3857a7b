package consumer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Asking a cluster whether a redelivered event is parked does no harm to the stream of parked events, and is answered.
func TestDuplicateProbeOfAClusterDoesNoHarm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	c := natstest.StartCluster(t, 3)
	cfg := testConfig()
	cfg.Replicas, cfg.AckWait = 3, 3*time.Second
	pub := c.Connect(0)
	js := jetStream(t, pub)
	doomed := c.Connect(1)
	first := &dispatcher{handle: never}
	startWithin(t, clusterPatience, doomed, cfg, first)
	publish(t, pub, events.Task, "acme", nil, "runs again")
	publish(t, pub, events.Task, "acme", nil, "parked")
	require.Eventually(t, func() bool { return len(first.events()) == 2 }, clusterPatience, time.Millisecond)
	for _, e := range first.events() {
		if string(e.Body) == "parked" { // as if the process had died before the ack
			header := nats.Header(events.EncodeParked(&e.Event, e.Runs))
			header.Set(events.HeaderMsgID, events.ParkedID(&e.Event))
			_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Parked(&e.Event), Header: header, Data: e.Body})
			require.NoError(t, err)
		}
	}
	doomed.Close()

	second := &dispatcher{handle: ack}
	startWithin(t, clusterPatience, c.Connect(2), cfg, second)
	empty := func(stream, pin string) bool {
		s, err := js.Stream(t.Context(), stream)
		if err != nil || s.CachedInfo().Cluster.Leader == "" {
			return false
		}
		n, err := resources.Count(t.Context(), js, stream, pin)
		return err == nil && n == 0
	}
	require.Eventually(t, func() bool {
		return empty(events.StreamEvents, subjects.Anchor()) && empty(events.StreamParked, subjects.ParkedAnchor())
	}, clusterPatience, 20*time.Millisecond)
	require.Len(t, second.events(), 2)
	for _, e := range second.events() {
		require.Equal(t, string(e.Body) == "parked", e.Origin.Stream == events.StreamParked, "%s came from %s", e.Body,
			e.Origin.Stream)
	}
	_, err := js.Publish(t.Context(), "pinwheel.parked.task.acme.w", nil, jetstream.WithMsgID("afterwards"))
	require.NoError(t, err, "the stream still takes what is to be parked")
}

// A parked event that was moved to those that are held, or back, does not run twice although the process died before it
// acked the event in its place before.
func TestAMovedEventRunsOnce(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	cfg := leased(2 * time.Second)
	first := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Parked {
			return never(e)
		}
		return park(e)
	}}
	doomed := natstest.Connect(t, srv)
	start(t, doomed, cfg, first)
	publish(t, nc, events.Task, "acme", nil, "moved")
	publish(t, nc, events.Task, "acme", nil, "stays")
	var parked []*lifecycle.Delivery
	require.Eventually(t, func() bool {
		parked = nil
		for _, e := range first.events() {
			if e.Parked {
				parked = append(parked, e)
			}
		}
		return len(parked) == 2
	}, patience, time.Millisecond)
	for _, e := range parked {
		if string(e.Body) == "moved" { // as if the process had died before the ack
			header := nats.Header(events.EncodeParked(&e.Event, e.Runs))
			header.Set(events.HeaderMsgID, events.ParkedID(&e.Event))
			_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: events.Held(subjects.Parked(&e.Event)), Header: header,
				Data: e.Body})
			require.NoError(t, err)
		}
	}
	doomed.Close()

	second := &dispatcher{handle: ack}
	start(t, nc, cfg, second)
	eventuallyStored(t, js, events.StreamParked, 0)
	ran := map[string]int{}
	for _, e := range second.events() {
		ran[string(e.Body)]++
	}
	require.Equal(t, map[string]int{"moved": 1, "stays": 1}, ran)
}
