package e2e

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A fleet with another prefix does not start on the streams of a fleet. The doctor and the commands say why, and the
// existing fleet goes on. As docs/guides/operate.md says, the streams must be deleted to change the prefix; the workers
// stay.
func TestAnotherPrefix(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	h := openFleet(t, func(c *config.Config) { c.NatsURL = srv.URL() })
	h.deploy("dev", "echo", `export default { task: event => event.payload }`)
	other := h.fleet.Config()
	other.Prefix = "other"

	f, err := fleet.Open(other, zerolog.Nop())
	require.Nil(t, f)
	var foreign *resources.PrefixError
	require.True(t, errors.As(err, &foreign), err)
	require.Equal(t, resources.PrefixError{Stream: events.StreamEvents, Have: "pinwheel", Want: "other"}, *foreign)
	code, out := runDoctor(t, other)
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "bad   prefix        stream PINWHEEL_EVENTS belongs to a fleet with PINWHEEL_PREFIX=pinwheel, and this one has other")
	require.NotContains(t, out, "resources apply")
	var stderr bytes.Buffer
	require.NotZero(t, cli.MainWith(other, []string{"workers", "ls"}, strings.NewReader(""), &bytes.Buffer{}, &stderr))
	require.Contains(t, stderr.String(), "PINWHEEL_PREFIX=pinwheel")
	require.Equal(t, `{"success":true,"data":1}`, string(h.reply(h.send(events.Task, "dev/echo", "1")).Body))

	// It does not start either where only one of the streams is left, and it creates none of the others.
	h.stop()
	h.connect(srv.URL())
	streams := []string{}
	for _, a := range inventory.Resources(other, 1<<20) {
		if a.Stream != nil {
			streams = append(streams, a.Stream.Name)
		}
	}
	for _, name := range streams[:len(streams)-1] {
		require.NoError(t, h.js.DeleteStream(t.Context(), name))
	}
	_, err = fleet.Open(other, zerolog.Nop())
	require.True(t, errors.As(err, &foreign), err)
	_, err = h.js.Stream(t.Context(), streams[0])
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)

	require.NoError(t, h.js.DeleteStream(t.Context(), streams[len(streams)-1]))
	openFleet(t, func(c *config.Config) { c.NatsURL, c.Prefix = srv.URL(), "other" })
	answer, err := h.nc.RequestMsg(&nats.Msg{Subject: events.Subjects("other").Call(events.Task, "dev", "echo"),
		Data: []byte("2")}, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, `{"success":true,"data":2}`, string(answer.Data))
}
