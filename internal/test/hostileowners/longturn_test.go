package hostileowners

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// longTurn keeps the only thread busy in one turn. beta's events end while it lasts.
func longTurn(t *testing.T, f *fleet) (harm string) {
	turn := 55 * time.Second // the process is killed before
	if f.unguarded {
		turn = 6 * time.Second
	}
	const limits = `{"limits": {"cpuMs": 60000, "wallMs": 120000}}`
	f.deploy("acme", "long", fmt.Sprintf(`export default { task() { const till = performance.now() + %d; while (performance.now() < till); return 1 } }`, turn.Milliseconds()), limits)
	f.deploy("beta", "quick", `export default { task: () => 1 }`, "")
	f.deploy("beta", "sleeps", `export default { task: async () => { for (let i = 0; i < 8; i++) await new Promise((r) => setTimeout(r, 250)); return 1 } }`, "")
	p, acme, beta := f.processes[0], f.as("acme"), f.as("beta")
	require.Equal(t, 1, data[int](t, call(t, beta, events.Task, "beta", "quick", nil)))
	sleeps := make(chan *events.Reply, 1)
	go func() { sleeps <- call(t, beta, events.Task, "beta", "sleeps", []byte("null")) }()
	until(t, "beta's event waits", func() bool { return p.Metric("pinwheel_dispatch_running") == 1 })
	inbox := acme.NewRespInbox()
	long, err := acme.SubscribeSync(inbox)
	require.NoError(t, err)
	require.NoError(t, acme.PublishRequest(string(subjects)+".call.task.acme.long", inbox, []byte("null")))
	until(t, "acme's event runs", func() bool { return p.Metric("pinwheel_dispatch_running") == 2 })
	for range 3 {
		require.Equal(t, 1, data[int](t, call(t, beta, events.Task, "beta", "quick", []byte("null"))))
	}
	require.Equal(t, 1, data[int](t, <-sleeps))
	if ended, _, err := long.Pending(); err != nil || ended > 0 {
		return fmt.Sprintf("beta's events have waited for acme's turn of %s (%v)", turn, err)
	}
	return ""
}
