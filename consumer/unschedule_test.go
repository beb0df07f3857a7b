package consumer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func unscheduled(t *testing.T, m *nats.Msg) (a events.Unscheduled) {
	t.Helper()
	require.NoError(t, json.Unmarshal(m.Data, &a), "%s", m.Data)
	return a
}

// The work that an owner causes in JetStream by cancelling is limited, and does not reduce other owners' limits.
func TestCancellationsOfDelayedEventsAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	start(t, nc, testConfig(), &dispatcher{handle: ack})
	for range 1000 { // no client waits for their answers: they may be JetStream's own
		require.NoError(t, nc.Publish(subjects.Unschedule("beta", "w"), []byte("x")))
	}
	to, sub := inbox(t, nc)
	require.NoError(t, sub.SetPendingLimits(-1, -1))
	const flood = 3000
	began := time.Now()
	for range flood {
		require.NoError(t, nc.PublishRequest(subjects.Unschedule("acme", "w"), to, []byte("x")))
	}
	m, err := nc.Request(subjects.Unschedule("beta", "w"), []byte("x"), patience)
	require.NoError(t, err)
	require.Empty(t, unscheduled(t, m).Error, "beta has used nothing of its own")
	require.Eventually(t, func() bool { // it is carried out after those before it
		m, err := nc.Request(subjects.Unschedule("acme", "w"), []byte("x"), time.Second)
		return err == nil && strings.HasSuffix(string(m.Data), `{"cancelled":0}`)
	}, patience, 20*time.Millisecond)
	carriedOut, refused := 0, 0
	for n, _, _ := sub.Pending(); n > 0; n-- {
		m, err := sub.NextMsg(patience)
		require.NoError(t, err)
		if a := unscheduled(t, m); a.Error == "" {
			carriedOut++
		} else {
			require.True(t, strings.HasPrefix(a.Error, "rate: "), a.Error)
			refused++
		}
	}
	require.Positive(t, refused)
	require.Less(t, carriedOut+refused, flood, "not all refusals are answered")
	require.GreaterOrEqual(t, carriedOut, 200)
	require.LessOrEqual(t, float64(carriedOut), 200+100*time.Since(began).Seconds()+1)
}

// Very many events of one id are cancelled at the owner's pace, and meanwhile others' requests are answered.
func TestManyEventsOfOneIDHoldUpNobody(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	start(t, nc, testConfig(), &dispatcher{handle: ack})
	const n = 400
	for range n {
		publish(t, nc, events.Task, "acme", nats.Header{"Event-Id": {"same"}, "Deliver-After": {"1h"}}, "")
	}
	publish(t, nc, events.Task, "beta", nats.Header{"Event-Id": {"one"}, "Deliver-After": {"1h"}}, "")
	eventuallyStored(t, js, events.StreamSchedules, n+1)
	to, sub := inbox(t, nc)
	require.NoError(t, nc.PublishRequest(subjects.Unschedule("acme", "w"), to, []byte("same")))
	m, err := nc.Request(subjects.Unschedule("beta", "w"), []byte("one"), patience)
	require.NoError(t, err)
	require.Equal(t, events.Unscheduled{Cancelled: 1}, unscheduled(t, m))
	require.Positive(t, stored(t, js, events.StreamSchedules), "acme's are not through: beta did not wait for them")
	m, err = sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, events.Unscheduled{Cancelled: n}, unscheduled(t, m))
	eventuallyStored(t, js, events.StreamSchedules, 0)
}

// Requests that are under way when a process drains are answered.
func TestCancellationsEndWithTheProcess(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	f := start(t, nc, testConfig(), &dispatcher{handle: ack})
	for range 300 {
		publish(t, nc, events.Task, "acme", nats.Header{"Event-Id": {"same"}, "Deliver-After": {"1h"}}, "")
	}
	eventuallyStored(t, js, events.StreamSchedules, 300)
	to, sub := inbox(t, nc)
	for range 3 {
		require.NoError(t, nc.PublishRequest(subjects.Unschedule("acme", "w"), to, []byte("same")))
	}
	require.Eventually(t, func() bool { return stored(t, js, events.StreamSchedules) < 300 }, patience, time.Millisecond)
	f.stop()
	for range 3 {
		_, err := sub.NextMsg(patience)
		require.NoError(t, err)
	}
}
