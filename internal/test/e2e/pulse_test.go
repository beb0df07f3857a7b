package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A nats-server that hangs keeps its connections open. A process on such a server is not ready and says since when. It
// is ready again afterwards.
func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	port := natstest.FreePort(t)
	server := fleettest.Serve(t, "", "PINWHEEL_NATS_PORT="+strconv.Itoa(port), "PINWHEEL_DATA="+natstest.StoreDir(t))
	h := openFleet(t, func(c *config.Config) { c.NatsURL = "nats://127.0.0.1:" + strconv.Itoa(port) })
	require.NoError(t, h.fleet.CheckReady(context.Background()))
	server.Signal(syscall.SIGSTOP)
	require.Eventually(t, func() bool {
		err := h.fleet.CheckReady(context.Background())
		return err != nil && strings.Contains(err.Error(), "NATS has not answered since 20")
	}, patience, tick)
	server.Signal(syscall.SIGCONT)
	require.Eventually(t, func() bool { return h.fleet.CheckReady(context.Background()) == nil }, patience, tick)
	h.stop()
	server.Signal(os.Interrupt)
}

// A fleet refuses a server that is too old before it creates anything there. The test uses a real server behind a link
// that changes the version.
func TestServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	to, err := url.Parse(srv.URL())
	require.NoError(t, err)
	go olderServer(l, to.Host)
	cfg := testConfig(t)
	cfg.NatsURL = "nats://" + l.Addr().String()
	_, err = fleet.Open(cfg, zerolog.Nop())
	require.ErrorContains(t, err, "is 2.12.9: Pinwheel needs 2.14 or later")
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	names := js.StreamNames(t.Context())
	require.Empty(t, <-names.Name(), "nothing was made")
}

// olderServer forwards connections to a server, and changes its version to one that is too old: in each INFO, since the
// server may send another one when the client has connected.
func olderServer(l net.Listener, to string) {
	version := regexp.MustCompile(`"version":"[^"]*"`)
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
			// Each message ends with a line end, so that none waits for the next one.
			for in := bufio.NewReader(server); ; {
				line, err := in.ReadBytes('\n')
				if bytes.HasPrefix(line, []byte("INFO ")) {
					line = version.ReplaceAll(line, []byte(`"version":"2.12.9"`))
				}
				if _, failed := from.Write(line); err != nil || failed != nil {
					return
				}
			}
		}()
	}
}

const tick = 20 * time.Millisecond
