package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = 60 * time.Second

// Exit codes of the command.
const (
	exitFailure = 1
	exitWarn    = 1 // of doctor
	exitBad     = 2
)

// output keeps the output of several goroutines.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func runDoctor(t *testing.T, cfg config.Config, args ...string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.MainWith(cfg, append([]string{"doctor"}, args...), strings.NewReader(""), &stdout, &stderr)
	require.Empty(t, stderr.String())
	return code, stdout.String()
}

// silent is the isolates.Host of a check: modules do nothing but log while they load.
type silent struct{ isolates.Host }

func (silent) Log(events.LogLine) {}

// testFleet is a fleet in the test process, with a connection to its NATS.
type testFleet struct {
	t     testing.TB
	fleet *fleet.Process
	nc    *nats.Conn
	js    jetstream.JetStream
	check *isolates.Checker
	stop  func() // drains and waits

	policy workers.Policy // for deploys
}

func testConfig(t testing.TB) config.Config {
	t.Helper()
	cfg, err := config.Load()
	require.NoError(t, err)
	cfg.NatsPort, cfg.Data, cfg.AdminAddr = -1, natstest.StoreDir(t), ""
	cfg.DrainTimeout = 5 * time.Second
	return cfg
}

// inProcess has JavaScript of all owners run in the process of the fleet, and not in cells: a test with it is about the
// threads of that process, or about what only holds there.
func inProcess(c *config.Config) { c.Cell = "shared" }

func openFleet(t testing.TB, change ...func(*config.Config)) *testFleet {
	t.Helper()
	cfg := testConfig(t)
	for _, f := range change {
		f(&cfg)
	}
	f, err := fleet.Open(cfg, zerolog.Nop())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	select {
	case <-f.Ready():
	case err := <-done:
		t.Fatalf("the fleet did not start: %v", err)
	}
	h := &testFleet{t: t, fleet: f}
	h.connect(f.URL())
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

func (h *testFleet) connect(url string) {
	var cfg config.Config // some tests start more processes of a fleet
	if h.fleet != nil {
		cfg = h.fleet.Config()
	}
	cfg.NatsURL = url
	var err error
	h.nc, err = config.Connect(cfg)
	require.NoError(h.t, err)
	h.t.Cleanup(h.nc.Close)
	h.js, err = jetstream.New(h.nc)
	require.NoError(h.t, err)
	h.check, err = isolates.OpenChecker(silent{}, isolates.CheckConfig{Compilers: workers.Compilers(cfg.Compilers)})
	require.NoError(h.t, err)
	h.t.Cleanup(h.check.Close)
}

// deploy makes code the active version of owner's worker, and waits until the fleet has it.
func (h *testFleet) deploy(owner, name, code string, manifest ...string) *workers.Worker {
	h.t.Helper()
	dir := h.t.TempDir()
	path := filepath.Join(dir, name+".js")
	require.NoError(h.t, os.WriteFile(path, []byte(code), 0o600))
	for _, m := range manifest {
		require.NoError(h.t, os.WriteFile(filepath.Join(dir, name+".pinwheel.json"), []byte(m), 0o600))
	}
	trusts := func(context.Context, *workers.Worker) error { return nil } // the processes check sources again
	store, err := deploy.Open(context.Background(), h.js, deploy.Config{CheckSources: trusts})
	require.NoError(h.t, err)
	d, err := store.Deploy(context.Background(), deploy.Request{Owner: owner, Path: path, Policy: h.policy}, h.check)
	require.NoError(h.t, err)
	h.inEffect(d)
	return d.Worker
}

// inEffect returns when a deployment is in effect in all processes.
func (h *testFleet) inEffect(d deploy.Deployed) {
	h.t.Helper()
	_, err := control.NewClient(h.nc, events.DefaultPrefix, "").Await(context.Background(), d.Worker.Target(),
		d.Deployment)
	require.NoError(h.t, err)
}

// send publishes an event and returns a channel for its reply.
func (h *testFleet) send(k events.Kind, target string, body string, header ...string) <-chan *nats.Msg {
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
	require.NoError(h.t, h.nc.Flush())
	h.t.Cleanup(func() { _ = sub.Unsubscribe() })
	_, err = h.js.PublishMsg(context.Background(), m)
	require.NoError(h.t, err)
	return replies
}

// reply waits for a reply.
func (h *testFleet) reply(c <-chan *nats.Msg) *events.Reply {
	h.t.Helper()
	return h.replyWithin(c, patience)
}

// replyWithin is reply for events that take long.
func (h *testFleet) replyWithin(c <-chan *nats.Msg, longest time.Duration) *events.Reply {
	h.t.Helper()
	select {
	case m := <-c:
		r, err := events.DecodeReply(events.Header(m.Header), m.Data)
		require.NoError(h.t, err)
		return r
	case <-time.After(longest):
		h.t.Fatal("no reply")
		return nil
	}
}

// metric is the sum of a metric of the process, over the series that have the labels in pairs of name and value.
func (h *testFleet) metric(name string, labels ...string) (sum float64) {
	h.t.Helper()
	families, err := h.fleet.Gatherer().Gather()
	require.NoError(h.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return fleettest.Sum(f, labels...)
		}
	}
	h.t.Fatal("there is no metric " + name)
	return 0
}

// processes is the number of processes of the fleet that this one knows.
func (h *testFleet) processes() int { return int(h.metric("pinwheel_fleet_processes")) }

// unsettled returns how many events are not settled.
func (h *testFleet) unsettled() uint64 {
	h.t.Helper()
	n, err := resources.Count(context.Background(), h.js, "PINWHEEL_EVENTS", events.Subjects(events.DefaultPrefix).
		Anchor())
	require.NoError(h.t, err)
	return n
}

func (h *testFleet) settled() {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.unsettled() == 0 }, patience, 20*time.Millisecond)
}

// dead lists the dead letters.
func (h *testFleet) dead() []*events.DeadLetter {
	h.t.Helper()
	var list []*events.DeadLetter
	for l, err := range deadletter.NewStore(h.js, events.DefaultPrefix).List(context.Background(), deadletter.Filter{}) {
		require.NoError(h.t, err)
		list = append(list, l)
	}
	return list
}

// Faults that another try does not heal are told apart from others: each names the variable, in Pinwheel's words.
func TestFaultsThatStayNameTheVariable(t *testing.T) {
	t.Parallel()
	one := func() string { return natstest.StartOptions(t, &server.Options{JetStreamMaxStore: 1 << 30}) }
	taken := one()
	nc, err := natstest.Dial(taken)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"taken.>"}})
	require.NoError(t, err)
	locked := natstest.StartOptions(t, &server.Options{Username: "u", Password: "p"})
	narrow := natstest.StartOptions(t,
		&server.Options{Users: []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.CREATE.>"}},
		}}}})
	key := filepath.Join(t.TempDir(), "gone")
	for name, c := range map[string]struct {
		change func(c *config.Config)
		words  []string
	}{
		"copies on one server": {func(c *config.Config) { c.NatsURL, c.Replicas = one(), 3 },
			[]string{"PINWHEEL_REPLICAS is 3", "one server"}},
		"more than the storage": {func(c *config.Config) { c.NatsURL, c.MaxBytes, c.WorkersMaxBytes = one(), 900<<30, 1<<20 },
			[]string{"PINWHEEL_MAX_BYTES is (900GiB)", "max_file_store"}},
		"letters over storage": {func(c *config.Config) {
			c.NatsURL, c.MaxBytes, c.WorkersMaxBytes, c.DeadLetterBytes = one(), 1<<20, 1<<20, 900<<30
		}, []string{"PINWHEEL_DEAD_LETTER_BYTES is (900GiB)"}},
		"subjects of another": {func(c *config.Config) { c.NatsURL, c.MaxBytes, c.Prefix = taken, 1<<20, "taken" },
			[]string{"PINWHEEL_PREFIX is taken"}},
		"no credentials": {func(c *config.Config) { c.NatsURL = locked }, []string{"a client without credentials",
			"PINWHEEL_NATS_CREDS"}},
		"wrong password": {func(c *config.Config) { c.NatsURL, c.NatsUser, c.NatsPassword = locked, "u", "wrong" },
			[]string{"PINWHEEL_NATS_USER"}},
		"too little permitted": {func(c *config.Config) { c.NatsURL, c.NatsUser, c.NatsPassword = narrow, "u", "p" },
			[]string{"may not do what the fleet must", "$JS.API.STREAM.CREATE"}},
		"key that cannot be read": {func(c *config.Config) { c.NatsURL, c.SecretsKey = one(), key }, []string{key}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			c.change(&cfg)
			f, err := fleet.Open(cfg, zerolog.Nop())
			if err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err = f.Run(ctx)
			}
			var fault *inventory.FaultError
			require.ErrorAs(t, err, &fault)
			for _, w := range c.words {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

// serve with a supervisor ends at once when its processes have such a fault, with its text and an exit code of its own.
func TestServeEndsWithAFaultThatStays(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	out, err := fleettest.Command([]string{"TMPDIR=" + t.TempDir(), "PINWHEEL_PROCESSES=2",
		"PINWHEEL_ADMIN_ADDR=127.0.0.1:0", "PINWHEEL_LOG_FORMAT=json",
		"PINWHEEL_NATS_URL=" + srv.URL(), "PINWHEEL_REPLICAS=3"}, "serve").CombinedOutput()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, inventory.ExitCode, ended.ExitCode(), string(out))
	require.Regexp(t, `\npinwheel: PINWHEEL_REPLICAS is 3, and this NATS is one server`, string(out))
	require.NotContains(t, string(out), `"updated"`)
}
