package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = time.Minute

// as makes the test binary run as a child: "KIND NUMBER SOCKET".
const as = "SUPERVISOR_TEST_AS"

// gate names a file: a child is ready when it exists.
const gate = "SUPERVISOR_TEST_GATE"

func TestMain(m *testing.M) {
	if kind, rest, ok := strings.Cut(os.Getenv(as), " "); ok {
		number, socket, _ := strings.Cut(rest, " ")
		beChild(kind, number, socket)
	}
	goleak.VerifyTestMain(m)
}

func beChild(kind, number, socket string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	if kind == "fail" {
		fmt.Fprint(os.Stderr, "I fail\nlast words")
		os.Exit(7)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pinwheel_test_total", Help: "Test."},
		[]string{"kind", "zone"})
	reg.MustRegister(c)
	n, _ := strconv.Atoi(number)
	c.WithLabelValues(kind, "z").Add(float64(n + 1))
	http.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if kind == "ill" && number == "0" || kind == "worn" && strings.HasSuffix(socket, "-1.sock") {
			http.Error(w, "V8 has lost it", http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(os.Getenv(gate)); err != nil {
			http.Error(w, "the gate is shut", http.StatusServiceUnavailable)
		}
	})
	if kind == "worn" {
		fmt.Println("up", socket[strings.LastIndexByte(socket, '-')+1:])
	}
	http.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { select {} })
	http.HandleFunc("/end", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	go func() { _ = http.Serve(l, nil) }()
	<-term
	if kind == "stubborn" {
		<-term
	}
	os.Exit(0)
}

type bench struct {
	*Supervisor
	t    *testing.T
	reg  *prometheus.Registry
	stop func()
	// ended is what Run returned. Read it after done.
	ended error
	done  chan struct{}
	mu    sync.Mutex
	said  []string
}

func start(t *testing.T, kind string, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, reg: prometheus.NewRegistry()}
	cfg := DefaultConfig(2)
	cfg.Log, cfg.Metrics = zerolog.Nop(), b.reg
	cfg.Command = func(process int, socket string) Command {
		return Command{Path: os.Args[0], Env: append(os.Environ(), fmt.Sprintf("%s=%s %d %s", as, kind, process, socket))}
	}
	cfg.Output = func(process int, line []byte) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.said = append(b.said, fmt.Sprintf("%d %s", process, line))
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	b.Supervisor, err = Open(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { b.ended = b.Run(ctx); close(done) }()
	b.done = done
	b.stop = func() { cancel(); <-done }
	t.Cleanup(func() { b.stop(); b.Close() })
	return b
}

func (b *bench) restarts(process int) float64 {
	return testutil.ToFloat64(b.children[process].restarts)
}

func (b *bench) eventually(what func() bool) {
	b.t.Helper()
	require.Eventually(b.t, what, patience, 5*time.Millisecond)
}

func TestChildrenAreReplacedAndEnd(t *testing.T) {
	b := start(t, "serve")
	b.eventually(func() bool { return b.All(t.Context(), "/healthz") == nil })
	before := b.PIDs()
	require.Len(t, before, 2)
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGTERM} {
		n := b.restarts(0)
		require.NoError(t, syscall.Kill(b.PIDs()[0], s))
		b.eventually(func() bool { return b.restarts(0) == n+1 && b.All(t.Context(), "/healthz") == nil })
	}
	require.NotEqual(t, before[0], b.PIDs()[0])
	require.Equal(t, before[1], b.PIDs()[1])
	require.Zero(t, b.restarts(1))
	last := b.PIDs()
	b.stop()
	require.Empty(t, b.PIDs())
	for _, pid := range last {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	b.Close()
	require.NoDirExists(t, b.dir)
}

// A process that should be replaced goes on until another is ready.
func TestWornProcessIsReplacedBeforeItEnds(t *testing.T) {
	open := t.TempDir() + "/open"
	t.Setenv(gate, open)
	b := start(t, "worn", func(c *Config) { c.Processes, c.LookEvery = 1, 5*time.Millisecond })
	said := func(line string) func() bool {
		return func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return slices.Contains(b.said, line)
		}
	}
	b.eventually(said("0 up 1.sock"))
	old := b.PIDs()[0]
	b.eventually(said("0 up 2.sock"))
	for range 20 { // the new process is not ready, so the old one is still used
		require.ErrorContains(t, b.All(t.Context(), "/healthz"), "V8 has lost it")
	}
	require.Equal(t, old, b.PIDs()[0])
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	b.eventually(func() bool { return b.All(t.Context(), "/readyz") == nil && b.PIDs()[0] != old })
	require.EqualValues(t, 1, b.restarts(0))
	b.eventually(func() bool { return errors.Is(syscall.Kill(old, 0), syscall.ESRCH) })
	require.NoError(t, b.All(t.Context(), "/healthz"))
	b.stop()
	require.False(t, said("0 up 3.sock")(), "the new one is well")
}

// A replacement that is not ready in time is stopped, and the old process goes on.
func TestReplacementThatIsNeverReadyIsGivenUp(t *testing.T) {
	t.Setenv(gate, t.TempDir()+"/shut")
	b := start(t, "worn", func(c *Config) {
		c.Processes, c.LookEvery, c.ReadyTimeout, c.MaxPause = 1, 5*time.Millisecond, time.Second, c.Pause
	})
	b.eventually(func() bool { return b.PIDs()[0] != 0 })
	old := b.PIDs()[0]
	b.eventually(func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.ContainsFunc(b.said, func(line string) bool { return line != "0 up 1.sock" && line != "0 up 2.sock" })
	})
	require.Equal(t, old, b.PIDs()[0])
	require.NoError(t, syscall.Kill(old, syscall.SIGKILL))
	b.eventually(func() bool { p := b.PIDs()[0]; return p != 0 && p != old })
}

// A child that says that another try gives the same ends all, with its last line. While another child is ready it is
// started again.
func TestAFaultThatStaysEndsAll(t *testing.T) {
	b := start(t, "fail", func(c *Config) { c.FinalCode = 7 })
	<-b.done
	var final *FinalError
	require.ErrorAs(t, b.ended, &final)
	require.Equal(t, "last words", final.Text)
	require.Zero(t, b.restarts(0)+b.restarts(1))

	open := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	t.Setenv(gate, open)
	b = start(t, "serve", func(c *Config) {
		command := c.Command
		c.FinalCode = 7
		ready := make(chan struct{})
		c.Command = func(process int, socket string) Command {
			if process == 1 {
				<-ready
				cmd := command(process, socket)
				cmd.Env[len(cmd.Env)-1] = strings.Replace(cmd.Env[len(cmd.Env)-1], "=serve ", "=fail ", 1)
				return cmd
			}
			go func() {
				for client := newClient(socket); ; {
					if r, err := client.Get("http://child/readyz"); err == nil {
						_ = r.Body.Close()
						client.CloseIdleConnections()
						close(ready)
						return
					}
				}
			}()
			return command(process, socket)
		}
	})
	b.eventually(func() bool { return b.restarts(1) >= 2 })
	require.NoError(t, b.Ready(t.Context()))
	b.stop()
	require.NoError(t, b.ended)
}

// A child whose command cannot be made is tried again, and each attempt is told when it is over.
func TestCommandsThatFailAreTriedAgain(t *testing.T) {
	var failed, started atomic.Int32
	b := start(t, "serve", func(c *Config) {
		command := c.Command
		c.Command = func(process int, socket string) Command {
			cmd := command(process, socket)
			cmd.Started = func() { started.Add(1) }
			if process == 1 && failed.Load() < 2 {
				failed.Add(1)
				cmd.Err = errors.New("no descriptor")
			}
			return cmd
		}
	})
	b.eventually(func() bool { return len(b.PIDs()) == 2 })
	require.Equal(t, 2.0, b.restarts(1))
	b.stop()
	require.EqualValues(t, 2+2, started.Load())
}

func TestStubbornChildIsKilled(t *testing.T) {
	b := start(t, "stubborn", func(c *Config) { c.StopTimeout = 300 * time.Millisecond })
	b.eventually(func() bool { return b.All(t.Context(), "/healthz") == nil })
	begin := time.Now()
	b.stop()
	require.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond)
}

func TestRestartsSlowDown(t *testing.T) {
	begin := time.Now()
	b := start(t, "fail", func(c *Config) {
		c.Processes, c.Pause, c.MaxPause = 1, 20*time.Millisecond,
			40*time.Millisecond
	})
	b.eventually(func() bool { return b.restarts(0) >= 5 })
	require.GreaterOrEqual(t, time.Since(begin), 5*10*time.Millisecond) // half of every pause is random
	require.ErrorContains(t, b.Healthy(t.Context()), "process 0: ")
	b.stop()
	require.Equal(t, []string{"0 I fail", "0 last words"}, b.said[:2])
}

func TestOneHealthyChildIsEnough(t *testing.T) {
	b := start(t, "ill")
	b.eventually(func() bool { return b.Healthy(t.Context()) == nil })
	b.eventually(func() bool {
		err := b.All(t.Context(), "/healthz")
		return err != nil && err.Error() == "process 0: V8 has lost it"
	})
	one := start(t, "ill", func(c *Config) { c.Processes = 1 })
	b.eventually(func() bool {
		err := one.Healthy(t.Context())
		return err != nil && err.Error() == "process 0: V8 has lost it"
	})
}

func TestMetricsAreMerged(t *testing.T) {
	b := start(t, "serve")
	b.eventually(func() bool { return b.All(t.Context(), "/healthz") == nil })
	require.NoError(t, testutil.GatherAndCompare(prometheus.Gatherers{b.reg, b.Supervisor}, strings.NewReader(`
# HELP pinwheel_test_total Test.
# TYPE pinwheel_test_total counter
pinwheel_test_total{kind="serve",process="0",zone="z"} 1
pinwheel_test_total{kind="serve",process="1",zone="z"} 2
# HELP pinwheel_process_up 1 while the process runs, else 0. Not with PINWHEEL_PROCESSES=0.
# TYPE pinwheel_process_up gauge
pinwheel_process_up{process="0"} 1
pinwheel_process_up{process="1"} 1
`), "pinwheel_test_total", "pinwheel_process_up"))
	answers := b.Ask(t.Context(), "/end", "")
	require.Error(t, answers[0].Err)
	families, err := b.Gather()
	require.NoError(t, err, "children that are gone have no metrics, which is no error")
	require.LessOrEqual(t, len(families), 1)
}

func TestChildThatHangsDoesNotHoldUpForLong(t *testing.T) {
	b := start(t, "serve")
	b.eventually(func() bool { return b.All(t.Context(), "/healthz") == nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, a := range b.Ask(ctx, "/hang", "") {
		require.ErrorIs(t, a.Err, context.DeadlineExceeded)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"Processes is 0: it is 1 to 64":  func(c *Config) { c.Processes = 0 },
		"Processes is 65: it is 1 to 64": func(c *Config) { c.Processes = 65 },
		"StopTimeout is 0s":              func(c *Config) { c.StopTimeout = 0 },
		"Pause is 2s, MaxPause 1s":       func(c *Config) { c.Pause, c.MaxPause = 2*time.Second, time.Second },
		"Command, Output and Metrics":    func(c *Config) { c.Command = nil },
	} {
		cfg := DefaultConfig(1)
		cfg.Command, cfg.Output = func(int, string) Command { return Command{} }, func(int, []byte) {}
		cfg.Metrics = prometheus.NewRegistry()
		require.NoError(t, cfg.Validate())
		change(&cfg)
		_, err := Open(cfg)
		require.ErrorContains(t, err, want)
	}
}

func TestPathsThatNoSocketCanHaveAreRefused(t *testing.T) {
	dir := t.TempDir() + "/" + strings.Repeat("x", 100)
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Setenv("TMPDIR", dir)
	cfg := DefaultConfig(1)
	cfg.Command, cfg.Output = func(int, string) Command { return Command{} }, func(int, []byte) {}
	cfg.Metrics = prometheus.NewRegistry()
	_, err := Open(cfg)
	require.ErrorContains(t, err, "TMPDIR")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nlast"), 3)
	f.Add([]byte("\n\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		size = max(1, min(size, len(text)))
		var got []string
		l := &lines{take: func(line []byte) { got = append(got, string(line)) }}
		for rest := text; len(rest) > 0; {
			n := min(size, len(rest))
			m, err := l.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, m)
			rest = rest[n:]
		}
		l.flush()
		var want []string
		for line := range strings.SplitSeq(string(text), "\n") {
			if line = strings.TrimRight(line, "\r"); line != "" {
				want = append(want, line)
			}
		}
		require.Equal(t, want, got)
	})
}

func TestLongLinesComeInPieces(t *testing.T) {
	n := 0
	l := &lines{take: func(line []byte) { n += len(line) }}
	_, err := l.Write(make([]byte, 3*maxLine))
	require.NoError(t, err)
	require.Equal(t, 3*maxLine, n)
}
