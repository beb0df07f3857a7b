package hostileowners

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

const (
	subjects = events.Subjects(events.DefaultPrefix)
	// patience is how long a test waits for a fact before it fails.
	patience = 60 * time.Second
)

func TestMain(m *testing.M) {
	fleettest.BeChild()
	for _, name := range []string{"FLEET", "BACKUP", "ACME", "BETA"} { // of deploy/nats/users.conf
		_ = os.Setenv(name+"_PASSWORD", strings.ToLower(name)+"-secret")
	}
	parallel.AtOnce(parallel.Fleets)
	os.Exit(m.Run())
}

// fleet is a nats-server with deploy/nats/users.conf, and processes of pinwheel with default limits.
type fleet struct {
	t         testing.TB
	url       string // of NATS
	server    *server.Server
	processes []*fleettest.Process
	nc        *nats.Conn // as the fleet's user
	js        jetstream.JetStream
	cfg       config.Config // for commands
	env       []string      // of every process
	unguarded bool          // the guard against the attack is off
}

// storeVariable is for the server, although it is passed with the environment of the process: the number of bytes that
// the server may store.
const storeVariable = "HOSTILEOWNERS_MAX_STORE"

// maxStore removes storeVariable from env.
func maxStore(t testing.TB, env []string) (bytes int64, rest []string) {
	t.Helper()
	for _, e := range env {
		if text, ok := strings.CutPrefix(e, storeVariable+"="); ok {
			var err error
			bytes, err = strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
		} else {
			rest = append(rest, e)
		}
	}
	return bytes, rest
}

// openFleet starts a server and one process of pinwheel. env is added to the environment of the process.
func openFleet(t testing.TB, env ...string) *fleet {
	t.Helper()
	most, env := maxStore(t, env)
	o, err := server.ProcessConfigFile(filepath.Join("..", "..", "..", "deploy", "nats", "users.conf"))
	require.NoError(t, err)
	o.Host, o.Port, o.HTTPHost, o.HTTPPort, o.NoSigs, o.NoLog, o.StoreDir =
		"127.0.0.1", -1, "127.0.0.1", -1, true, true, natstest.StoreDir(t)
	if most > 0 {
		o.JetStreamMaxStore = most
	}
	f := &fleet{t: t, env: env}
	f.server, err = server.NewServer(o)
	require.NoError(t, err)
	f.server.Start()
	t.Cleanup(func() { f.server.Shutdown(); f.server.WaitForShutdown() })
	require.True(t, f.server.ReadyForConnections(patience))
	f.url = f.server.ClientURL()
	f.cfg, err = config.Load()
	require.NoError(t, err)
	f.cfg.NatsURL, f.cfg.NatsUser, f.cfg.NatsPassword, f.cfg.LogLevel = f.url, "fleet", "fleet-secret", "error"
	f.start()
	f.nc = f.as("fleet")
	f.js, err = jetstream.New(f.nc)
	require.NoError(t, err)
	return f
}

// attackFor is how long an attack that does no harm goes on: d with its guard. Without the guard the harm will come, on
// a busy machine late.
func (f *fleet) attackFor(d time.Duration) time.Duration {
	if f.unguarded {
		return 2 * patience
	}
	return d
}

// as connects as a user of users.conf: fleet, acme or beta.
func (f *fleet) as(user string) *nats.Conn {
	f.t.Helper()
	inbox := "_INBOX." + user
	if user == "fleet" {
		inbox = "_INBOX"
	}
	nc, err := natstest.Dial(f.url, nats.UserInfo(user, user+"-secret"), nats.CustomInboxPrefix(inbox),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(f.t, err)
	f.t.Cleanup(nc.Close)
	return nc
}

// start adds a process to the fleet, and waits until it takes events.
func (f *fleet) start(env ...string) *fleettest.Process {
	f.t.Helper()
	p := f.launch(env...)
	p.AwaitReady()
	f.processes = append(f.processes, p)
	return p
}

// launch starts a process with the environment of the fleet, and env.
func (f *fleet) launch(env ...string) *fleettest.Process {
	f.t.Helper()
	return fleettest.Launch(f.t, f.url, slices.Concat([]string{"PINWHEEL_NATS_USER=fleet",
		"PINWHEEL_NATS_PASSWORD=fleet-secret", "PINWHEEL_REPLY_PREFIXES=_INBOX.{owner}.",
		"PINWHEEL_ADMIN_ADDR=127.0.0.1:0"}, f.env, env)...)
}

// rss returns the resident memory of a process in bytes: now, and the maximum since it started.
func rss(t testing.TB, p *fleettest.Process) (now, most int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		switch name {
		case "VmRSS":
			now = kb << 10
		case "VmHWM":
			most = kb << 10
		}
	}
	return now, most
}

// pinwheel runs a command as operators of the platform do, with the fleet's user.
func (f *fleet) pinwheel(args ...string) (code int, out, err string) {
	f.t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.MainWith(f.cfg, args, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// deploy deploys a worker. manifest is JSON, or ""; args are further arguments of the command.
func (f *fleet) deploy(owner, worker, code, manifest string, args ...string) {
	f.t.Helper()
	file := writeWorker(f.t, worker, code)
	if manifest != "" {
		require.NoError(f.t, os.WriteFile(filepath.Join(filepath.Dir(file), worker+".pinwheel.json"), []byte(manifest),
			0o600))
	}
	status, _, text := f.pinwheel(append([]string{"deploy", file, "--owner", owner}, args...)...)
	require.Zero(f.t, status, text)
	require.NotContains(f.t, text, "not taken it up")
}

// writeWorker writes the source of a worker to a directory of its own.
func writeWorker(t testing.TB, worker, code string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), worker+".js")
	require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
	return file
}

// call calls a worker as its owner, and waits for the reply. It waits longer than others do: a thread that V8 does not
// give back has the lowest priority, and beside other work on this machine it needs minutes for seconds of CPU time.
func call(t testing.TB, nc *nats.Conn, kind events.Kind, owner, worker string, body []byte) *events.Reply {
	t.Helper()
	m, err := nc.Request(fmt.Sprintf("%s.call.%s.%s.%s", subjects, kind, owner, worker), body, 5*patience)
	require.NoError(t, err)
	r, err := events.DecodeReply(events.Header(m.Header), m.Data)
	require.NoError(t, err)
	return r
}

// until waits until is returns true.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, patience, 20*time.Millisecond, what)
}

// data returns the result of a task.
func data[T any](t *testing.T, r *events.Reply) T {
	t.Helper()
	require.Nil(t, r.Failure)
	var answer struct{ Data T }
	require.NoError(t, json.Unmarshal(r.Body, &answer))
	return answer.Data
}
