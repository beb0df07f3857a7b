package hostileowners

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// unscheduleFlood has acme cancel delayed events that do not exist. Each cancellation costs requests to JetStream. Then
// beta cancels one of its own events.
func unscheduleFlood(t *testing.T, f *fleet) (harm string) {
	acme, beta := f.as("acme"), f.as("beta")
	later := nats.NewMsg(subjects.Event(events.Task, "beta", "w"))
	later.Header = nats.Header{"Event-Id": {"mine"}, "Deliver-After": {"1h"}}
	require.NoError(t, beta.PublishMsg(later))
	until(t, "beta's event waits", func() bool { return f.processes[0].metric("pinwheel_events_delayed_total") == 1 })

	const flood = 5000
	answers, err := acme.SubscribeSync(acme.NewInbox())
	require.NoError(t, err)
	require.NoError(t, answers.SetPendingLimits(-1, -1))
	began := time.Now()
	for range flood {
		require.NoError(t, acme.PublishRequest(subjects.Unschedule("acme", "w"), answers.Subject, []byte("none")))
	}
	require.NoError(t, acme.Flush())
	m, err := beta.Request(subjects.Unschedule("beta", "w"), []byte("mine"), patience)
	require.NoError(t, err)
	require.JSONEq(t, `{"cancelled":1}`, string(m.Data))
	worked := 0
	for range flood {
		m, err := answers.NextMsg(patience)
		require.NoError(t, err)
		var a events.Unscheduled
		require.NoError(t, json.Unmarshal(m.Data, &a))
		if a.Error == "" {
			worked++
		}
	}
	// docs/reference/limits.md: 200 at once, and 100 a second.
	if took := time.Since(began); float64(worked) > 201+100*took.Seconds() {
		harm = fmt.Sprintf("JetStream was asked about %d of acme's cancellations in %s", worked, took.Round(time.Millisecond))
	}
	return harm
}
