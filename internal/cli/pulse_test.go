package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// A nats-server that hangs keeps its connections open. A process whose server does so is not ready, says since when, and is ready again afterwards.
func TestServerThatHangs(t *testing.T) {
	port := natstest.FreePort(t)
	server := startProcess(t, "", "PINWHEEL_NATS_PORT="+strconv.Itoa(port), "PINWHEEL_DATA="+t.TempDir())
	h := openHouse(t, func(c *Config) { c.NatsURL = "nats://127.0.0.1:" + strconv.Itoa(port) })
	require.NoError(t, h.fleet.checkReady(context.Background()))
	require.NoError(t, server.Process.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		err := h.fleet.checkReady(context.Background())
		return err != nil && strings.Contains(err.Error(), "NATS has not answered since 20")
	}, patience, tick)
	require.NoError(t, server.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool { return h.fleet.checkReady(context.Background()) == nil }, patience, tick)
	h.stop()
	require.NoError(t, server.Process.Signal(os.Interrupt))
}

// A fleet refuses a server that is too old before it makes anything there. The server is a real one behind a link that changes the version it tells.
func TestServerThatIsTooOld(t *testing.T) {
	srv := natstest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	to, err := url.Parse(srv.URL())
	require.NoError(t, err)
	go olderServer(l, to.Host)
	cfg := testConfig(t)
	cfg.NatsURL = "nats://" + l.Addr().String()
	_, err = openFleet(cfg, zerolog.Nop())
	require.ErrorContains(t, err, "is 2.12.9: Pinwheel needs 2.14 or later")
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	names := js.StreamNames(t.Context())
	require.Empty(t, <-names.Name(), "nothing was made")
}

// olderServer passes connections on to a server, and makes its version one that is too old.
func olderServer(l net.Listener, to string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			_ = from.Close()
			return
		}
		go func() { _, _ = io.Copy(server, from) }()
		go func() {
			first := make([]byte, 64<<10)
			n, err := server.Read(first)
			if err == nil {
				at := bytes.Index(first[:n], []byte(`"version":"`)) + len(`"version":"`)
				end := at + bytes.IndexByte(first[at:n], '"')
				_, err = from.Write(bytes.Join([][]byte{first[:at], []byte("2.12.9"), first[end:n]}, nil))
			}
			if err == nil {
				_, _ = io.Copy(from, server)
			}
		}()
	}
}

const tick = 20 * time.Millisecond
