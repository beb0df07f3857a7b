package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

// The test binary also runs as the program's own child processes, and as faulty peers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "nats-server", "floor", "bridge", fileServer, echoServer, pinnedServer:
			os.Exit(run(os.Args[1:]))
		case "liar":
			os.Exit(liar(os.Args[2]))
		}
	}
	dir, err := os.MkdirTemp("", "loadtest-binary-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv(binaryDir, dir) // for pinwheelBinary
	parallel.AtOnce(parallel.Fleets)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// binaryDir names where pinwheelBinary puts what it builds.
const binaryDir = "LOADTEST_BINARY_DIR"

// liar is a peer that handles event 3 with a fault that the verifier must detect.
func liar(fault string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := consume(ctx, func(nc *nats.Conn, m jetstream.Msg) error {
		id, err := strconv.Atoi(m.Headers().Get(events.HeaderEventID)[1:])
		if err != nil {
			return err
		}
		replyTo, text := m.Headers().Get(events.HeaderReplyTo), receipt(nil, id)
		if id == 3 {
			switch fault {
			case "lost":
				return m.Ack()
			case "wrong":
				text = receipt(nil, 4)
			case "double":
				if err := nc.Publish(replyTo, text); err != nil {
					return err
				}
			case "unacked":
				return nc.Publish(replyTo, text)
			case "dies":
				os.Exit(3)
			}
		}
		return errors.Join(nc.Publish(replyTo, text), m.Ack())
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// pinwheelBinary builds pinwheel once for all tests. go run keeps the linked program in Go's cache, and go build links
// each time. -exec cp copies the program instead of running it.
var pinwheelBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.Getenv(binaryDir), "pinwheel")
	cmd := exec.Command("go", "run", "-exec", "cp", ".", path)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// openTest returns a runner for small runs. Without a fleet it builds nothing.
func openTest(t *testing.T, fleet bool) *runner {
	t.Helper()
	o := defaultOptions()
	o.quiet, o.repeats, o.patience, o.duration = 0, 0, 10*time.Second, time.Second
	o.pinwheel, o.stores = "not-needed", natstest.StoreDir(t)
	if fleet {
		path, err := pinwheelBinary()
		require.NoError(t, err)
		o.pinwheel = path
	}
	r, err := openRunner(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}
