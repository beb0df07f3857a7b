package client_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	c := newClient(t, nc)
	_, err := c.Cancel(within(t, patience), "acme", "w", "x")
	require.ErrorIs(t, err, client.ErrNoStream)
	answer := ""
	_, err = nc.Subscribe("pinwheel.unschedule.acme.w", func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	answer = `{"cancelled":2}`
	n, err := c.Cancel(within(t, patience), "acme", "w", "x")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	answer = `{"cancelled":0,"error":"event id \"\": it is 1 to 256 bytes"}`
	_, err = c.Cancel(within(t, patience), "acme", "w", "")
	require.ErrorIs(t, err, client.ErrMalformed)
	answer = `{"cancelled":0,"error":"rate: a process cancels 100 delayed events of owner acme in a second: try again"}`
	_, err = c.Cancel(within(t, patience), "acme", "w", "x")
	var failure *events.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, events.ReasonRate, failure.Reason)
}
