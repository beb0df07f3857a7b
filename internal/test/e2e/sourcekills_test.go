package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

var (
	sourceMessages = flag.Int("source-messages", 200, "messages of each source that TestSourcesOutliveKills publishes")
	sourceKills    = flag.Int("source-kills", 2, "processes and servers that it kills")
	sourceServers  = flag.Int("source-servers", 1, "servers of NATS that it starts: 1 or 3")
)

// killed is the NATS of a test that kills it.
type killed struct {
	urls     string
	replicas int
	// kill kills a server and starts it again. Of several it is the leader of a stream, if that has one.
	kill func(js jetstream.JetStream, stream string)
}

// killPatience is how long there may be no progress. Servers elect leaders in it, several times on a slow machine.
const killPatience = 4 * patience

// Processes and servers are killed at any time: each message runs, small and large ones, of a work queue and of a
// stream that keeps its messages, none is acked at its source before, and nothing is written there. 200 000 messages on
// three servers: go test -run TestSourcesOutliveKills -timeout 2h ./internal/test/e2e -args -source-servers 3
// -source-messages 100000 -source-kills 30.
func TestSourcesOutliveKills(t *testing.T) {
	t.Parallel()
	if *sourceServers == 1 {
		server := natstest.StartAlone(t, t.TempDir(), 0)
		judgeSources(t, killed{server.URL(), 1, func(jetstream.JetStream, string) {
			server.Kill()
			server.Start(0)
		}})
		return
	}
	c := natstest.StartCluster(t, *sourceServers)
	judgeSources(t, killed{c.URLs(0), *sourceServers, func(js jetstream.JetStream, stream string) {
		victim, _ := c.Leader(js, stream)
		victim = max(0, victim)
		t.Logf("server %d is killed, for %s", victim, stream)
		c.Kill(victim)
		c.Start(victim)
		c.Await()
	}})
}

// judgedSource is a stream whose messages start a worker of its name.
type judgedSource struct {
	worker, stream, subject string
	retention               jetstream.RetentionPolicy
	last                    uint64 // sequence of its last message
}

func judgeSources(t *testing.T, servers killed) {
	h := &testFleet{t: t}
	h.connect(servers.urls)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	begin := func() *fleettest.Process {
		return fleettest.Serve(t, servers.urls, "PINWHEEL_ACK_WAIT=1s",
			fmt.Sprint("PINWHEEL_REPLICAS=", servers.replicas))
	}
	processes := []*fleettest.Process{begin(), begin()}
	policies, err := deploy.OpenPolicies(t.Context(), h.js, inventory.Deploy(testConfig(t)))
	require.NoError(t, err)
	_, err = policies.Set(t.Context(), "acme", func(p *workers.Policy) {
		*p = workers.Policy{Consume: []string{"stream:*"}, BindingCalls: 1_000_000}
		h.policy = *p
	})
	require.NoError(t, err)
	list := []*judgedSource{{"jobs", "JOBS", "jobs.new", jetstream.WorkQueuePolicy, 0},
		{"orders", "ORDERS", "orders.new", jetstream.LimitsPolicy, 0}}
	for _, s := range list {
		_, err = h.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: s.stream, Subjects: []string{s.subject},
			Retention: s.retention, Replicas: servers.replicas})
		require.NoError(t, err)
		h.deploy("acme", s.worker,
			`export default { async task(e, env) {
				if (e.payload.length < 1000) throw new Error("short");
				await env.RAN.put(String(e.source.sequence), "");
			} }`,
			fmt.Sprintf(`{"kv": {"RAN": %q}, "sources": [{"stream": %q, "start": "all"}],
				"retries": {"maxAttempts": 100, "maxMs": 1000}}`, s.worker, s.stream))
	}
	small, large := bytes.Repeat([]byte("x"), 1<<10), bytes.Repeat([]byte("x"), 900<<10)
	for i := range *sourceMessages {
		for _, s := range list {
			body := small
			if i%100 == 99 {
				body = large
			}
			require.Eventually(t, func() bool {
				ack, err := h.js.Publish(t.Context(), s.subject, body, jetstream.WithMsgID(strconv.Itoa(i)))
				if err == nil {
					s.last = max(s.last, ack.Sequence)
				}
				return err == nil
			}, killPatience, 50*time.Millisecond)
		}
		each := max(1, *sourceMessages/(*sourceKills+1))
		switch kill := (i + 1) / each; {
		case (i+1)%each != 0 || kill > *sourceKills:
		case kill%2 == 0:
			// The leader of one source, then of the other one, then of the stream of events.
			servers.kill(h.js, []string{list[0].stream, list[1].stream, events.StreamEvents}[(kill/2-1)%3])
		default:
			victim := random.IntN(len(processes))
			processes[victim].Kill()
			processes[victim] = begin()
		}
	}
	for _, s := range list {
		s.judge(h)
	}
	require.Empty(t, h.dead())
}

// judge waits until each message has run and is acked.
func (s *judgedSource) judge(h *testFleet) {
	t := h.t
	ran := func() int {
		bucket, err := h.js.Stream(t.Context(), "KV_PINWHEEL_KV_acme")
		if err != nil {
			return 0
		}
		info, err := bucket.Info(t.Context(), jetstream.WithSubjectFilter("$KV.PINWHEEL_KV_acme."+s.worker+".>"))
		if err != nil {
			return 0
		}
		return len(info.State.Subjects)
	}
	for last := -1; last < int(s.last); { // it goes on, however long it takes
		n := last
		require.Eventually(t, func() bool {
			n = ran()
			return n > last
		}, killPatience, tick, "%d of %d messages of %s ran", last, s.last, s.stream)
		last = n
	}
	require.Equal(t, int(s.last), ran())
	stream, err := h.js.Stream(t.Context(), s.stream)
	require.NoError(t, err)
	consumer, err := stream.Consumer(t.Context(), "pinwheel-acme-"+s.worker+"-0")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := consumer.Info(t.Context())
		return err == nil && info.NumPending == 0 && info.NumAckPending == 0
	}, killPatience, tick, "all are acked")
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, s.last, info.State.LastSeq, "nothing is written to the source")
	require.EqualValues(t, *sourceMessages, s.last)
	if s.retention == jetstream.LimitsPolicy {
		require.EqualValues(t, s.last, info.State.Msgs, "nor removed")
	} else {
		require.Zero(t, info.State.Msgs)
	}
}
