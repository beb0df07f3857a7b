package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Only the owners that are named have series, and their events are counted by how they ended.
func TestOwnersThatAreNamed(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	o, err := NewOwners([]string{"acme", "quiet"}, reg)
	require.NoError(t, err)
	run := func(owner string, end lifecycle.End, batch ...*lifecycle.Delivery) {
		e := event(1)
		e.Owner = owner
		a := &lifecycle.Attempt{Event: e, Batch: batch, Worker: &workers.Worker{Owner: owner}, Number: 1,
			Start: e.Stored.Add(2 * time.Second)}
		o.Started(a)
		o.Ended(&lifecycle.Report{Attempt: a, End: &end})
	}
	failure := events.Fail(events.ReasonCPU, "x")
	run("acme", lifecycle.End{Started: true, CPU: time.Second})
	run("acme", lifecycle.End{Started: true, Failure: failure})
	run("acme", lifecycle.End{Started: true, Retry: true})
	run("acme", lifecycle.End{Started: true, Interrupted: true})
	run("acme", lifecycle.End{Interrupted: true})
	run("acme", lifecycle.End{Started: true, Interrupted: true, Broken: failure})
	run("acme", lifecycle.End{Started: true, CPU: time.Second,
		Items: []lifecycle.Item{{}, {Decision: lifecycle.Failed, Failure: failure}}}, event(1), event(1))
	run("other", lifecycle.End{Started: true, CPU: time.Hour})
	for _, owner := range []string{"acme", "other"} {
		e := event(1)
		e.Owner = owner
		o.Settled(&lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Dead}})
		o.Settled(&lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Ack}})
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP pinwheel_owner_attempts_total Attempts at events of an owner named by PINWHEEL_METRICS_OWNERS, by outcome: ok, failed, broken (the body of the response ended before it was complete), retry (the handler asked for it) or interrupted.
# TYPE pinwheel_owner_attempts_total counter
pinwheel_owner_attempts_total{outcome="broken",owner="acme"} 1
pinwheel_owner_attempts_total{outcome="broken",owner="quiet"} 0
pinwheel_owner_attempts_total{outcome="failed",owner="acme"} 2
pinwheel_owner_attempts_total{outcome="failed",owner="quiet"} 0
pinwheel_owner_attempts_total{outcome="interrupted",owner="acme"} 1
pinwheel_owner_attempts_total{outcome="interrupted",owner="quiet"} 0
pinwheel_owner_attempts_total{outcome="ok",owner="acme"} 2
pinwheel_owner_attempts_total{outcome="ok",owner="quiet"} 0
pinwheel_owner_attempts_total{outcome="retry",owner="acme"} 1
pinwheel_owner_attempts_total{outcome="retry",owner="quiet"} 0
# HELP pinwheel_owner_cpu_seconds_total CPU time of the attempts of an owner named by PINWHEEL_METRICS_OWNERS.
# TYPE pinwheel_owner_cpu_seconds_total counter
pinwheel_owner_cpu_seconds_total{owner="acme"} 2
pinwheel_owner_cpu_seconds_total{owner="quiet"} 0
# HELP pinwheel_owner_dead_letters_total Events of an owner named by PINWHEEL_METRICS_OWNERS that failed for good.
# TYPE pinwheel_owner_dead_letters_total counter
pinwheel_owner_dead_letters_total{owner="acme"} 1
pinwheel_owner_dead_letters_total{owner="quiet"} 0
# HELP pinwheel_owner_wait_seconds_total Time that events of an owner named by PINWHEEL_METRICS_OWNERS waited from their storing until their first attempts started.
# TYPE pinwheel_owner_wait_seconds_total counter
pinwheel_owner_wait_seconds_total{owner="acme"} 16
pinwheel_owner_wait_seconds_total{owner="quiet"} 0
`)))
	_, err = NewOwners(nil, reg)
	require.Error(t, err, "they are registered already")
}
