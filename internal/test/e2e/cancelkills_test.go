package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cancels"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// lastBegins has when each event began last, by the clock of this machine, as its handler says.
type lastBegins struct {
	mu sync.Mutex
	at map[string]time.Time
}

func followBegins(t *testing.T, nc *nats.Conn) *lastBegins {
	b := &lastBegins{at: map[string]time.Time{}}
	_, err := nc.Subscribe("pinwheel.logs.>", func(m *nats.Msg) {
		var line events.LogLine
		if json.Unmarshal(m.Data, &line) != nil {
			return
		}
		if id, ok := strings.CutPrefix(line.Text, "begins "); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.at[id] = line.Time
		}
	})
	require.NoError(t, err)
	return b
}

// What was answered with cancelled never begins again, and all other events run, although processes and the server are
// killed while events wait, run and are cancelled.
func TestCancelledEventsStaySoThroughKills(t *testing.T) {
	t.Parallel()
	const n, each, kills = 240, 10, 4
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	server := natstest.StartAlone(t, t.TempDir(), 0)
	h := &testFleet{t: t}
	h.connect(server.URL())
	begin := func() *fleettest.Process {
		return fleettest.Serve(t, server.URL(), "PINWHEEL_ACK_WAIT=1s", "PINWHEEL_CONTROL_TOKEN="+controlToken)
	}
	processes := []*fleettest.Process{begin(), begin()}
	h.deploy("acme", "w", `export default { async task(event, env) {
			console.log("begins " + event.id);
			await new Promise((done) => setTimeout(done, 40));
			await env.RAN.put(event.id, "");
		} }`, `{"concurrency": 2, "kv": {"RAN": "ran"}, "retries": {"maxAttempts": 100, "maxMs": 500}}`)
	b := followBegins(t, h.nc)
	subject := events.Subjects(events.DefaultPrefix).Event(events.Task, "acme", "w")
	for i := range n {
		m := nats.NewMsg(subject)
		m.Header.Set(events.HeaderEventID, fmt.Sprint("e", i))
		_, err := h.js.PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	order, cancelled := random.Perm(n), map[string]time.Time{}
	for round := range n / (2 * each) {
		var names []string
		for _, i := range order[round*each : (round+1)*each] {
			names = append(names, fmt.Sprint("e", i))
		}
		for _, name := range names {
			a, err := control.Ask(t.Context(), h.client(), control.EventsCancel,
				control.CancelEvents{ListEvents: control.ListEvents{Owner: "acme"}, Names: []string{name}})
			for _, e := range a.Events {
				if err == nil && e.Outcome == cancels.Cancelled {
					cancelled[e.ID] = time.Now()
				}
			}
		}
		switch {
		case round%3 != 1 || round/3 >= kills:
		case round/3%2 == 1:
			server.Kill()
			server.Start(0)
		default:
			victim := random.IntN(len(processes))
			processes[victim].Kill()
			processes[victim] = begin()
		}
	}
	require.NotEmpty(t, cancelled)
	left := func() int {
		s, err := h.js.Stream(t.Context(), events.StreamEvents)
		if err != nil {
			return n
		}
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(subject))
		if err != nil {
			return n
		}
		return len(info.State.Subjects)
	}
	require.Eventually(t, func() bool { return left() == 0 && h.unsettled() == 0 }, killPatience, tick)
	require.Empty(t, h.dead())
	require.NoError(t, h.nc.Flush())
	kv, err := h.js.KeyValue(t.Context(), "PINWHEEL_KV_acme")
	require.NoError(t, err)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range n {
		id := fmt.Sprint("e", i)
		began, ran := b.at[id]
		at, is := cancelled[id]
		if _, err := kv.Get(t.Context(), "ran."+id); !is {
			require.NoError(t, err, "%s has not run", id)
		} else {
			require.False(t, ran && began.After(at), "%s was cancelled at %s and began at %s", id, at, began)
		}
	}
	t.Logf("%d of %d were cancelled", len(cancelled), n)
}
