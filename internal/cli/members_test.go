package cli

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
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// Processes that join, leave and are killed are noticed within seconds, and what an owner may have is shared out anew.
func TestProcessesCountEachOther(t *testing.T) {
	srv := natstest.Start(t)
	h := openHouse(t, func(c *Config) { c.NatsURL = srv.URL() })
	processes := func() int {
		all, err := h.fleet.registry.Gather()
		require.NoError(t, err)
		for _, f := range all {
			if f.GetName() == "pinwheel_fleet_processes" {
				return int(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return 0
	}
	become := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return processes() == n }, patience, time.Millisecond)
	}
	become(1)
	a, b := startProcess(t, srv.URL()), startProcess(t, srv.URL())
	become(3)
	require.NoError(t, a.Process.Signal(os.Interrupt))
	become(2)
	require.NoError(t, b.Process.Kill())
	become(1)

	h.deploy("acme", "w", `export default { fetch: () => new Promise(done => setTimeout(done, 20000)) }`)
	h.fleet.setPolicy("acme", events.Policy{FleetMaxRunning: 6})
	for range 10 {
		h.send(events.Fetch, "acme/w", "")
	}
	require.Eventually(t, func() bool { return h.fleet.dispatch.Stats().Running == 6 }, patience, time.Millisecond)
}

// A deploy waits for all processes, says how many have the version, and names those that have not when the time is up.
func TestDeployWaitsForAllProcesses(t *testing.T) {
	srv := natstest.Start(t)
	h := openHouse(t, func(c *Config) { c.NatsURL = srv.URL() })
	paused, other := startProcess(t, srv.URL()), startProcess(t, srv.URL())
	require.Eventually(t, func() bool { _, all := h.fleet.members.known(); return len(all) == 3 }, patience, time.Millisecond)
	path := filepath.Join(t.TempDir(), "w.js")
	deploy := func(n int) (out, errs string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "export default { fetch: () => new Response('%d') }", n), 0o600))
		var o, e bytes.Buffer
		cfg := h.fleet.cfg
		require.Zero(t, MainWith(cfg, []string{"deploy", path, "--owner", "acme"}, strings.NewReader(""), &o, &e), e.String())
		return o.String(), e.String()
	}
	out, errs := deploy(1)
	require.Regexp(t, `^deployed acme/w version 1-\S+ \(fetch\), active in 3 of 3 processes\n$`, out)
	require.Empty(t, errs)

	require.NoError(t, paused.Process.Signal(syscall.SIGSTOP))
	out, errs = deploy(2)
	require.Regexp(t, `^deployed acme/w version 2-\S+ \(fetch\), active in 2 of 3 processes\n$`, out)
	require.Regexp(t, fmt.Sprintf(`^pinwheel: acme/w is stored, but \S+/%d has not taken it up within 5s\n$`, paused.Process.Pid), errs)

	require.NoError(t, paused.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool { _, all := h.fleet.members.known(); return len(all) == 3 }, patience, time.Millisecond)
	out, _ = deploy(2)
	require.Regexp(t, `^unchanged acme/w version 2-\S+ \(fetch\), active in 3 of 3 processes\n$`, out)

	require.NoError(t, other.Process.Signal(os.Interrupt)) // one that drains is not waited for, nor is it said to be missing
	out, errs = deploy(3)
	require.Regexp(t, `, active in [23] of [23] processes\n$`, out, errs)
	require.Empty(t, errs)
}

// A process that has said that it goes is not waited for, although another that answers later has not heard so: the two come by ways of their own.
func TestProcessThatLeftIsNotWaitedFor(t *testing.T) {
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	say := func(version string, number int, left []string, known ...process) *nats.Msg {
		body, err := json.Marshal(activeJSON{known[0], version, number, known, left})
		require.NoError(t, err)
		return &nats.Msg{Data: body}
	}
	stays, leaves := process{"a", "node/1"}, process{"b", "node/2"}
	question := 0
	sub, err := nc.Subscribe("pinwheel.control.workers.active", func(m *nats.Msg) {
		question++
		switch question {
		case 1: // of before; its bye is on its way, or was said before anybody listened
			require.NoError(t, m.RespondMsg(say("2-b", 2, nil, stays, leaves)))
		default:
			require.NoError(t, m.RespondMsg(say("2-b", 2, []string{"b"}, stays, leaves)))
		}
	})
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	require.NoError(t, nc.Flush())
	c := &remote{nc: nc, subjects: "pinwheel"}
	a, err := c.await(t.Context(), &events.Worker{Owner: "acme", Name: "w", Version: "2-b", Number: 2})
	require.NoError(t, err)
	require.Equal(t, "active in 1 of 1 process", a.String())
}
