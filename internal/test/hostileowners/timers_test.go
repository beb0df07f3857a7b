package hostileowners

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// answered reports whether a call of beta was answered in time. The time limit is many times what the fleet needs, and
// less than the duration of attacks that block it.
func answered(t *testing.T, nc *nats.Conn, worker string) bool {
	t.Helper()
	m, err := nc.Request(fmt.Sprintf("%s.call.%s.beta.%s", subjects, events.Task, worker), []byte("null"), 15*time.Second)
	if err != nil {
		require.ErrorIs(t, err, nats.ErrTimeout)
		return false
	}
	r, err := events.DecodeReply(events.Header(m.Header), m.Data)
	require.NoError(t, err)
	return r.Failure == nil
}

// timers keeps the only thread busy with timers that persistent contexts run between events.
func timers(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "w", `export default { task: async () => { await new Promise((r) => setTimeout(r, 10)); return 1 } }`, "")
	code :=
		`for (let i = 0; i < 400; i++) setInterval(() => { const till = performance.now() + 12; while (performance.now() < till); }, 1);
		export default { task: () => 1 }`
	acme, beta := f.as("acme"), f.as("beta")
	require.True(t, answered(t, beta, "w"), "before the attack")
	for i := range 6 {
		f.deploy("acme", fmt.Sprint("busy", i), code, `{"mode": "persistent"}`)
		require.NoError(t, acme.Publish(fmt.Sprintf("%s.call.%s.acme.busy%d", subjects, events.Task, i), []byte("null")))
	}
	for i := range 10 {
		if !answered(t, beta, "w") {
			return fmt.Sprintf("call %d of beta was not answered within 15 s", i)
		}
	}
	return ""
}
