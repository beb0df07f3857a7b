package hostileowners

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// The basis of the attacks: owners reach their own workers, with the permissions of users.conf.
func TestOwnersReachTheirWorkers(t *testing.T) {
	f := openFleet(t)
	f.deploy("acme", "echo", `export default { task: event => event.payload }`, `{"limits": {"cpuMs": 100}}`)
	require.Equal(t, []int{1, 2}, data[[]int](t, call(t, f.as("acme"), events.Task, "acme", "echo", []byte("[1,2]"))))
	p := f.processes[0]
	status, _ := p.Get("/readyz")
	require.Equal(t, 200, status)
	until(t, "the event is counted", func() bool { return p.Metric("pinwheel_events_total", "kind", "task") == 1 })
	now, most := rss(t, p)
	require.Positive(t, now)
	require.GreaterOrEqual(t, most, now)
	require.True(t, p.Alive())
}
