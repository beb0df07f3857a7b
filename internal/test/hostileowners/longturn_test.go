package hostileowners

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// longTurn keeps the only thread busy in one turn, for the maximum time that a worker may ask for.
func longTurn(t *testing.T, f *fleet) (harm string) {
	const limits = `{"limits": {"cpuMs": 60000, "wallMs": 120000}}`
	f.deploy("acme", "long", `export default { task() { const till = performance.now() + 6000; while (performance.now() < till); return 1 } }`, limits)
	f.deploy("beta", "quick", `export default { task: () => 1 }`, "")
	f.deploy("beta", "sleeps", `export default { task: async () => { for (let i = 0; i < 8; i++) await new Promise((r) => setTimeout(r, 250)); return 1 } }`, "")
	p, acme, beta := f.processes[0], f.as("acme"), f.as("beta")
	require.Equal(t, 1, data[int](t, call(t, beta, events.Task, "beta", "quick", nil)))
	order := make(chan string, 10)
	ask := func(owner, worker string) {
		nc := beta
		if owner == "acme" {
			nc = acme
		}
		r := call(t, nc, events.Task, owner, worker, []byte("null"))
		if r.Failure != nil {
			order <- fmt.Sprintf("%s/%s: %v", owner, worker, r.Failure)
			return
		}
		order <- owner
	}
	go ask("beta", "sleeps")
	until(t, "beta's event waits", func() bool { return p.Metric("pinwheel_dispatch_running") == 1 })
	go ask("acme", "long")
	until(t, "acme's event runs", func() bool { return p.Metric("pinwheel_dispatch_running") == 2 })
	go func() {
		for range 3 {
			ask("beta", "quick")
		}
	}()
	var got []string
	for range 5 {
		got = append(got, <-order)
	}
	if got[4] != "acme" {
		return fmt.Sprintf("events ended in this order: %v", got)
	}
	return ""
}
