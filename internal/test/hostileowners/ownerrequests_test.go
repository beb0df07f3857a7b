package hostileowners

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// requestFlood has acme ask the owner API without end. Meanwhile beta asks, and calls a worker.
func requestFlood(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "w", `export default { task() { return 1; } }`, "")
	acme, beta := f.as("acme"), f.as("beta")
	answers := 0
	inbox := acme.NewInbox()
	sub, err := acme.Subscribe(inbox, func(*nats.Msg) { answers++ })
	require.NoError(t, err)
	const flood, asked = 20_000, 20
	p, began := f.processes[0], time.Now()
	for i := range flood {
		require.NoError(t, acme.PublishRequest("pinwheel.owner.acme.workers.list", inbox, nil))
		if i%(flood/asked) != 0 {
			continue
		}
		_, err := beta.Request("pinwheel.owner.beta.workers.list", nil, patience)
		require.NoError(t, err, "beta is answered while acme asks")
		require.Nil(t, call(t, beta, events.Task, "beta", "w", nil).Failure)
	}
	require.NoError(t, acme.Flush())
	count := func(result string) float64 { return p.Metric("pinwheel_owner_requests_total", "result", result) }
	until(t, "all requests are handled or refused", func() bool {
		return count("handled")+count("refused")+count("dropped") >= flood+asked
	})
	took := time.Since(began)
	require.NoError(t, acme.Flush())
	require.NoError(t, sub.Drain())
	// docs/reference/limits.md: 100 at once and 50 a second, and as many refusals.
	most := 101 + 50*took.Seconds()
	if handled := count("handled") - asked; handled > most {
		harm = fmt.Sprintf("%.0f of acme's requests were decoded in %s. ", handled, took.Round(time.Millisecond))
	}
	if told := count("refused"); told > most {
		harm += fmt.Sprintf("%.0f refusals were sent.", told)
	}
	return harm
}
