package natsd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// Stored data is there when the server starts again on the same port.
func TestServerKeepsItsDataAndItsPort(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(Config{StoreDir: dir, Port: -1})
	require.NoError(t, err)
	nc, err := nats.Connect("", first.InProcess(), nats.Timeout(startTimeout))
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	_, err = js.Publish(context.Background(), "s", []byte("kept"))
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(mustHost(t, first.URL()))
	require.NoError(t, err)
	nc.Close()
	first.Close()

	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	second, err := Open(Config{StoreDir: dir, Port: n})
	require.NoError(t, err)
	defer second.Close()
	nc, err = nats.Connect(second.URL(), nats.Timeout(startTimeout))
	require.NoError(t, err)
	defer nc.Close()
	js, err = jetstream.New(nc)
	require.NoError(t, err)
	s, err := js.Stream(context.Background(), "S")
	require.NoError(t, err)
	m, err := s.GetMsg(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, "kept", string(m.Data))
}

func TestServerRefusesATakenPortAndNoDirectory(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	_, err = Open(Config{StoreDir: t.TempDir(), Port: l.Addr().(*net.TCPAddr).Port})
	var taken *PortTakenError
	require.ErrorAs(t, err, &taken)
	_, err = Open(Config{})
	require.ErrorContains(t, err, "StoreDir")
}

// A directory has one server. A second one gets an error that names the first one, and changes nothing.
func TestDirectoryHasOneServer(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(Config{StoreDir: dir, Port: -1})
	require.NoError(t, err)
	_, err = Open(Config{StoreDir: filepath.Join(dir, ".", ""), Port: -1})
	var inUse *InUseError
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, os.Getpid(), inUse.Holder.PID)
	require.Equal(t, first.URL(), inUse.Holder.NATS)
	require.ErrorContains(t, err, dir)
	first.Close()
	second, err := Open(Config{StoreDir: dir, Port: -1})
	require.NoError(t, err)
	second.Close()

	// A server that failed to start unlocks the directory.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	_, err = Open(Config{StoreDir: dir, Port: l.Addr().(*net.TCPAddr).Port})
	require.ErrorContains(t, err, "is taken")
	third, err := Open(Config{StoreDir: dir, Port: -1})
	require.NoError(t, err)
	third.Close()
}

func mustHost(t *testing.T, url string) string {
	t.Helper()
	require.Contains(t, url, "nats://")
	return url[len("nats://"):]
}
