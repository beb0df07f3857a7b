// Package natstest gives tests a real NATS server with JetStream, embedded in the test process.
package natstest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
)

// Start runs a server on a free loopback port with its data in a temporary directory. It ends with the test.
func Start(t testing.TB) *natsd.Server {
	t.Helper()
	srv, err := natsd.Open(natsd.Config{StoreDir: StoreDir(t), Port: -1})
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	return srv
}

// Connect opens a connection inside the process, closed when the test ends.
func Connect(t testing.TB, srv *natsd.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := Dial("", append([]nats.Option{srv.InProcess(), nats.MaxReconnects(-1)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// Dial opens a connection to a server of a test, for child processes too. It waits longer than nats.Connect, which
// gives up after 2 s: a busy machine may stand still for so long.
func Dial(url string, opts ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(url, append([]nats.Option{nats.Timeout(patience)}, opts...)...)
}
