package janitor

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A stream that was deleted and made again may have lower sequences: its anchor is not behind what came from the old
// one.
func TestAnchorOfStreamMadeAgain(t *testing.T) {
	const prefix = events.Subjects(events.DefaultPrefix)
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: events.StreamEvents, Subjects: []string{prefix.AllEvents(), prefix.Anchor()}, FirstSeq: 1 << 20,
	})
	require.NoError(t, err)
	p := Anchors(prefix)[0]
	require.NoError(t, p.Put(t.Context(), js))
	p.See(1 << 53)
	require.True(t, p.behind())
	require.NoError(t, p.follow(t.Context(), js))
	require.False(t, p.behind())
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.Equal(t, s.CachedInfo().Config.FirstSeq, s.CachedInfo().State.LastSeq, "nothing was stored")
}
