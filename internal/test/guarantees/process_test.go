package guarantees_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/cell"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Roles of the test binary when it is started again: pinwheel, or a nats-server.
const (
	asPinwheel  = "PINWHEEL_GUARANTEES_FLEET"
	asServer    = "PINWHEEL_GUARANTEES_SERVER" // host:port
	serverStore = "PINWHEEL_GUARANTEES_STORE"
	serverSync  = "PINWHEEL_GUARANTEES_SYNC"
	asClock     = "PINWHEEL_GUARANTEES_TIME"
	ownClock    = "PINWHEEL_GUARANTEES_CLOCK" // file with the number of seconds that the clock of a process is fast
)

func TestMain(m *testing.M) {
	natstest.BeServer()
	cell.BeChild()
	modulecheck.BeChild()
	var clock error
	if path := os.Getenv(ownClock); path != "" {
		_ = os.Unsetenv(ownClock)
		if clock = moveClock(path); clock != nil {
			fmt.Fprintf(os.Stderr, "the clock of a process cannot be set here: %v\n", clock)
		}
	}
	switch {
	case os.Getenv(asClock) != "":
		if clock == nil {
			tellTime()
		}
		return
	case os.Getenv(asPinwheel) != "":
		_ = os.Unsetenv(asPinwheel)
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv(asServer) != "":
		os.Exit(beServer())
	}
	os.Exit(m.Run())
}

func beServer() int {
	_, text, err := net.SplitHostPort(os.Getenv(asServer))
	port, err2 := strconv.Atoi(text)
	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	srv, err := natsd.Open(natsd.Config{StoreDir: os.Getenv(serverStore), Port: port,
		SyncAlways: os.Getenv(serverSync) != ""})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "ready")
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // ends with the parent
	srv.Close()
	return 0
}

// process is a child of the test. Its output goes to a file, which is printed when the test fails.
type process struct {
	t     testing.TB
	name  string
	args  []string
	env   []string
	log   string
	cmd   *exec.Cmd
	ready chan struct{} // closed when the process reports it
	ended chan struct{} // closed when it has ended
	err   error         // error of its end
	last  string        // its last line
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0], p.args...)
	p.cmd.Env = append(os.Environ(), p.env...)
	_, err := p.cmd.StdinPipe()
	require.NoError(p.t, err)
	out, err := p.cmd.StderrPipe()
	require.NoError(p.t, err)
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.t, err)
	require.NoError(p.t, p.cmd.Start())
	ready, ended := make(chan struct{}), make(chan struct{})
	p.ready, p.ended = ready, ended
	cmd := p.cmd
	go func() {
		defer close(ended)
		defer file.Close()
		up := false
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			_, _ = io.WriteString(file, line)
			if text := strings.TrimSpace(line); text != "" {
				p.last = text
			}
			if !up && strings.Contains(line, "ready") {
				up = true
				close(ready)
			}
			if err != nil {
				break
			}
		}
		p.err = cmd.Wait()
	}()
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // it may have ended, which is just as good

// kill kills the process and waits for its end.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// failures is a test that logs its failures once more at its end. The logs of its processes stand between.
type failures struct {
	testing.TB
	mu   sync.Mutex
	list []string
}

// repeatFailures returns t so that it logs its failures once more. Call it before a process is started: its cleanup
// must run last.
func repeatFailures(t testing.TB, seed uint64) testing.TB {
	m := &failures{TB: t}
	t.Cleanup(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.list) > 0 {
			t.Logf("seed %d; the failures once more:\n%s", seed, strings.Join(m.list[:min(len(m.list), 10)], "\n"))
		}
	})
	return m
}

func (m *failures) add(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, text)
}

func (m *failures) Errorf(format string, args ...any) {
	m.Helper()
	m.add(fmt.Sprintf(format, args...))
	m.TB.Errorf(format, args...)
}

func (m *failures) Fatalf(format string, args ...any) {
	m.Helper()
	m.add(fmt.Sprintf(format, args...))
	m.TB.Fatalf(format, args...)
}

func within(t testing.TB, what string, limit time.Duration, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(limit):
		t.Fatalf("%s: not within %s", what, limit)
	}
}

func newProcess(t testing.TB, dir, name string, args []string, env ...string) *process {
	p := &process{t: t, name: name, args: args, env: env, log: filepath.Join(dir, name+".log")}
	t.Cleanup(func() {
		if p.cmd == nil {
			return
		}
		p.kill()
		if !t.Failed() {
			return
		}
		text, _ := os.ReadFile(p.log)
		t.Logf("the last of what %s wrote:\n%s", p.name, text[max(0, len(text)-6000):])
	})
	return p
}
