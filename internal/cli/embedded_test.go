package cli

import (
	"fmt"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// A second process on the same data, or the same port, is told who has them and what to set, and touches nothing.
func TestDataBelongsToOneProcess(t *testing.T) {
	h := openHouse(t)
	h.deploy("acme", "w", `export default { task: () => "still here" }`)
	cfg := h.fleet.cfg
	_, err := openFleet(cfg, zerolog.Nop())
	require.ErrorContains(t, err, fmt.Sprintf("has had the data in %s since", cfg.Data))
	require.ErrorContains(t, err, "PINWHEEL_NATS_URL="+h.fleet.url())
	require.ErrorContains(t, err, "PINWHEEL_DATA")

	port := h.fleet.server.URL()[len("nats://127.0.0.1:"):]
	other := testConfig(t)
	_, err = fmt.Sscan(port, &other.NatsPort)
	require.NoError(t, err)
	_, err = openFleet(other, zerolog.Nop())
	require.ErrorContains(t, err, "port "+port+" is taken")
	require.ErrorContains(t, err, "PINWHEEL_NATS_URL=nats://127.0.0.1:"+port)
	require.ErrorContains(t, err, "a PINWHEEL_DATA that no other process has")

	require.Contains(t, string(h.reply(h.send(events.Task, "acme/w", "{}")).Body), "still here")
}
