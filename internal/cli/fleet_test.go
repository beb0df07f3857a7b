package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = 60 * time.Second

// asMain makes the test binary behave as pinwheel: tests that kill processes run it again.
const asMain = "PINWHEEL_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	natstest.BeServer()
	if os.Getenv(asMain) != "" || os.Getenv(childVariable) != "" {
		_ = os.Unsetenv(asMain)
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// house is a fleet in the test process, with a connection to its NATS.
type house struct {
	t     testing.TB
	fleet *fleet
	nc    *nats.Conn
	js    jetstream.JetStream
	check *isolates.Checker
	stop  func() // drains and waits
}

func testConfig(t testing.TB) Config {
	t.Helper()
	cfg, err := LoadConfig()
	require.NoError(t, err)
	cfg.NatsPort, cfg.Data, cfg.AdminAddr = -1, t.TempDir(), ""
	cfg.AckWait, cfg.DrainTimeout = 2*time.Second, 5*time.Second
	return cfg
}

func openHouse(t testing.TB, change ...func(*Config)) *house {
	t.Helper()
	cfg := testConfig(t)
	for _, f := range change {
		f(&cfg)
	}
	f, err := openFleet(cfg, zerolog.Nop())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.run(ctx) }()
	select {
	case <-f.ready():
	case err := <-done:
		t.Fatalf("the fleet did not start: %v", err)
	}
	h := &house{t: t, fleet: f}
	h.connect(f.url())
	stopped := false
	h.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(h.stop)
	return h
}

func (h *house) connect(url string) {
	var cfg Config // some have processes of their own for a fleet
	if h.fleet != nil {
		cfg = h.fleet.cfg
	}
	cfg.NatsURL = url
	var err error
	h.nc, err = connect(cfg)
	require.NoError(h.t, err)
	h.t.Cleanup(h.nc.Close)
	h.js, err = jetstream.New(h.nc)
	require.NoError(h.t, err)
	h.check, err = isolates.OpenChecker(&host{nc: h.nc}, nil, nil)
	require.NoError(h.t, err)
	h.t.Cleanup(h.check.Close)
}

// deploy makes code the active version of owner's worker and waits until the fleet has it.
func (h *house) deploy(owner, name, code string, manifest ...string) *events.Worker {
	h.t.Helper()
	dir := h.t.TempDir()
	path := filepath.Join(dir, name+".js")
	require.NoError(h.t, os.WriteFile(path, []byte(code), 0o600))
	for _, m := range manifest {
		require.NoError(h.t, os.WriteFile(filepath.Join(dir, name+".pinwheel.json"), []byte(m), 0o600))
	}
	store, err := deploy.Open(context.Background(), h.js, deploy.Config{})
	require.NoError(h.t, err)
	w, _, err := store.Deploy(context.Background(), deploy.Request{Owner: owner, Path: path}, h.check)
	require.NoError(h.t, err)
	fleet := &remote{nc: h.nc, js: h.js, subjects: events.DefaultPrefix}
	_, err = fleet.await(context.Background(), w)
	require.NoError(h.t, err)
	return w
}

// send publishes an event and returns a channel of its reply.
func (h *house) send(k events.Kind, target string, body string, header ...string) <-chan *nats.Msg {
	h.t.Helper()
	owner, name, err := events.ParseTarget(target)
	require.NoError(h.t, err)
	m := nats.NewMsg(events.Subjects(events.DefaultPrefix).Event(k, owner, name))
	m.Data = []byte(body)
	inbox := h.nc.NewRespInbox()
	m.Header.Set(events.HeaderReplyTo, inbox)
	for i := 0; i+1 < len(header); i += 2 {
		m.Header[header[i]] = append(m.Header[header[i]], header[i+1])
	}
	replies := make(chan *nats.Msg, 8)
	sub, err := h.nc.ChanSubscribe(inbox, replies)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = sub.Unsubscribe() })
	_, err = h.js.PublishMsg(context.Background(), m)
	require.NoError(h.t, err)
	return replies
}

// reply waits for a reply.
func (h *house) reply(c <-chan *nats.Msg) *events.Reply {
	h.t.Helper()
	select {
	case m := <-c:
		r, err := events.DecodeReply(events.Header(m.Header), m.Data)
		require.NoError(h.t, err)
		return r
	case <-time.After(patience):
		h.t.Fatal("no reply")
		return nil
	}
}

// unsettled is how many events nobody has settled.
func (h *house) unsettled() uint64 {
	h.t.Helper()
	n, err := assets.Count(context.Background(), h.js, "PINWHEEL_EVENTS", events.Subjects(events.DefaultPrefix).Pin())
	require.NoError(h.t, err)
	return n
}

func (h *house) settled() {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.unsettled() == 0 }, patience, 10*time.Millisecond)
}

// dead lists the dead letters.
func (h *house) dead() []*events.DeadLetter {
	h.t.Helper()
	var list []*events.DeadLetter
	for l, err := range consumer.NewDeadLetters(h.js, events.DefaultPrefix).List(context.Background(), consumer.Filter{}) {
		require.NoError(h.t, err)
		list = append(list, l)
	}
	return list
}

// TestAFleetThatCannotOpenSaysWhy asks one server for three copies.
func TestAFleetThatCannotOpenSaysWhy(t *testing.T) {
	cfg := testConfig(t)
	cfg.Replicas = 3
	f, err := openFleet(cfg, zerolog.Nop())
	require.Nil(t, f)
	require.ErrorContains(t, err, "replicas > 1 not supported in non-clustered mode")
}
