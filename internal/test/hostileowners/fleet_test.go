package hostileowners

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

const (
	subjects = events.Subjects(events.DefaultPrefix)
	// patience is how long a test waits for a fact before it fails.
	patience = 60 * time.Second
	// asPinwheel makes the test binary run as the pinwheel command.
	asPinwheel = "HOSTILEOWNERS_PINWHEEL"
)

func TestMain(m *testing.M) {
	modulecheck.BeChild()
	if os.Getenv(asPinwheel) != "" {
		_ = os.Unsetenv(asPinwheel)
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
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
	processes []*process
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

// process is a running `pinwheel serve`.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	admin string        // host:port
	ready chan struct{} // closed when it takes events
	ended chan struct{} // closed when it has ended

	mu  sync.Mutex
	log bytes.Buffer
}

// start adds a process to the fleet, and waits until it takes events.
func (f *fleet) start(env ...string) *process {
	f.t.Helper()
	p := f.launch(env...)
	select {
	case <-p.ready:
	case <-p.ended:
		f.t.Fatalf("the process did not start:\n%s", p.logged())
	case <-time.After(patience):
		f.t.Fatal("the process is not ready")
	}
	f.processes = append(f.processes, p)
	return p
}

// launch starts a process with the environment of the fleet, and env.
func (f *fleet) launch(env ...string) *process {
	f.t.Helper()
	p := &process{t: f.t, admin: fmt.Sprintf("127.0.0.1:%d", natstest.FreePort(f.t)), ready: make(chan struct{}),
		ended: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], "serve")
	p.cmd.Env = append(append(os.Environ(), asPinwheel+"=1", "PINWHEEL_PROCESSES=0", "PINWHEEL_NATS_URL="+f.url,
		"PINWHEEL_NATS_USER=fleet", "PINWHEEL_NATS_PASSWORD=fleet-secret",
		"PINWHEEL_REPLY_PREFIXES=_INBOX.{owner}.", "PINWHEEL_ADMIN_ADDR="+p.admin, "PINWHEEL_LOG_FORMAT=json"),
		append(slices.Clone(f.env), env...)...)
	out, err := p.cmd.StderrPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		up := false
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			p.mu.Lock()
			p.log.WriteString(line)
			p.mu.Unlock()
			if !up && strings.Contains(line, "ready") {
				up = true
				close(p.ready)
			}
			if err != nil {
				break
			}
		}
		_ = p.cmd.Wait()
	}()
	f.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if f.t.Failed() {
			f.t.Logf("the last of what the process wrote:\n%s", p.logged()[max(0, len(p.logged())-6000):])
		}
	})
	return p
}

// logged returns the output of the process.
func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// http is the address at which the process answers HTTP requests, of its line "ready".
func (p *process) http() string {
	p.t.Helper()
	m := regexp.MustCompile(`"http":"([^"]+)"`).FindStringSubmatch(p.logged())
	require.NotNil(p.t, m)
	return m[1]
}

// get sends a request to the admin port.
func (p *process) get(path string) (status int, body string) {
	p.t.Helper()
	status, body, err := p.tryGet(path)
	require.NoError(p.t, err)
	return status, body
}

// tryGet is get for a process that may end meanwhile.
func (p *process) tryGet(path string) (status int, body string, err error) {
	r, err := http.Get("http://" + p.admin + path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

// metric returns the sum of the series of a metric whose labels contain these: name, value, name, value.
func (p *process) metric(name string, labels ...string) float64 {
	p.t.Helper()
	_, text := p.get("/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(p.t, err)
	sum := 0.0
next:
	for _, m := range families[name].GetMetric() {
		for i := 0; i < len(labels); i += 2 {
			found := false
			for _, l := range m.GetLabel() {
				found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
			}
			if !found {
				continue next
			}
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sum
}

// rss returns the resident memory of the process in bytes: now, and the maximum since it started.
func (p *process) rss() (now, most int64) {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(p.t, err)
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

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
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

// call calls a worker as its owner, and waits for the reply.
func call(t testing.TB, nc *nats.Conn, kind events.Kind, owner, worker string, body []byte) *events.Reply {
	t.Helper()
	m, err := nc.Request(fmt.Sprintf("%s.call.%s.%s.%s", subjects, kind, owner, worker), body, patience)
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
