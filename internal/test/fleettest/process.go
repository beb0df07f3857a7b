package fleettest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/cell"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const (
	// asPinwheel makes the test binary run as pinwheel.
	asPinwheel = "_PINWHEEL_TEST_AS"
	// patience is how long tests wait for a fact on a busy machine.
	patience = 60 * time.Second
)

// BeChild runs the test binary as what a test has started it as: pinwheel, a nats-server or a check of modules. Then it
// does not return. Call it first in TestMain.
func BeChild() {
	natstest.BeServer()
	cell.BeChild()
	modulecheck.BeChild()
	if os.Getenv(asPinwheel) != "" {
		hearBreach()
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
}

// Command is a pinwheel command in a process of its own, with env added to the environment. TestMain must call BeChild.
func Command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asPinwheel+"=1"), env...)
	return cmd
}

// Process is `pinwheel serve` in a process of its own. It ends with the test.
type Process struct {
	URL, HTTP, Admin string        // of NATS, and addresses; from the line that says that it is ready
	Ready, Ended     chan struct{} // closed when it takes events, and when it has ended

	t    testing.TB
	cmd  *exec.Cmd
	tell func(line map[string]any)
	err  error // of its end

	mu    sync.Mutex
	text  strings.Builder
	lines []map[string]any
}

// Serve starts `pinwheel serve` on the NATS at url, or with NATS embedded if that is "", and waits until it takes
// events. It is one process without a supervisor unless env says otherwise.
func Serve(t testing.TB, url string, env ...string) *Process {
	t.Helper()
	return ServeTelling(t, nil, url, env...)
}

// ServeTelling is Serve with a function that gets each line of the log. A line that is not JSON has the one key text.
func ServeTelling(t testing.TB, tell func(line map[string]any), url string, env ...string) *Process {
	t.Helper()
	p := launch(t, nil, tell, url, env)
	p.AwaitReady()
	return p
}

// ServeIn is Serve in a process that the command in starts: it gets the program with its arguments, and becomes it.
func ServeIn(t testing.TB, in []string, url string, env ...string) *Process {
	t.Helper()
	p := launch(t, in, nil, url, env)
	p.AwaitReady()
	return p
}

// LaunchIn is ServeIn that does not wait.
func LaunchIn(t testing.TB, in []string, url string, env ...string) *Process {
	t.Helper()
	return launch(t, in, nil, url, env)
}

// Launch is Serve that does not wait.
func Launch(t testing.TB, url string, env ...string) *Process {
	t.Helper()
	return launch(t, nil, nil, url, env)
}

func launch(t testing.TB, in []string, tell func(line map[string]any), url string, env []string) *Process {
	t.Helper()
	sockets, err := os.MkdirTemp("", "pw") // a killed supervisor leaves its directory behind
	require.NoError(t, err)
	p := &Process{t: t, tell: tell, Ready: make(chan struct{}), Ended: make(chan struct{}),
		cmd: Command(append([]string{"TMPDIR=" + sockets, "PINWHEEL_NATS_URL=" + url, "PINWHEEL_PROCESSES=0",
			"PINWHEEL_ADMIN_ADDR=", "PINWHEEL_LOG_FORMAT=json"}, env...), "serve")}
	if len(in) > 0 {
		p.cmd.Path, err = exec.LookPath(in[0])
		require.NoError(t, err)
		p.cmd.Args = slices.Concat(in, p.cmd.Args)
	}
	out, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.read(out)
	t.Cleanup(func() {
		p.Kill()
		_ = os.RemoveAll(sockets)
		if t.Failed() {
			text := p.Log()
			t.Logf("the last of what the process wrote:\n%s", text[max(0, len(text)-6000):])
		}
	})
	return p
}

func (p *Process) read(out io.Reader) {
	defer close(p.Ended)
	for lines := bufio.NewReader(out); ; {
		text, err := lines.ReadString('\n')
		if text != "" {
			p.add(text)
		}
		if err != nil {
			break
		}
	}
	p.err = p.cmd.Wait()
}

func (p *Process) add(text string) {
	line := map[string]any{}
	if json.Unmarshal([]byte(text), &line) != nil { // what Go or V8 prints when the process crashes
		line = map[string]any{"text": strings.TrimSuffix(text, "\n")}
	}
	p.mu.Lock()
	p.text.WriteString(text)
	p.lines = append(p.lines, line)
	p.mu.Unlock()
	if p.tell != nil {
		p.tell(line)
	}
	message, _ := line["message"].(string)
	select {
	case <-p.Ready:
	default:
		if strings.HasPrefix(message, "ready") && line["process"] == nil {
			p.URL, _ = line["nats"].(string)
			p.HTTP, _ = line["http"].(string)
			p.Admin, _ = line["admin"].(string)
			close(p.Ready)
		}
	}
}

// AwaitReady waits until the process takes events.
func (p *Process) AwaitReady() {
	p.t.Helper()
	select {
	case <-p.Ready:
	case <-p.Ended:
		select {
		case <-p.Ready:
		default:
			// The end of the test kills it too: it may have served events before its log said that it is ready.
			if p.t.Context().Err() == nil {
				p.t.Fatalf("the process ended, and was not ready:\n%s", p.Log())
			}
		}
	case <-time.After(patience):
		p.Signal(syscall.SIGQUIT) // its goroutines
		<-p.Ended
		p.t.Fatalf("the process does not get ready:\n%s", p.Log())
	}
}

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal. The process may have ended, which is as good.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill kills the process, and waits for its end.
func (p *Process) Kill() {
	p.Signal(os.Kill)
	<-p.Ended
}

// Wait waits until the process has ended. It returns an error if its exit code is not 0.
func (p *Process) Wait() error {
	<-p.Ended
	return p.err
}

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.Ended:
		return false
	default:
		return true
	}
}

// Log is what the process has written so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// Lines are the lines of Log, as ServeTelling describes them.
func (p *Process) Lines() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines
}

// Get asks the admin port.
func (p *Process) Get(path string) (status int, body []byte) {
	p.t.Helper()
	status, body, err := p.TryGet(path)
	require.NoError(p.t, err)
	return status, body
}

// TryGet is Get for a process that may end meanwhile.
func (p *Process) TryGet(path string) (status int, body []byte, err error) {
	r, err := http.Get("http://" + p.Admin + path)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = r.Body.Close() }()
	body, err = io.ReadAll(r.Body)
	return r.StatusCode, body, err
}

// Metrics are the metrics of the admin port, by name, read as Prometheus does.
func (p *Process) Metrics() map[string]*dto.MetricFamily {
	p.t.Helper()
	status, text := p.Get("/metrics")
	require.Equal(p.t, http.StatusOK, status)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	require.NoError(p.t, err)
	return all
}

// Metric is Sum of a metric of the admin port.
func (p *Process) Metric(name string, labels ...string) float64 {
	p.t.Helper()
	return Sum(p.Metrics()[name], labels...)
}

// Sum adds the series of a metric that have these labels: name, value, name, value. Of no metric it is 0.
func Sum(f *dto.MetricFamily, labels ...string) (sum float64) {
next:
	for _, m := range f.GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		for i := 0; i+1 < len(labels); i += 2 {
			if has[labels[i]] != labels[i+1] {
				continue next
			}
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sum
}
