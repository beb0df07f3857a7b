package consumer_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

// Parked events may end without dispatch, which then reports no room. The other parked events must still come faster
// than a few at each look.
func TestParkedEventsThatDispatchNeverSeesKeepNoRoom(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	const n = 1000
	for range n { // not as events are parked: malformed
		_, err :=
			js.PublishMsgAsync(&nats.Msg{Subject: subjects.Parked(&events.Event{Owner: "acme", Worker: "w", Kind: events.Task})})
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	start(t, nc, cfg, &dispatcher{handle: ack})
	eventuallyStored(t, js, events.StreamParked, 0)
	eventuallyStored(t, js, events.StreamDead, n)
}
