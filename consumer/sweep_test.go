package consumer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A server that is killed may count an ack and still have the message. If no other message comes, the stream would keep
// it forever.
func TestAckedMessagesThatComeBackAreSwept(t *testing.T) {
	t.Parallel()
	dir := natstest.StoreDir(t)
	open := func() (*nats.Conn, jetstream.JetStream, func()) {
		srv, err := natsd.Open(natsd.Config{StoreDir: dir, Port: -1})
		require.NoError(t, err)
		t.Cleanup(srv.Close)
		nc := dial(t, srv.URL())
		return nc, jetStream(t, nc), func() { nc.Close(); srv.Close() }
	}
	const n = 20
	nc, js, stop := open()
	cfg := testConfig()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	for i := range n {
		publish(t, nc, events.Task, fmt.Sprintf("o%d", i%5), nil, "x")
	}
	stop()
	msgs := messagesOf(t, dir, events.StreamEvents)
	require.NoError(t, os.CopyFS(dir+"-then", os.DirFS(msgs)))
	t.Cleanup(func() { _ = os.RemoveAll(dir + "-then") })

	nc, js, stop = open()
	f := start(t, nc, cfg, &dispatcher{handle: ack})
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
	f.stop()
	stop()
	require.NoError(t, os.RemoveAll(msgs))
	require.NoError(t, os.Rename(dir+"-then", msgs))

	nc, js, _ = open()
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.EqualValues(t, n+1, s.CachedInfo().State.Msgs, "they are there again")
	again := &dispatcher{handle: ack}
	start(t, nc, cfg, again)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Empty(t, again.events(), "none runs again")
}

// messagesOf is the directory in which a server with this directory keeps the messages of a stream.
func messagesOf(t *testing.T, dir, stream string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "streams", stream, "msgs"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}
