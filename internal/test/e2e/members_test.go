package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Processes that join, leave and are killed are noticed within seconds, and the limits of an owner are divided again.
func TestProcessesCountEachOther(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	h := openFleet(t, func(c *config.Config) {
		c.NatsURL, c.DrainTimeout = srv.URL(), time.Millisecond // at its end, events run that end later
	})
	become := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return h.processes() == n }, patience, 20*time.Millisecond)
	}
	become(1)
	a, b := fleettest.Serve(t, srv.URL()), fleettest.Serve(t, srv.URL())
	become(3)
	a.Signal(os.Interrupt)
	become(2)
	b.Kill()
	become(1)

	h.deploy("acme", "w", `export default { fetch: () => new Promise(done => setTimeout(done, 20000)) }`)
	h.fleet.SetPolicy("acme", workers.Policy{FleetMaxRunning: 6})
	for range 10 {
		h.send(events.Fetch, "acme/w", "")
	}
	require.Eventually(t, func() bool { return h.fleet.Stats().Dispatch.Running == 6 }, patience, time.Millisecond)
}

// A deploy waits for all processes, says how many have the version, and names those that do not have it when the time
// is over.
func TestDeployWaitsForAllProcesses(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	h := openFleet(t, func(c *config.Config) { c.NatsURL = srv.URL() })
	paused, other := fleettest.Serve(t, srv.URL()), fleettest.Serve(t, srv.URL())
	require.Eventually(t, func() bool { return h.processes() == 3 }, patience, time.Millisecond)
	path := filepath.Join(t.TempDir(), "w.js")
	deploy := func(n int) (out, errs string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "export default { fetch: () => new Response('%d') }", n), 0o600))
		var o, e bytes.Buffer
		cfg := h.fleet.Config()
		require.Zero(t, cli.MainWith(cfg, []string{"deploy", path, "--owner", "acme"}, strings.NewReader(""), &o, &e),
			e.String())
		return o.String(), e.String()
	}
	out, errs := deploy(1)
	require.Regexp(t, `^deployed acme/w version 1-\S+ \(fetch\), active in 3 of 3 processes\n$`, out)
	require.Empty(t, errs)

	n := 2
	for ; ; n++ {
		paused.Signal(syscall.SIGSTOP)
		out, errs = deploy(n)
		paused.Signal(syscall.SIGCONT)
		require.Eventually(t, func() bool { return h.processes() == 3 }, patience, time.Millisecond)
		// A request that came to the paused process was asked again of another one, after so long that nobody waits for
		// the paused one any more.
		if !strings.Contains(out, ", active in 2 of 2 processes") || n == 12 {
			break
		}
	}
	require.Regexp(t, fmt.Sprintf(`^deployed acme/w version %d-\S+ \(fetch\), active in 2 of 3 processes\n$`, n), out)
	require.Regexp(t, fmt.Sprintf(`^pinwheel: acme/w is stored, but \S+/%d has not taken it up within 15s\n$`,
		paused.PID()), errs)
	out, _ = deploy(n)
	require.Regexp(t, fmt.Sprintf(`^unchanged acme/w version %d-\S+ \(fetch\), active in 3 of 3 processes\n$`, n), out)

	// a draining process is not waited for, and not reported as missing
	other.Signal(os.Interrupt)
	out, errs = deploy(n + 1)
	require.Regexp(t, `, active in [23] of [23] processes\n$`, out, errs)
	require.Empty(t, errs)
}

// A process that announced that it leaves is not waited for, although another process that answers later may not know
// that yet. The two messages travel independently.
func TestProcessThatLeftIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	say := func(version string, number int, left []string, known ...control.Member) *nats.Msg {
		body, err := json.Marshal(control.ActiveVersion{Member: known[0], Version: version, Number: number, Processes: known,
			Left: left})
		require.NoError(t, err)
		return &nats.Msg{Data: body}
	}
	stays, leaves := control.Member{ID: "a", Node: "node/1"}, control.Member{ID: "b", Node: "node/2"}
	question := 0
	sub, err := nc.Subscribe("pinwheel.control.workers.active", func(m *nats.Msg) {
		question++
		switch question {
		case 1: // the earlier state: the bye of b is on its way, or was sent before Await listened
			require.NoError(t, m.RespondMsg(say("2-b", 2, nil, stays, leaves)))
		default:
			require.NoError(t, m.RespondMsg(say("2-b", 2, []string{"b"}, stays, leaves)))
		}
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	defer func() { _ = sub.Unsubscribe() }()
	require.NoError(t, nc.Flush())
	c := control.NewClient(nc, "pinwheel", "")
	a, err := c.Await(t.Context(), "acme/w",
		workers.Deployment{Number: 2, Split: []workers.Share{{Version: "2-b", Percent: 100}}})
	require.NoError(t, err)
	require.Equal(t, "active in 1 of 1 process", a.String())
}
