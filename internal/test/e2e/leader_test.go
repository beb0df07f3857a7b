package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// While the stream of events has no leader, calls are refused, and /readyz says so from the first refusal on. The
// server that is gone is offline in the doctor's words, not behind.
func TestNotReadyWithoutALeader(t *testing.T) {
	t.Parallel()
	const long = 3 * time.Minute
	c := natstest.StartCluster(t, 3)
	c.Await()
	h := openFleet(t, func(cfg *config.Config) { cfg.NatsURL, cfg.Replicas = c.URLs(0), 3 })
	leader := 0
	require.Eventually(t, func() bool { // the processes keep their connection when another server dies
		at, current := c.Leader(h.js, events.StreamEvents)
		if leader = at; at >= 0 && c.URL(at) == h.fleet.Conn().ConnectedUrl() {
			_, _ = h.nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+events.StreamEvents, nil, time.Second)
		}
		return at >= 0 && current && c.URL(at) != h.fleet.Conn().ConnectedUrl() && h.fleet.CheckReady(t.Context()) == nil
	}, long, 100*time.Millisecond)
	c.Kill(leader)

	call := func() string {
		m, err := h.nc.Request(events.Subjects(events.DefaultPrefix).Call(events.Task, "acme", "w"), nil, time.Second)
		if err != nil {
			return ""
		}
		return m.Header.Get(events.HeaderError)
	}
	refused := 0
	require.Eventually(t, func() bool {
		if !strings.HasPrefix(call(), "unavailable: the event was not stored") {
			return false
		}
		refused++
		err := h.fleet.CheckReady(t.Context())
		return err != nil && strings.Contains(err.Error(), "no server takes messages for "+events.StreamEvents)
	}, long, time.Millisecond)
	require.LessOrEqual(t, refused, 2, "at most one refusal falls together with an election")
	require.Eventually(t, func() bool {
		return !strings.HasPrefix(call(), "unavailable") && h.fleet.CheckReady(t.Context()) == nil
	}, long, 10*time.Millisecond)

	cfg, out := h.fleet.Config(), ""
	cfg.NatsURL = c.URL((leader + 1) % 3)
	require.Eventually(t, func() bool {
		_, out = runDoctor(t, cfg)
		return strings.Contains(out, "is offline") && !strings.Contains(out, "is behind")
	}, long, time.Second, "a server that has ended is offline, not behind; the two others may be behind for a while")
}
