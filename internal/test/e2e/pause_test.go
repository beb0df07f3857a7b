package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// began counts how often each event has begun, by the lines that its handler writes.
type began struct {
	mu sync.Mutex
	n  map[string]int
}

const beginsWorker = `export default { task(event) { console.log("begins " + event.id); }, fetch() { return new Response("ok"); } }`

func countBegun(t *testing.T, nc *nats.Conn) *began {
	b := &began{n: map[string]int{}}
	_, err := nc.Subscribe("pinwheel.logs.>", func(m *nats.Msg) {
		var line events.LogLine
		if json.Unmarshal(m.Data, &line) != nil {
			return
		}
		if id, ok := strings.CutPrefix(line.Text, "begins "); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.n[line.Owner+"/"+line.Worker+" "+id]++
		}
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return b
}

// of is how many events of a worker have begun, and how often the one that began most often did.
func (b *began) of(worker string) (events, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, n := range b.n {
		if strings.HasPrefix(name, worker+" ") {
			events, most = events+1, max(most, n)
		}
	}
	return events, most
}

func (h *testFleet) client() *control.Client {
	return control.NewClient(h.nc, events.DefaultPrefix, controlToken)
}

func (h *testFleet) pause(owner, worker string) {
	h.t.Helper()
	target := control.PauseTarget{Owner: owner, Worker: worker}
	p, err := control.Ask(h.t.Context(), h.client(), control.PauseWorkers, control.Pause{PauseTarget: target})
	require.NoError(h.t, err)
	_, _, err = control.AwaitPaused(h.t.Context(), h.client(), target, p)
	require.NoError(h.t, err)
}

func (h *testFleet) resume(owner, worker string) {
	h.t.Helper()
	_, err := control.Ask(h.t.Context(), h.client(), control.ResumeWorkers, control.PauseTarget{Owner: owner,
		Worker: worker})
	require.NoError(h.t, err)
}

// A pause holds while all processes are replaced and all streams get other leaders; what was stored runs once after it.
func TestPauseOutlivesProcessesAndLeaders(t *testing.T) {
	t.Parallel()
	const before, during, long = 40, 60, 2 * time.Minute
	c := natstest.StartCluster(t, 3)
	c.Await()
	open := func(first int) *testFleet {
		return openFleet(t, withToken, func(cfg *config.Config) {
			cfg.NatsURL, cfg.Replicas, cfg.OwnerMaxQueued = c.URLs(first), 3, 20
		})
	}
	fleet := []*testFleet{open(0), open(1)}
	h := fleet[0]
	b := countBegun(t, h.nc)
	for _, owner := range []string{"acme", "bob"} {
		h.deploy(owner, "w", beginsWorker)
		h.deploy(owner, "slow", `export default { async task() { await new Promise((f) => setTimeout(f, 300)); } }`)
	}
	publish := func(target string, from, to int) {
		owner, worker, _ := strings.Cut(target, "/")
		for i := from; i < to; i++ {
			m := nats.NewMsg(events.Subjects(events.DefaultPrefix).Event(events.Task, owner, worker))
			m.Header.Set(events.HeaderEventID, fmt.Sprint(i))
			require.Eventually(t, func() bool { _, err := h.js.PublishMsg(t.Context(), m); return err == nil }, long,
				10*time.Millisecond)
		}
	}
	publish("acme/slow", 0, before) // they fill queues, and some are parked
	h.pause("acme", "")
	publish("acme/w", 0, during)
	for _, stream := range []string{events.StreamEvents, events.StreamParked, "KV_PINWHEEL_OWNERS"} {
		_, err := h.nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 10*time.Second)
		require.NoError(t, err)
	}
	for i := range fleet {
		fleet[i].stop()
		fleet[i] = open(2 - i)
	}
	h = fleet[0]
	b2 := countBegun(t, h.nc)
	publish("acme/w", during, 2*during)
	publish("bob/w", 0, during)
	require.Eventually(t, func() bool { n, _ := b2.of("bob/w"); return n == during }, long, 20*time.Millisecond,
		"others run")
	require.Eventually(t, func() bool {
		left, err := h.js.Stream(t.Context(), events.StreamEvents)
		return err == nil && left.CachedInfo().State.Msgs <= 1
	}, long, 50*time.Millisecond, "nothing of the paused owner is in the lanes, before others")
	for _, one := range []*began{b, b2} {
		n, _ := one.of("acme/w")
		require.Zero(t, n, "nothing of the paused owner has started")
	}
	h.resume("acme", "")
	require.Eventually(t, func() bool { n, _ := b2.of("acme/w"); return n == 2*during }, long, 20*time.Millisecond)
	h.settled()
	require.Eventually(t, func() bool {
		parked, err := h.js.Stream(t.Context(), events.StreamParked)
		return err == nil && parked.CachedInfo().State.Msgs <= 1
	}, long, 50*time.Millisecond)
	_, most := b2.of("acme/w")
	require.Equal(t, 1, most, "each ran once")
	require.Empty(t, h.dead())
}

// A paused worker holds back no other one of its owner, whose parked events come by the same consumer; and a resumed
// one gets its events, those included that were in queues when the pause began.
func TestPauseOfOneWorker(t *testing.T) {
	t.Parallel()
	const n = 100
	h := openFleet(t, withToken, func(cfg *config.Config) { cfg.OwnerMaxQueued = 10 })
	b := countBegun(t, h.nc)
	slow := `export default { async task(event) { console.log("begins " + event.id); await new Promise((f) => setTimeout(f, 5)); } }`
	h.deploy("acme", "a", slow)
	h.deploy("acme", "b", slow)
	for i := range n {
		for _, worker := range []string{"a", "b"} {
			m := nats.NewMsg(events.Subjects(events.DefaultPrefix).Event(events.Task, "acme", worker))
			m.Header.Set(events.HeaderEventID, fmt.Sprint(i))
			_, err := h.js.PublishMsg(t.Context(), m)
			require.NoError(t, err)
		}
		if i == n/2 {
			require.Eventually(t, func() bool { n, _ := b.of("acme/a"); return n > 0 }, patience, time.Millisecond)
			h.pause("acme", "a")
		}
	}
	require.Eventually(t, func() bool { all, _ := b.of("acme/b"); return all == n }, patience, 20*time.Millisecond)
	_, running, err := control.AwaitPaused(t.Context(), h.client(), control.PauseTarget{Owner: "acme", Worker: "a"},
		control.PausedOwner{Owner: "acme", Paused: h.pausedNow("acme")})
	require.NoError(t, err)
	require.Zero(t, running)
	was, _ := b.of("acme/a")
	require.Less(t, was, n)
	h.resume("acme", "a")
	require.Eventually(t, func() bool { all, _ := b.of("acme/a"); return all == n }, patience, 20*time.Millisecond)
	for _, worker := range []string{"acme/a", "acme/b"} {
		_, most := b.of(worker)
		require.Equal(t, 1, most, worker)
	}
	require.Empty(t, h.pausedNow("acme"))
}

func (h *testFleet) pausedNow(owner string) []control.Paused {
	h.t.Helper()
	all, err := control.Ask(h.t.Context(), h.client(), control.PausedAll, control.ListPaused{Owner: owner})
	require.NoError(h.t, err)
	return all.Paused
}

// A retry of a paused worker waits with the others, and knows its failures then.
func TestPausedRetriesKeepTheirHistory(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.deploy("acme", "w", `export default { task(event) { throw new Error("run " + event.attempt); } }`,
		`{"retries":{"maxAttempts":2,"initialMs":1500,"factor":1,"jitter":0}}`)
	h.send(events.Task, "acme/w", "")
	require.Eventually(t, func() bool { return h.metric("pinwheel_retries_total") == 1 }, patience, time.Millisecond)
	h.pause("acme", "w")
	require.Eventually(t, func() bool { return h.metric("pinwheel_events_total", "outcome", "hold") == 1 }, patience,
		5*time.Millisecond)
	require.Empty(t, h.dead())
	h.resume("acme", "w")
	require.Eventually(t, func() bool { return len(h.dead()) == 1 }, patience, 10*time.Millisecond)
	d := h.dead()[0]
	require.Equal(t, 2, d.Attempts)
	require.Len(t, d.History, 2)
	require.Contains(t, d.History[0].Message, "run 1")
	require.Contains(t, d.History[1].Message, "run 2")
}
