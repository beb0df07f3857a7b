package consumer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func TestEventIsRepliedToAndAcked(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	f := start(t, nc, testConfig(), &dispatcher{handle: echo})
	to, sub := inbox(t, nc)
	seq := publish(t, nc, events.Fetch, "acme", nats.Header{"Reply-To": {to}, "Event-Id": {"one"}}, "hi")

	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	r, err := events.DecodeReply(events.Header(m.Header), m.Data)
	require.NoError(t, err)
	require.Equal(t, "hi", string(r.Body))
	require.Equal(t, "one", r.EventID)
	require.Equal(t, 1, r.Attempt)
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
	e := f.d.events()[0]
	require.Equal(t, seq, e.Origin.Seq)
	require.Equal(t, "acme/w", e.Target())
}
