package consumer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

// Who has as many events waiting as it may gets a clear end of those that come then, and room again when they are gone. Others are not held up,
// and retries are not lost.
func TestWaitingEventsOfAnOwnerAreBounded(t *testing.T) {
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.OwnerMaxWaiting, cfg.LongRetry = 40, 50*time.Millisecond
	d := &dispatcher{handle: failUntil(2, time.Second)}
	f := start(t, nc, cfg, d)
	delayed := func(owner, body string) {
		publish(t, nc, events.Task, owner, nats.Header{events.HeaderDeliverAfter: {"1h"}}, body)
	}
	letters := func(owner string) (n int) {
		for l, err := range consumer.NewDeadLetters(js, subjects).List(t.Context(), consumer.Filter{Owner: owner}) {
			require.NoError(t, err)
			require.Equal(t, events.ReasonRate, l.Failure.Reason)
			require.Contains(t, l.Failure.Message, "40 events of owner acme")
			n++
		}
		return n
	}
	sent := 0
	require.Eventually(t, func() bool {
		delayed("acme", "later")
		sent++
		return letters("acme") >= 20
	}, patience, time.Millisecond)
	eventuallyStored(t, js, consumer.StreamEvents, 0)
	waiting := func(owner string) (n int) {
		for _, err := range consumer.NewSchedules(js, subjects).Waiting(t.Context(), owner, "") {
			require.NoError(t, err)
			n++
		}
		return n
	}
	require.GreaterOrEqual(t, waiting("acme"), 40)
	require.Equal(t, sent, waiting("acme")+letters("acme"))
	t.Logf("%d wait, 40 may", waiting("acme"))

	for range 10 {
		delayed("bob", "later")
	}
	require.Eventually(t, func() bool { return waiting("bob") == 10 }, patience, time.Millisecond)
	publish(t, nc, events.Task, "acme", nil, "fails once")
	require.Eventually(t, func() bool { return f.Stats().Waiting == 1 }, patience, time.Millisecond, "its retry waits in the process")
	require.Eventually(t, func() bool { return len(d.events()) == 2 }, patience, time.Millisecond)

	s, err := js.Stream(t.Context(), consumer.StreamSchedules)
	require.NoError(t, err)
	require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(subjects.WaitingEvents("acme", "", ""))))
	require.Eventually(t, func() bool { delayed("acme", "again"); return waiting("acme") >= 5 }, patience, 20*time.Millisecond)
}
