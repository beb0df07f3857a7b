package consumer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Events that end without a run are reported in the worker's output. Of very many, only some are, and the number of the
// others.
func TestEventsThatDoNotRunAreLogged(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if string(e.Body) == "ran" {
			return dead(e)
		}
		return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Dead,
			Failure: events.Fail(events.ReasonNoWorker, "there is none")}}, true
	}}
	start(t, nc, testConfig(), d)
	lines, err := nc.SubscribeSync("pinwheel.logs.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	js := jetStream(t, nc)
	publish(t, nc, events.Task, "acme", nil, "ran")
	eventuallyStored(t, js, events.StreamDead, 1)
	publish(t, nc, events.Task, "acme", nats.Header{"Event-Id": {"e1"}}, "x")
	publish(t, nc, events.Fetch, "acme", nats.Header{"Http-Url": {"ftp://x"}, "Event-Id": {"e2"}}, "x")
	told := map[string]string{}
	for range 2 {
		m, err := lines.NextMsg(patience)
		require.NoError(t, err)
		var line struct{ Owner, Worker, EventID, Level, Text string }
		require.NoError(t, json.Unmarshal(m.Data, &line))
		require.Equal(t, []string{"acme", "w", "error"}, []string{line.Owner, line.Worker, line.Level})
		require.Equal(t, "pinwheel.logs.acme.w", m.Subject)
		told[line.EventID] = line.Text
	}
	require.Equal(t, "not run: no-worker: there is none", told["e1"])
	require.Contains(t, told["e2"], "not run: malformed: ")
	for range 100 {
		publish(t, nc, events.Task, "acme", nil, "x")
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.NoError(t, nc.Flush())
	n, _, err := lines.Pending()
	require.NoError(t, err)
	require.Less(t, n, 90)
	require.GreaterOrEqual(t, n, 18)
	require.Eventually(t, func() bool {
		publish(t, nc, events.Task, "acme", nil, "x")
		m, err := lines.NextMsg(50 * time.Millisecond)
		return err == nil && strings.Contains(string(m.Data), "such lines before were left out")
	}, patience, time.Millisecond)
}
