// Package fleettest gives tests a whole fleet, embedded in the test process: NATS, consumer, dispatcher and isolates.
// Tests use the fleet with the pinwheel command.
package fleettest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Fleet is a running fleet with one process. It ends with the test.
type Fleet struct {
	URL    string        // of its NATS
	HTTP   string        // address where it answers HTTP requests; "" = it does not
	NC     *nats.Conn    // to it
	Config config.Config // for commands
}

// Config is the configuration of a test's fleet unless changes of Start alter it.
func Config(t testing.TB) config.Config {
	c := config.Default()
	c.NatsPort, c.Data, c.AdminAddr, c.LogFormat, c.Processes = -1, natstest.StoreDir(t), "", "json", 0
	c.Threads, c.MaxIsolates = 2, 100
	c.DrainTimeout = 5 * time.Second
	c.MaxBytes, c.WorkersMaxBytes, c.AssetsMaxBytes, c.DeadLetterBytes = 64<<20, 64<<20, 64<<20, 64<<20
	c.ResultAge = time.Hour
	return c
}

// Start runs a fleet with NATS embedded on a free port, and returns when it takes events. Each change may alter the
// configuration.
func Start(t testing.TB, change ...func(*config.Config)) *Fleet {
	t.Helper()
	cfg := Config(t)
	for _, f := range change {
		f(&cfg)
	}
	require.NoError(t, cfg.Validate())
	ctx, cancel := context.WithCancel(context.Background())
	up, done := make(chan *fleet.Process, 1), make(chan error, 1)
	go func() {
		done <- fleet.Serve(ctx, cfg, zerolog.Nop(), func(p *fleet.Process, _ string) { up <- p })
	}()
	f := &Fleet{Config: cfg}
	select {
	case p := <-up:
		f.URL, f.HTTP = p.URL(), p.HTTPAddr()
	case err := <-done:
		cancel()
		t.Fatalf("the fleet did not start: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	f.Config.NatsURL = f.URL
	var err error
	f.NC, err = natstest.Dial(f.URL, nats.UserInfo(cfg.NatsUser, cfg.NatsPassword)) // both empty: no credentials
	require.NoError(t, err)
	t.Cleanup(f.NC.Close)
	return f
}

// Pinwheel runs the pinwheel command with these arguments against the fleet.
func (f *Fleet) Pinwheel(args ...string) Result { return f.PinwheelWith("", args...) }

// PinwheelWith does what Pinwheel does, with text on stdin.
func (f *Fleet) PinwheelWith(stdin string, args ...string) Result {
	var out, err bytes.Buffer
	code := cli.MainWith(f.Config, args, strings.NewReader(stdin), &out, &err)
	return Result{code, out.String(), err.String()}
}

// Result is the result of a command.
type Result struct {
	Code     int
	Out, Err string // stdout, stderr
}

// Deploy runs pinwheel deploy with these arguments. The command waits until the fleet has the version. Deploy returns
// the command's output.
func (f *Fleet) Deploy(t testing.TB, args ...string) string {
	t.Helper()
	r := f.Pinwheel(append([]string{"deploy"}, args...)...)
	require.Zero(t, r.Code, r.Err)
	return r.Out
}
