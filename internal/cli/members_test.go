package cli

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// Processes that join, leave and are killed are noticed within seconds, and what an owner may have is shared out anew.
func TestProcessesCountEachOther(t *testing.T) {
	srv := natstest.Start(t)
	h := openHouse(t, func(c *Config) { c.NatsURL = srv.URL() })
	processes := func() int {
		all, err := h.fleet.registry.Gather()
		require.NoError(t, err)
		for _, f := range all {
			if f.GetName() == "pinwheel_fleet_processes" {
				return int(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return 0
	}
	become := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return processes() == n }, patience, time.Millisecond)
	}
	become(1)
	a, b := startProcess(t, srv.URL()), startProcess(t, srv.URL())
	become(3)
	require.NoError(t, a.Process.Signal(os.Interrupt))
	become(2)
	require.NoError(t, b.Process.Kill())
	begin := time.Now()
	become(1)
	require.Less(t, time.Since(begin), 10*time.Second)

	h.deploy("acme", "w", `export default { fetch: () => new Promise(done => setTimeout(done, 20000)) }`)
	h.fleet.setPolicy("acme", events.Policy{FleetMaxRunning: 6})
	for range 10 {
		h.send(events.Fetch, "acme/w", "")
	}
	require.Eventually(t, func() bool { return h.fleet.dispatch.Stats().Running == 6 }, patience, time.Millisecond)
}
