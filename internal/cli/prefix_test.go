package cli

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

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// A fleet of another prefix does not start on the streams of a fleet, the doctor and the commands say why, and the one that is there goes on. As
// docs/operations.md has it, its streams are deleted when it shall have that prefix; its workers stay.
func TestAnotherPrefix(t *testing.T) {
	srv := natstest.Start(t)
	h := openHouse(t, func(c *Config) { c.NatsURL = srv.URL() })
	h.deploy("dev", "echo", `export default { task: event => event.payload }`)
	other := h.fleet.cfg
	other.Prefix = "other"

	f, err := openFleet(other, zerolog.Nop())
	require.Nil(t, f)
	var foreign *assets.PrefixError
	require.True(t, errors.As(err, &foreign), err)
	require.Equal(t, assets.PrefixError{Stream: consumer.StreamEvents, Have: "pinwheel", Want: "other"}, *foreign)
	code, out := runDoctor(t, other)
	require.Equal(t, exitBad, code)
	require.Contains(t, out, "bad   prefix        stream PINWHEEL_EVENTS belongs to a fleet with PINWHEEL_PREFIX=pinwheel, and this one has other")
	require.NotContains(t, out, "brings it forward")
	var stderr bytes.Buffer
	require.NotZero(t, MainWith(other, []string{"workers", "ls"}, strings.NewReader(""), &bytes.Buffer{}, &stderr))
	require.Contains(t, stderr.String(), "PINWHEEL_PREFIX=pinwheel")
	require.Equal(t, `{"success":true,"data":1}`, string(h.reply(h.send(events.Task, "dev/echo", "1")).Body))

	// Nor does it where only one of the streams is left, and it makes none of the others.
	h.stop()
	h.connect(srv.URL())
	streams := []string{}
	for _, a := range consumer.Assets((&fleet{cfg: other}).consumerConfig(), 1<<20) {
		if a.Stream != nil {
			streams = append(streams, a.Stream.Name)
		}
	}
	for _, name := range streams[:len(streams)-1] {
		require.NoError(t, h.js.DeleteStream(t.Context(), name))
	}
	_, err = openFleet(other, zerolog.Nop())
	require.True(t, errors.As(err, &foreign), err)
	_, err = h.js.Stream(t.Context(), streams[0])
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)

	require.NoError(t, h.js.DeleteStream(t.Context(), streams[len(streams)-1]))
	openHouse(t, func(c *Config) { c.NatsURL, c.Prefix = srv.URL(), "other" })
	answer, err := h.nc.RequestMsg(&nats.Msg{Subject: events.Subjects("other").Call(events.Task, "dev", "echo"), Data: []byte("2")}, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, `{"success":true,"data":2}`, string(answer.Data))
}
