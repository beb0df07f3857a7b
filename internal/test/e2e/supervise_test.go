package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// tower is a supervisor in its own process, with its children.
type tower struct {
	t          *testing.T
	cmd        *exec.Cmd
	url, admin string
	mu         sync.Mutex
	lines      []map[string]any // of its log
}

// startTower runs `pinwheel serve` with two processes and waits until both take events.
func startTower(t *testing.T, env ...string) *tower {
	t.Helper()
	sockets, err := os.MkdirTemp("", "pw") // a killed supervisor leaves its directory behind
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	s := &tower{t: t, cmd: exec.Command(os.Args[0], "serve")}
	s.cmd.Env = append(os.Environ(), append([]string{
		asMain + "=1", "TMPDIR=" + sockets, "PINWHEEL_PROCESSES=2", "PINWHEEL_ADMIN_ADDR=127.0.0.1:0", "PINWHEEL_ACK_WAIT=2s",
		"PINWHEEL_DRAIN_TIMEOUT=5s", "PINWHEEL_LOG_FORMAT=json",
	}, env...)...)
	out, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Log("what the processes wrote that is not JSON, such as a data race:\n" + s.unstructured())
		}
	})
	up := make(chan struct{})
	go s.read(out, up)
	select {
	case <-up:
	case <-time.After(patience):
		t.Fatalf("the processes do not get ready: %v", s.log())
	}
	return s
}

func (s *tower) read(out io.Reader, up chan struct{}) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			line["not JSON"] = lines.Text()
		}
		s.mu.Lock()
		s.lines = append(s.lines, line)
		s.mu.Unlock()
		if line["message"] == "ready" && line["process"] == nil {
			s.url, s.admin = line["nats"].(string), line["admin"].(string)
			close(up)
		}
	}
}

func (s *tower) log() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

// unstructured returns the lines of the log that are not JSON.
func (s *tower) unstructured() (text string) {
	for _, line := range s.log() {
		if plain, ok := line["not JSON"].(string); ok {
			text += plain + "\n"
		}
	}
	return text
}

func (s *tower) get(path string) (int, []byte) {
	s.t.Helper()
	resp, err := http.Get("http://" + s.admin + path)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, body
}

// towerStats is the answer of GET /admin/pool: the sum, and the figures of each process.
type towerStats struct {
	fleet.ProcessStats
	Processes []struct {
		Process, PID int
		*fleet.ProcessStats
	}
}

func (s *tower) stats() (all towerStats) {
	s.t.Helper()
	_, body := s.get("/admin/pool")
	require.NoError(s.t, json.Unmarshal(body, &all), "%s", body)
	return all
}

// installed waits until both processes have installed a worker.
func (s *tower) installed() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		all := s.stats()
		return all.Processes[0].Dispatch.Owners == 1 && all.Processes[1].Dispatch.Owners == 1
	}, patience, 20*time.Millisecond)
}

func (s *tower) pid(process int) int { return s.stats().Processes[process].PID }

// metrics returns the merged metrics, parsed as Prometheus does.
func (s *tower) metrics() map[string]*dto.MetricFamily {
	s.t.Helper()
	code, body := s.get("/metrics")
	require.Equal(s.t, http.StatusOK, code)
	all := map[string]*dto.MetricFamily{}
	for d := expfmt.NewDecoder(strings.NewReader(string(body)), expfmt.NewFormat(expfmt.TypeTextPlain)); ; {
		f := &dto.MetricFamily{}
		if d.Decode(f) != nil {
			return all
		}
		all[f.GetName()] = f
	}
}

// sum adds a metric of one process over its other labels.
func sum(f *dto.MetricFamily, process string) (total float64) {
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "process" && l.GetValue() == process {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return total
}

// gone reports whether the process has ended, even if its exit code was not read yet.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return state[0] == 'Z' || state[0] == 'X'
}

func (s *tower) gone(pids ...int) {
	s.t.Helper()
	for _, pid := range pids {
		require.Eventually(s.t, func() bool { return gone(pid) }, patience, 5*time.Millisecond, "process %d", pid)
	}
}

// Two children share the events. One is killed, then the other crashes. New ones replace them, and every event is
// answered.
func TestSupervisorReplacesProcessesThatDie(t *testing.T) {
	t.Parallel()
	const total = 3000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	srv := natstest.Start(t)
	s := startTower(t, "PINWHEEL_NATS_URL="+srv.URL(), "PINWHEEL_WINDOW=128")
	require.Equal(t, srv.URL(), s.url)
	h := &house{t: t}
	h.connect(srv.URL())
	h.deploy("acme", "count", `export default { async task(event) { await new Promise(done => setTimeout(done, 1)); return event.payload } }`)
	s.installed()
	replies := h.publishCounted(total)

	answered := map[string]bool{}
	kills := map[int]syscall.Signal{total/6 + random.IntN(total/6): syscall.SIGKILL,
		total/2 + random.IntN(total/6): syscall.SIGSEGV}
	victim := 0
	deadline := time.After(2 * patience)
	for len(answered) < total {
		select {
		case m := <-replies:
			require.Contains(t, string(m.Data), `"success":true`)
			answered[m.Subject] = true
			if signal := kills[len(answered)]; signal != 0 {
				delete(kills, len(answered))
				require.NoError(t, syscall.Kill(s.pid(victim), signal))
				victim++
			}
		case <-deadline:
			t.Fatalf("%d of %d answered", len(answered), total)
		}
	}
	require.Empty(t, kills)
	h.settled()
	require.Empty(t, h.dead())
	require.Eventually(t, func() bool { code, _ := s.get("/readyz"); return code == http.StatusOK }, patience,
		10*time.Millisecond)
	s.checkReplaced()
	s.checkEnd()
}

// checkReplaced checks the supervisor's report after each of its two processes was replaced once.
func (s *tower) checkReplaced() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		all := s.metrics()
		return sum(all["pinwheel_window"], "0") == 128 && sum(all["pinwheel_window"], "1") == 128 &&
			sum(all["pinwheel_process_up"], "0") == 1
	}, patience, 10*time.Millisecond)
	all := s.metrics()
	require.EqualValues(s.t, 1, sum(all["pinwheel_process_restarts_total"], "0"))
	require.EqualValues(s.t, 1, sum(all["pinwheel_process_restarts_total"], "1"))
	require.Positive(s.t, sum(all["go_goroutines"], "supervisor"))
	crashed := false
	for _, line := range s.log() {
		require.NotContains(s.t, line, "not JSON")
		text, _ := line["message"].(string)
		crashed = crashed || strings.Contains(text, "SIGSEGV") && line["process"] == 1.0
	}
	require.True(s.t, crashed, "last words of a process are in the log")
	code, body := s.get("/healthz")
	require.Equal(s.t, http.StatusOK, code, "%s", body)
}

// checkEnd ends the supervisor as an init system does.
func (s *tower) checkEnd() {
	s.t.Helper()
	pids := []int{s.pid(0), s.pid(1)}
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(s.t, s.cmd.Wait(), "a supervisor whose processes drain ends well")
	s.gone(pids...)
}

func TestSupervisorHoldsNATSAndMergesStats(t *testing.T) {
	t.Parallel()
	s := startTower(t, "PINWHEEL_NATS_URL=", "PINWHEEL_NATS_PORT=-1", "PINWHEEL_DATA="+natstest.StoreDir(t),
		"PINWHEEL_MAX_BYTES=64MiB", "PINWHEEL_THREADS=2", "PINWHEEL_MAX_ISOLATES=10")
	h := &house{t: t}
	h.connect(s.url)
	h.deploy("acme", "pid", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("ok")), 50)) }`)
	s.installed()
	acked := func() (a, b float64) {
		both := s.metrics()["pinwheel_events_total"]
		return sum(both, "0"), sum(both, "1")
	}
	asked0, asked1 := acked() // deploy uses an event to check whether a process has the worker
	var replies []<-chan *nats.Msg
	for range 200 {
		replies = append(replies, h.send(events.Fetch, "acme/pid", ""))
	}
	for _, r := range replies {
		require.Equal(t, 200, h.reply(r).Status)
	}
	h.settled()
	var all towerStats
	require.Eventually(t, func() bool {
		all = s.stats()
		return all.Running == 0 && all.Busy == 0 && all.WarmHits+all.ColdStarts == 200
	}, patience, 10*time.Millisecond)
	require.Equal(t, 20, all.Total)
	require.Equal(t, all.Total, all.Cached+all.Capacity)
	require.Positive(t, all.HitRate)
	require.Equal(t, 2*4096, all.Consumer.Window)
	require.Empty(t, all.Threads)
	require.Equal(t, "acme", all.Owners[0].Owner)
	require.Equal(t, all.Cached, all.Owners[0].Isolates)
	for i, p := range all.Processes {
		require.Equal(t, i, p.Process)
		require.Positive(t, p.WarmHits+p.ColdStarts, "both processes have run events: %+v", all)
		require.Len(t, p.Threads, 4, "two of them of a lower priority")
	}
	acked0, acked1 := acked()
	require.EqualValues(t, 200, acked0+acked1-asked0-asked1)
	require.Greater(t, acked0, asked0)
	require.Greater(t, acked1, asked1)
	s.checkEnd()
}

func TestNoProcessOutlivesItsSupervisor(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := startTower(t, "PINWHEEL_NATS_URL="+srv.URL())
	pids := []int{s.pid(0), s.pid(1)}
	require.NotEqual(t, pids[0], pids[1])
	require.NoError(t, s.cmd.Process.Kill())
	s.gone(pids...)
}
