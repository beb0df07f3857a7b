package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
	"github.com/pinwheel-run/pinwheel/internal/operate/usage"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// attempts is how many attempts the usage of the last day has.
func (h *testFleet) attempts(owner string) (n int) {
	h.t.Helper()
	rows, err := usage.NewStore(h.js).Read(h.t.Context(), usage.Query{Owner: owner, From: time.Now().Add(-24 * time.Hour),
		To: time.Now().Add(time.Hour)})
	require.NoError(h.t, err)
	for _, r := range rows {
		n += int(r.Attempts)
	}
	return n
}

// inHistory is how many records the run history has of an owner.
func (h *testFleet) inHistory(owner string) (n int) {
	h.t.Helper()
	for before := uint64(0); ; {
		p, err := runs.NewStore(h.js, "pinwheel").Newest(h.t.Context(), runs.Filter{Owner: owner}, before, runs.MaxPage)
		require.NoError(h.t, err)
		n += len(p.Records)
		if before = p.Next; before == 0 {
			return n
		}
	}
}

// Processes are killed while they work. The usage then lacks only what they counted since they last wrote, and the run
// history what waited in them: both have all attempts before, and no attempt twice.
func TestUsageAndHistoryAfterKills(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	env := []string{"PINWHEEL_PROCESSES=0", "PINWHEEL_RUNS=all", "PINWHEEL_CELL=shared", shortLease}
	serve := func() *fleettest.Process { return fleettest.Serve(t, srv.URL(), env...) }
	stays, victim := serve(), serve()
	h := &testFleet{t: t}
	h.connect(srv.URL())
	h.deploy("acme", "w", `export default { task() { return 1 } }`)
	const batch, kills = 40, 3
	sent := 0
	send := func(n int) (wait []<-chan *nats.Msg) {
		for range n {
			sent++
			wait = append(wait, h.send(events.Task, "acme/w", "body", "Event-Id", fmt.Sprintf("e%d", sent)))
		}
		return wait
	}
	await := func(all []<-chan *nats.Msg) {
		t.Helper()
		for _, reply := range all {
			h.replyWithin(reply, 2*patience)
		}
	}
	for killed := range kills {
		await(send(batch))
		least := sent - killed*batch/2
		require.Eventually(t, func() bool { return h.attempts("acme") >= least && h.inHistory("acme") >= least }, patience,
			20*time.Millisecond)
		under := send(batch / 2)
		victim.Kill()
		await(under)
		victim = serve()
	}
	for _, p := range []*fleettest.Process{stays, victim} {
		p.Signal(syscall.SIGTERM)
		require.NoError(t, p.Wait())
	}
	used, recorded := h.attempts("acme"), h.inHistory("acme")
	t.Logf("%d events, %d attempts in the usage, %d in the history", sent, used, recorded)
	// An event may run again after a kill. Each kill may lose what ran or was counted since the last write.
	for _, n := range []int{used, recorded} {
		require.GreaterOrEqual(t, n, sent-kills*batch/2)
		require.LessOrEqual(t, n, sent+kills*batch/2)
	}
	require.InDelta(t, recorded, used, kills*batch/2)
}

// An attempt that a process interrupts when its DrainTimeout is over has its usage and its record.
func TestUsageAndHistoryOfWhatADrainInterrupts(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	p := fleettest.Serve(t, srv.URL(), "PINWHEEL_PROCESSES=0", "PINWHEEL_RUNS=all", "PINWHEEL_CELL=shared",
		"PINWHEEL_DRAIN_TIMEOUT=100ms")
	h := &testFleet{t: t}
	h.connect(srv.URL())
	h.deploy("acme", "w", `export default { fetch(request, env, ctx) {
		ctx.waitUntil(new Promise(resolve => setTimeout(resolve, 1e6)))
		return new Response("goes on")
	} }`)
	const n = 8
	for range n {
		require.Nil(t, h.replyWithin(h.send(events.Fetch, "acme/w", "body"), 2*patience).Failure)
	}
	p.Signal(syscall.SIGTERM)
	require.NoError(t, p.Wait())
	require.Equal(t, []int{n, n}, []int{h.attempts("acme"), h.inHistory("acme")})
}

func TestUsageIsAskedFor(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.Control = config.ControlByPermissions })
	for _, owner := range []string{"acme", "beta"} {
		h.deploy(owner, "w", `export default { fetch: () => new Response("answer") }`)
		for range 3 {
			require.Nil(t, h.reply(h.send(events.Fetch, owner+"/w", "body")).Failure)
		}
	}
	require.Eventually(t, func() bool { return h.attempts("acme") == 3 && h.attempts("beta") == 3 }, patience,
		20*time.Millisecond)
	code, out, _ := h.command("", "usage", "--month", "--by", "owner,worker", "--json")
	require.Zero(t, code)
	var rows []usage.Row
	for line := range strings.Lines(out) {
		var r usage.Row
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		rows = append(rows, r)
	}
	require.Len(t, rows, 2)
	require.Equal(t, []any{"acme", "w", uint64(3), uint64(12), uint64(18)}, []any{rows[0].Owner, rows[0].Worker,
		rows[0].Attempts, rows[0].BytesIn, rows[0].BytesOut})
	require.Positive(t, rows[0].CPUMicros)
	require.GreaterOrEqual(t, rows[0].WallMicros, rows[0].CPUMicros/2)
	code, out, _ = h.command("", "usage", "beta/w", "--since", "2h", "--by", "day,hour")
	require.Zero(t, code)
	require.Regexp(t, `:00 +- +- +3 `, out)
	code, _, errs := h.command("", "usage", "--by", "week")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "owner, worker, day or hour")

	span := fmt.Sprintf(`"from":%q,"to":%q`, time.Now().Add(-time.Hour).Format(time.RFC3339),
		time.Now().Add(time.Hour).Format(time.RFC3339))
	answer, failure := askAsOwner(t, h.nc, "acme", "usage.get", `{"by":["owner"],`+span+`}`)
	require.Empty(t, failure)
	require.Contains(t, answer, `"attempts":3`)
	require.NotContains(t, answer, "beta")
	_, failure = askAsOwner(t, h.nc, "acme", "usage.get", `{"owner":"beta",`+span+`}`)
	require.Contains(t, failure, "403")
	_, failure = askAsOwner(t, h.nc, "acme", "usage.get", `{"from":"x"}`)
	require.Contains(t, failure, "400 from")
}
