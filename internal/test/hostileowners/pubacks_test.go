package hostileowners

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// pubAcksAsEvents has JetStream publish its answers to acme's events on the subjects of beta's events and calls: NATS
// does not check permissions for a reply subject.
func pubAcksAsEvents(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "count", `export default { task: e => console.log(JSON.stringify(e.payload)), fetch: async r => console.log(await r.text()) }`, "")
	var ran atomic.Int64
	_, err := f.nc.Subscribe("pinwheel.logs.beta.count", func(*nats.Msg) { ran.Add(1) })
	require.NoError(t, err)
	require.NoError(t, f.nc.Flush())
	acme := f.as("acme")
	n := 0
	for _, replyTo := range []string{
		subjects.Event(events.Task, "beta", "count"), subjects.Event(events.Fetch, "beta", "count"),
		subjects.Call(events.Task, "beta", "count"),
	} {
		for range 5 {
			n++
			require.NoError(t, acme.PublishMsg(&nats.Msg{Subject: subjects.Event(events.Task, "acme", "none"), Reply: replyTo,
				Data: []byte("{}")}))
		}
	}
	until(t, "every answer is dropped, or has run", func() bool {
		return int(f.processes[0].Metric("pinwheel_puback_events_total"))+int(ran.Load()) >= n
	})
	if ran.Load() > 0 {
		harm = fmt.Sprintf("beta's worker ran %d times for acme", ran.Load())
	}
	return harm
}
