package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// supervisor is `pinwheel serve` with child processes.
type supervisor struct {
	*fleettest.Process
	t *testing.T
}

// supervise runs `pinwheel serve` with two processes, and waits until both take events.
func supervise(t *testing.T, env ...string) *supervisor {
	t.Helper()
	return &supervisor{t: t, Process: fleettest.Serve(t, "", append([]string{"PINWHEEL_PROCESSES=2",
		"PINWHEEL_ADMIN_ADDR=127.0.0.1:0", "PINWHEEL_ACK_WAIT=2s", "PINWHEEL_DRAIN_TIMEOUT=5s"}, env...)...)}
}

// supervisorStats is the answer of GET /admin/pool: the sum, and the figures of each process.
type supervisorStats struct {
	fleet.ProcessStats
	Processes []struct {
		Process, PID int
		*fleet.ProcessStats
	}
}

func (s *supervisor) stats() (all supervisorStats) {
	s.t.Helper()
	_, body := s.Get("/admin/pool")
	require.NoError(s.t, json.Unmarshal(body, &all), "%s", body)
	return all
}

// installed waits until both processes have installed a worker.
func (s *supervisor) installed() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		all := s.stats()
		return all.Processes[0].Dispatch.Owners == 1 && all.Processes[1].Dispatch.Owners == 1
	}, patience, 20*time.Millisecond)
}

func (s *supervisor) pid(process int) int { return s.stats().Processes[process].PID }

// gone reports whether the process has ended, even if its exit code was not read yet.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return state[0] == 'Z' || state[0] == 'X'
}

func (s *supervisor) gone(pids ...int) {
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
	s := supervise(t, "PINWHEEL_NATS_URL="+srv.URL(), "PINWHEEL_WINDOW=128")
	require.Equal(t, srv.URL(), s.URL)
	h := &testFleet{t: t}
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
	require.Eventually(t, func() bool { code, _ := s.Get("/readyz"); return code == http.StatusOK }, patience,
		10*time.Millisecond)
	s.checkReplaced()
	s.checkEnd()
}

// checkReplaced checks the supervisor's report after each of its two processes was replaced once.
func (s *supervisor) checkReplaced() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		all := s.Metrics()
		of := func(name, process string) float64 { return fleettest.Sum(all[name], "process", process) }
		return of("pinwheel_window", "0") == 128 && of("pinwheel_window", "1") == 128 && of("pinwheel_process_up", "0") == 1
	}, patience, 10*time.Millisecond)
	all := s.Metrics()
	require.EqualValues(s.t, 1, fleettest.Sum(all["pinwheel_process_restarts_total"], "process", "0"))
	require.EqualValues(s.t, 1, fleettest.Sum(all["pinwheel_process_restarts_total"], "process", "1"))
	require.Positive(s.t, fleettest.Sum(all["go_goroutines"], "process", "supervisor"))
	crashed := false
	for _, line := range s.Lines() {
		require.NotContains(s.t, line, "text")
		text, _ := line["message"].(string)
		crashed = crashed || strings.Contains(text, "SIGSEGV") && line["process"] == 1.0
	}
	require.True(s.t, crashed, "last words of a process are in the log")
	code, body := s.Get("/healthz")
	require.Equal(s.t, http.StatusOK, code, "%s", body)
}

// checkEnd ends the supervisor as an init system does.
func (s *supervisor) checkEnd() {
	s.t.Helper()
	pids := []int{s.pid(0), s.pid(1)}
	s.Signal(syscall.SIGTERM)
	require.NoError(s.t, s.Wait(), "a supervisor whose processes drain ends well")
	s.gone(pids...)
}

func TestSupervisorHoldsNATSAndMergesStats(t *testing.T) {
	t.Parallel()
	s := supervise(t, "PINWHEEL_NATS_URL=", "PINWHEEL_NATS_PORT=-1", "PINWHEEL_DATA="+natstest.StoreDir(t),
		"PINWHEEL_MAX_BYTES=64MiB", "PINWHEEL_THREADS=2", "PINWHEEL_MAX_ISOLATES=10", "PINWHEEL_CELL=shared")
	h := &testFleet{t: t}
	h.connect(s.URL)
	h.deploy("acme", "pid", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("ok")), 50)) }`)
	s.installed()
	acked := func() (a, b float64) {
		both := s.Metrics()["pinwheel_events_total"]
		return fleettest.Sum(both, "process", "0"), fleettest.Sum(both, "process", "1")
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
	var all supervisorStats
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
	require.Eventually(t, func() bool { // any of them answers for the fleet
		status, body := s.Get("/scale?target=1")
		var now scaleAnswer
		return status == http.StatusOK && json.Unmarshal(body, &now) == nil && now.Processes == 2 && now.Waiting == 0
	}, patience, 100*time.Millisecond)
	s.checkEnd()
}

func TestNoProcessOutlivesItsSupervisor(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := supervise(t, "PINWHEEL_NATS_URL="+srv.URL())
	pids := []int{s.pid(0), s.pid(1)}
	require.NotEqual(t, pids[0], pids[1])
	s.Kill()
	s.gone(pids...)
}
