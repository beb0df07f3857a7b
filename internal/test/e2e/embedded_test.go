package e2e

import (
	"fmt"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
)

// A second process on the same data, or the same port, gets an error that names the first process and the setting to
// change. It changes nothing.
func TestDataBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("acme", "w", `export default { task: () => "still here" }`)
	cfg := h.fleet.Config()
	_, err := fleet.Open(cfg, zerolog.Nop())
	require.ErrorContains(t, err, fmt.Sprintf("has had the data in %s since", cfg.Data))
	require.ErrorContains(t, err, "PINWHEEL_NATS_URL="+h.fleet.URL())
	require.ErrorContains(t, err, "PINWHEEL_DATA")

	port := h.fleet.URL()[len("nats://127.0.0.1:"):]
	other := testConfig(t)
	_, err = fmt.Sscan(port, &other.NatsPort)
	require.NoError(t, err)
	_, err = fleet.Open(other, zerolog.Nop())
	require.ErrorContains(t, err, "port "+port+" is taken")
	require.ErrorContains(t, err, "PINWHEEL_NATS_URL=nats://127.0.0.1:"+port)
	require.ErrorContains(t, err, "a PINWHEEL_DATA that no other process has")

	require.Contains(t, string(h.reply(h.send(events.Task, "acme/w", "{}")).Body), "still here")
}
