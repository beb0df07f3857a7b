package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/admin"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
)

func TestEveryProcessAnswersOnSRV(t *testing.T) {
	t.Parallel()
	first := openFleet(t, inProcess)
	second := openFleet(t, inProcess, func(c *config.Config) { c.NatsURL = first.fleet.URL() })
	second.deploy("acme", "ok", `export default { fetch: () => new Response("ok") }`)
	for range 3 {
		second.reply(second.send(events.Fetch, "acme/ok", ""))
	}
	second.settled()
	pings := ask[micro.Ping](second, "$SRV.PING.pinwheel", 2)
	require.NotEqual(t, pings[0].ID, pings[1].ID)
	require.Regexp(t, `^\d+\.\d+\.\d+`, pings[0].Version)
	require.Equal(t, "pinwheel", ask[micro.Info](second, "$SRV.INFO.pinwheel", 2)[0].Name)

	runs := uint64(0)
	for _, s := range ask[micro.Stats](second, "$SRV.STATS.pinwheel", 2) {
		require.Equal(t, "pool", s.Endpoints[0].Name)
		var one fleet.ProcessStats
		require.NoError(t, json.Unmarshal(s.Endpoints[0].Data, &one))
		require.Equal(t, 500, one.Total+one.Total%2)
		require.True(t, one.Consumer.Ready)
		runs += one.WarmHits + one.ColdStarts
	}
	require.EqualValues(t, 3, runs)
	require.Len(t, ask[fleet.ProcessStats](second, "pinwheel.control.pool", 2), 2)
}

// ask sends a request and returns the answers of n processes.
func ask[T any](h *testFleet, subject string, n int) []T {
	h.t.Helper()
	inbox, answers := h.nc.NewRespInbox(), make(chan *nats.Msg, 8)
	sub, err := h.nc.ChanSubscribe(inbox, answers)
	require.NoError(h.t, err)
	require.NoError(h.t, h.nc.Flush())
	defer func() { _ = sub.Unsubscribe() }()
	require.NoError(h.t, h.nc.PublishRequest(subject, inbox, nil))
	var list []T
	for range n {
		select {
		case m := <-answers:
			var a T
			require.NoError(h.t, json.Unmarshal(m.Data, &a), "%s", m.Data)
			list = append(list, a)
		case <-time.After(patience):
			h.t.Fatalf("%d of %d answer %s", len(list), n, subject)
		}
	}
	return list
}

func TestProfilesOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	for profiling, status := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		a, err := admin.Open("127.0.0.1:0", h.fleet, profiling)
		require.NoError(t, err)
		go func() { _ = a.Run(t.Context()) }()
		resp, err := http.Get("http://" + a.Addr() + "/debug/pprof/allocs")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, status, resp.StatusCode)
	}
}

func TestAdminPool(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.Threads, c.MaxIsolates = 2, 10 }, inProcess)
	a, err := admin.Open("127.0.0.1:0", h.fleet, false)
	require.NoError(t, err)
	go func() { _ = a.Run(t.Context()) }()
	h.deploy("acme", "ok", `export default { fetch: () => new Response("ok") }`)
	h.reply(h.send(events.Fetch, "acme/ok", ""))
	h.settled()
	resp, err := http.Get("http://" + a.Addr() + "/admin/pool")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(body, &doc))
	for key, want := range map[string]any{
		"total": 10.0, "cached": 1.0, "capacity": 9.0, "hit_rate": 0.0, "warm_hits": 0.0, "cold_starts": 1.0,
		"evictions": 0.0,
		"parked":    0.0, "discards": map[string]any{}, "kills": map[string]any{},
	} {
		require.Equal(t, want, doc[key], key)
	}
	require.Len(t, doc["threads"], 4, "two of them of a lower priority")
	require.Equal(t, "acme", doc["owners"].([]any)[0].(map[string]any)["owner"])
	require.Contains(t, doc["dispatch"], "queued")
	require.Contains(t, doc["dispatch"], "running")
	require.Contains(t, doc["consumer"], "held")
}

// Owners that have events in turn find their contexts again, as long as all threads together have room for them. One
// thread would not have.
func TestOwnersAreDividedAmongThreads(t *testing.T) {
	t.Parallel()
	const owners, rounds = 12, 20
	h := openFleet(t, func(c *config.Config) { c.Threads, c.BackgroundThreads, c.MaxIsolates = 2, 0, 20 })
	for i := range owners {
		h.deploy(fmt.Sprint("o", i), "w", `export default { fetch: () => new Response("ok") }`)
	}
	for range rounds {
		for i := range owners {
			require.Equal(t, "ok", string(h.reply(h.send(events.Fetch, fmt.Sprintf("o%d/w", i), "")).Body))
		}
	}
	h.settled()
	pool := h.fleet.Stats()
	require.EqualValues(t, owners*rounds, pool.ColdStarts+pool.WarmHits)
	// A few more on a busy machine: events do not wait for a thread that gets no processor.
	require.Less(t, pool.ColdStarts, uint64(3*owners), "cold starts of %d owners", owners)
}
