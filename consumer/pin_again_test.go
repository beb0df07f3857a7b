package consumer

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// A stream that was deleted and made again may have lower sequences: its pin is not behind what came from the old one.
func TestPinOfStreamMadeAgain(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	cfg := DefaultConfig()
	cfg.MaxBytes = 64 << 20
	require.NoError(t, CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	p := newPins(cfg)[0]
	p.see(1 << 53)
	require.True(t, p.behind())
	require.NoError(t, p.follow(t.Context(), js))
	require.False(t, p.behind())
	s, err := js.Stream(t.Context(), StreamEvents)
	require.NoError(t, err)
	require.Equal(t, s.CachedInfo().Config.FirstSeq, s.CachedInfo().State.LastSeq, "nothing was stored")
}
