package hostileowners

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// sweeps: a waiting event has headers of a direct get, which claim that it is the first of its stream. So the search
// for acked messages that are still stored reads it again and again.
func sweeps(t *testing.T, f *fleet) (harm string) {
	// It waits for longer than the attack goes on.
	f.deploy("acme", "waits", `export default { task: event => event.payload && scheduler.wait(250000) }`,
		`{"limits": {"wallMs": 300000}}`)
	nc := f.as("acme")
	call(t, nc, events.Task, "acme", "waits", []byte("0"))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{
		Subject: subjects.Event(events.Task, "acme", "waits"), Data: []byte("1"),
		Header: nats.Header{"Nats-Stream": {"PINWHEEL_EVENTS"}, "Nats-Sequence": {"1"}, "Nats-Subject": {"x"},
			"Nats-Time-Stamp": {time.Now().Add(time.Hour).Format(time.RFC3339Nano)}},
	})
	require.NoError(t, err)
	// A process searches two seconds after its connection was broken.
	conns, err := f.server.Connz(&server.ConnzOptions{})
	require.NoError(t, err)
	for _, c := range conns.Conns {
		if c.Name == "pinwheel" {
			require.NoError(t, f.server.DisconnectClientByID(c.Cid))
		}
	}
	messages := func() int64 {
		z, err := f.server.Varz(nil)
		require.NoError(t, err)
		return z.InMsgs
	}
	before, over := messages(), time.After(f.attackFor(5*time.Second))
	for look := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-over:
			return ""
		case <-look.C:
		}
		if n := messages() - before; n > 5000 {
			return fmt.Sprintf("%d messages to NATS, and more to come, because of one event", n)
		}
	}
}
