package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// spinner is a worker that stays in V8 for a request to /spin.
const spinner = `export default { fetch(request) {
	if (new URL(request.url).pathname === "/spin") for (;;);
	return new Response("ok");
} }`

// site is a supervisor of one process with two threads, at whose HTTP address the test kills the process.
type site struct {
	*supervisor
	web  *web
	dir  string // of the sockets
	logs *lockedLines
}

type lockedLines struct {
	mu   sync.Mutex
	text []string
}

func (l *lockedLines) has(owner, part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.text, func(line string) bool {
		return strings.HasPrefix(line, owner+" ") &&
			strings.Contains(line, part)
	})
}

func openSite(t *testing.T) *site {
	s := &site{dir: t.TempDir(), logs: &lockedLines{}}
	confine := "PINWHEEL_CONFINE=require"
	if os.Getuid() != 0 {
		confine = "PINWHEEL_CONFINE=off" // the test looks at files of the supervisor, which are hidden else
	}
	s.supervisor = supervise(t, confine, "TMPDIR="+s.dir, "PINWHEEL_PROCESSES=1", "PINWHEEL_THREADS=2",
		"PINWHEEL_HTTP_ADDR=127.0.0.1:0", "PINWHEEL_HTTP_DOMAIN=w.test", "PINWHEEL_HTTP_LOG=false", "PINWHEEL_NATS_PORT=-1",
		"PINWHEEL_DATA="+natstest.StoreDir(t), "PINWHEEL_CELL=shared") // cells die in place of processes
	h := &testFleet{t: t}
	h.connect(s.URL)
	_, err := h.nc.Subscribe("pinwheel.logs.>", func(m *nats.Msg) {
		s.logs.mu.Lock()
		defer s.logs.mu.Unlock()
		s.logs.text = append(s.logs.text, strings.Split(m.Subject, ".")[2]+" "+string(m.Data))
	})
	require.NoError(t, err)
	for _, owner := range []string{"bad", "good"} {
		h.deploy(owner, "w", spinner, `{"limits": {"cpuMs": 30000, "wallMs": 60000}}`)
	}
	s.web = openWeb(t, s.HTTP)
	s.answers("bad", http.StatusOK)
	s.answers("good", http.StatusOK)
	return s
}

// ask returns the status of a worker's answer, and when to come again; 0 = there was no answer.
func (s *site) ask(owner string) (status int, again string) {
	resp, err := s.web.client.Get("http://w--" + owner + ".w.test/")
	if err != nil {
		return 0, ""
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

// first returns the first answer of the next process.
func (s *site) first(owner string) (status int, again string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { status, again = s.ask(owner); return status != 0 }, patience, time.Millisecond)
	return status, again
}

// answers waits until a worker is answered with that status.
func (s *site) answers(owner string, want int) {
	s.t.Helper()
	status := 0
	require.Eventually(s.t, func() bool { status, _ = s.ask(owner); return status == want }, patience, 5*time.Millisecond,
		"status %d", status)
}

// spin makes workers spin, one after the other, and returns the OS thread of the first.
func (s *site) spin(owners ...string) (pid, thread int) {
	s.t.Helper()
	pid = s.pid(0)
	for i := range owners {
		go func() {
			if resp, err := s.web.client.Get("http://w--" + owners[i] + ".w.test/spin"); err == nil {
				_ = resp.Body.Close()
			}
		}()
		require.Eventually(s.t, func() bool { return len(s.noted()) == i+1 }, patience, time.Millisecond)
		if i > 0 {
			continue
		}
		before := ticksOf(pid)
		require.Eventually(s.t, func() bool {
			for tid, ticks := range ticksOf(pid) {
				if ticks > before[tid]+15 {
					thread = tid
				}
			}
			return thread != 0
		}, patience, 10*time.Millisecond)
	}
	return pid, thread
}

// noted returns the owners whose workers are in V8.
func (s *site) noted() (owners []string) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID()))
	require.NoError(s.t, err)
	for _, path := range files {
		if name, _ := os.Readlink(path); !strings.Contains(name, "pinwheel-note") {
			continue
		}
		f, err := os.Open(path)
		require.NoError(s.t, err)
		c, _ := crashnote.Read(f, crashnote.End{Signal: syscall.SIGSEGV})
		_ = f.Close()
		for _, r := range c.Runs {
			owners = append(owners, r.Owner)
		}
	}
	return owners
}

// ticksOf returns the CPU time of each thread of a process.
func ticksOf(pid int) map[int]int {
	ticks := map[int]int{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			user, _ := strconv.Atoi(fields[11])
			tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			ticks[tid] = user
		}
	}
	return ticks
}

// A worker whose request ends its process is refused for a time that doubles. The worker that ran beside it is not
// refused at all, although its owner does not know the difference.
func TestRequestThatEndsItsProcess(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	for n := 1; n <= 2; n++ {
		pid, thread := s.spin("bad", "good")
		// A signal in the thread that is in V8, as V8's own faults raise it.
		_, _, e := syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(pid), uintptr(thread), uintptr(syscall.SIGSEGV))
		require.Zero(t, e)
		s.gone(pid)
		died := time.Now()
		status, again := s.first("bad")
		if status == http.StatusServiceUnavailable {
			require.Contains(t, []string{"1", "2"}[:n], again)
			require.Positive(t, fleettest.Sum(s.Metrics()["pinwheel_dispatch_direct_refused_total"], "process", "0"))
		} else { // a machine that is too busy to ask in time
			require.Equal(t, http.StatusOK, status)
			require.Greater(t, time.Since(died), time.Duration(n)*time.Second)
		}
		status, _ = s.first("good")
		require.Equal(t, http.StatusOK, status, "it is not refused")
		line := fmt.Sprintf("%d times lately. Its HTTP requests are answered 503 for %ds", n, n)
		require.Eventually(t, func() bool { return s.logs.has("bad", line) }, patience, time.Millisecond, line)
		s.answers("bad", http.StatusOK)
	}
	require.False(t, s.logs.has("good", "The process died"))
}

// Who kills a process accuses none of the workers that ran in it: they are neither refused nor tried one by one.
func TestKilledProcessAccusesNobody(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	pid, _ := s.spin("bad", "good")
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	s.gone(pid)
	for _, owner := range []string{"bad", "good"} {
		status, _ := s.first(owner)
		require.Equal(t, http.StatusOK, status)
		require.False(t, s.logs.has(owner, "The process died"))
	}
	require.True(t, slices.ContainsFunc(s.Lines(), func(line map[string]any) bool {
		return line["message"] == "why a process ended" && line["cause"] == "outside" && line["signal"] == "killed"
	}))
	files, err := filepath.Glob(filepath.Join(s.dir, "*", "*-1.sock.*"))
	require.NoError(t, err)
	require.Empty(t, files, "what the first process left is removed")

	// Processes tell each other whom they refuse.
	nc, err := natstest.Dial(s.URL)
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.Publish("pinwheel.control.direct-bans", []byte(`[{"owner":"good","worker":"w","times":1,"leftMs":600000,"direct":true}]`)))
	s.answers("good", http.StatusServiceUnavailable)
	s.answers("bad", http.StatusOK)
	heard, err := nc.SubscribeSync("pinwheel.control.direct-bans")
	require.NoError(t, err)
	m, err := heard.NextMsg(patience)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"owner":"good","worker":"w","times":1`)
}
