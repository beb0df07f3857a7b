package hostileowners

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
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
	until(t, "beta's event waits", func() bool { return f.processes[0].Metric("pinwheel_events_delayed_total") == 1 })

	const flood = 5000
	var worked atomic.Int64
	inbox := acme.NewInbox()
	_, err := acme.Subscribe(inbox, func(m *nats.Msg) {
		var a events.Unscheduled
		if json.Unmarshal(m.Data, &a) == nil && a.Error == "" {
			worked.Add(1)
		}
	})
	require.NoError(t, err)
	began := time.Now()
	for range flood {
		require.NoError(t, acme.PublishRequest(subjects.Unschedule("acme", "w"), inbox, []byte("none")))
	}
	require.NoError(t, acme.Flush())
	m, err := beta.Request(subjects.Unschedule("beta", "w"), []byte("mine"), patience)
	require.NoError(t, err)
	require.JSONEq(t, `{"cancelled":1}`, string(m.Data))
	until(t, "all are carried out or refused", func() bool {
		return float64(worked.Load())+f.processes[0].Metric("pinwheel_unschedules_limited_total") >= flood
	})
	// docs/reference/limits.md: 200 at once, and 100 a second.
	if took := time.Since(began); float64(worked.Load()) > 201+100*took.Seconds() {
		harm = fmt.Sprintf("JetStream was asked about %d of acme's cancellations in %s", worked.Load(), took.Round(time.Millisecond))
	}
	return harm
}
