package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// Events of an owner that come while others of it are parked go behind them. When all have run, new events run directly
// again.
func TestParkingKeepsTheOrder(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.OwnerMaxRunning, c.OwnerMaxQueued = 1, 20 })
	h.deploy("acme", "w", `export default { async task(e) { await new Promise(done => setTimeout(done, 4)); return e.payload } }`)
	replies := make(chan *nats.Msg, 2000)
	_, err := h.nc.ChanSubscribe("_INBOX.order", replies)
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	sent := 0
	send := func(n int) {
		for range n {
			m := nats.NewMsg("pinwheel.events.task.acme.w")
			m.Data = fmt.Append(nil, sent)
			m.Header.Set(events.HeaderReplyTo, "_INBOX.order")
			_, err := h.js.PublishMsgAsync(m)
			require.NoError(t, err)
			sent++
		}
		<-h.js.PublishAsyncComplete()
	}
	next := 0
	receive := func(n int) {
		for range n {
			select {
			case m := <-replies:
				var r struct{ Data int }
				require.NoError(t, json.Unmarshal(m.Data, &r))
				require.Equal(t, next, r.Data, "in the order in which they were published")
				next++
			case <-time.After(patience):
				t.Fatalf("%d of %d", next, sent)
			}
		}
	}
	parked := func() float64 { return h.metric("pinwheel_dispatch_parked_total") }
	send(150)
	receive(50)
	require.Positive(t, parked())
	send(150)
	receive(250)
	h.settled()
	// Now the events come one after the other, and none is parked.
	require.Eventually(t, func() bool {
		before := parked()
		send(1)
		receive(1)
		return parked() == before
	}, patience, 50*time.Millisecond)
}
