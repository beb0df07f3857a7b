// Package fleettest gives tests a whole fleet, embedded in the test process: NATS, consumer, dispatcher and
// isolates, with the pinwheel command to talk to it.
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

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/cli"
)

// Fleet is a running fleet of one process. It ends with the test.
type Fleet struct {
	URL    string     // of its NATS
	NC     *nats.Conn // to it
	Config cli.Config // for commands
}

// Config is what a test's fleet has unless Start is told otherwise.
func Config(t testing.TB) cli.Config {
	return cli.Config{
		NatsPort: -1, Data: t.TempDir(), LogLevel: "info", LogFormat: "json",
		Threads: 2, BackgroundThreads: -1, Slots: 64, Window: 1024, MaxIsolates: 100, ContextMaxReuses: 1000, ContextKeep: 32 << 20, SpareIsolates: 2, CodeCache: 64 << 20, OwnerMaxQueued: 512,
		AckWait: 5 * time.Second, DrainTimeout: 5 * time.Second,
		Durability: "default", Heartbeat: 2 * time.Second, DeadLetterAge: 720 * time.Hour, DeadLetterBytes: 64 << 20,
		Duplicates: 2 * time.Minute, ResultAge: time.Hour, MaxBytes: 64 << 20, Replicas: 1, Prefix: events.DefaultPrefix, ReplyPrefixes: cli.List{"_INBOX."},
	}
}

// Start runs a fleet with NATS embedded on a free port, and returns once it takes events. Each change may alter its configuration.
func Start(t testing.TB, change ...func(*cli.Config)) *Fleet {
	t.Helper()
	cfg := Config(t)
	for _, f := range change {
		f(&cfg)
	}
	require.NoError(t, cfg.Validate())
	ctx, cancel := context.WithCancel(context.Background())
	up, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- cli.Serve(ctx, cfg, zerolog.Nop(), func(url, _ string) { up <- url }) }()
	f := &Fleet{Config: cfg}
	select {
	case f.URL = <-up:
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
	f.NC, err = nats.Connect(f.URL, nats.UserInfo(cfg.NatsUser, cfg.NatsPassword)) // both empty: nobody
	require.NoError(t, err)
	t.Cleanup(f.NC.Close)
	return f
}

// Pinwheel runs the command with these arguments against the fleet.
func (f *Fleet) Pinwheel(args ...string) Result { return f.PinwheelWith("", args...) }

// PinwheelWith is Pinwheel with something on stdin.
func (f *Fleet) PinwheelWith(stdin string, args ...string) Result {
	var out, err bytes.Buffer
	code := cli.MainWith(f.Config, args, strings.NewReader(stdin), &out, &err)
	return Result{code, out.String(), err.String()}
}

// Result is how a command ended.
type Result struct {
	Code     int
	Out, Err string // stdout, stderr
}

// Deploy runs pinwheel deploy with these arguments, which waits until the fleet has the version. It returns what the command printed.
func (f *Fleet) Deploy(t testing.TB, args ...string) string {
	t.Helper()
	r := f.Pinwheel(append([]string{"deploy"}, args...)...)
	require.Zero(t, r.Code, r.Err)
	return r.Out
}
