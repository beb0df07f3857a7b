// Package natstest gives tests a real NATS server with JetStream, embedded in the test process.
package natstest

import (
	"flag"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/natsd"
)

// atOnce is how many tests of whole fleets run at once. Most of their time is spent waiting, for leases, drains and
// beats.
const atOnce = "6"

// BeParallel lets more tests run at once than there are processors, unless the command line sets the number. TestMain
// calls it.
func BeParallel() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", atOnce)
	}
}

// Start runs a server on a free loopback port with its data in a temporary directory. It ends with the test.
func Start(t testing.TB) *natsd.Server {
	t.Helper()
	srv, err := natsd.Open(natsd.Config{StoreDir: t.TempDir(), Port: -1})
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	return srv
}

// Connect opens a connection inside the process, closed when the test ends.
func Connect(t testing.TB, srv *natsd.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", append([]nats.Option{srv.InProcess(), nats.MaxReconnects(-1)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}
