package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// The name of this file is the last one: Go resumes parallel tests from the last to the first, and these take longest.

// clusterPatience is for the elections of all assets of a fleet, which take seconds.
const clusterPatience = 90 * time.Second

// traffic is publishers that try again until the test is over, and the results of their events.
type traffic struct {
	t       testing.TB
	cluster *natstest.Cluster
	js      jetstream.JetStream

	mu     sync.Mutex
	stored map[string]bool   // ids of acknowledged publishes
	ran    map[string]int    // runs of each
	newest map[int]time.Time // by lane: when the event was sent that ran last
	stop   func()            // ends the publishers, after each has its answer
}

func (tr *traffic) handle(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
	id, at, _ := strings.Cut(string(e.Body), " ")
	sent, err := time.Parse(time.RFC3339Nano, at)
	lane, _, _, _, ok := subjects.ParseStored(e.Origin.Subject)
	tr.mu.Lock()
	tr.ran[id]++
	if err == nil && ok && sent.After(tr.newest[lane]) {
		tr.newest[lane] = sent
	}
	tr.mu.Unlock()
	if strings.HasSuffix(id, "-dead") {
		return dead(e)
	}
	return ack(e)
}

// begin publishes from n goroutines, connected to the servers from first on, 20 events a second each.
func (tr *traffic) begin(first, n int) {
	seed := rand.Uint64()
	tr.t.Logf("seed %d", seed)
	var owners [events.Lanes][]string
	for i := range 100 {
		o := fmt.Sprintf("o%d", i)
		owners[events.LaneOf(o)] = append(owners[events.LaneOf(o)], o)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for p := range n {
		nc := tr.cluster.Connect(first + p)
		js := jetStream(tr.t, nc)
		random := rand.New(rand.NewPCG(seed, uint64(p)))
		running.Go(func() {
			tick := time.NewTicker(80 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%d-%d", p, i)
				if random.IntN(10) == 0 {
					id += "-dead"
				}
				of := owners[(i+p*events.Lanes/n)%events.Lanes] // each lane in turn, so that recovered need not wait long
				tr.publish(js, id, of[random.IntN(len(of))])
				<-tick.C
			}
		})
	}
	tr.stop = func() { stop(); running.Wait() }
	tr.t.Cleanup(tr.stop)
	tr.t.Cleanup(tr.tellLeaders)
}

// publish tries until it gets an answer.
func (tr *traffic) publish(js jetstream.JetStream, id, owner string) {
	deadline := time.Now().Add(clusterPatience)
	for time.Now().Before(deadline) {
		body := id + " " + time.Now().Format(time.RFC3339Nano)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := js.PublishMsg(ctx, &nats.Msg{Subject: subjects.Event(events.Task, owner, "w"), Data: []byte(body)},
			jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0))
		cancel()
		if err == nil {
			tr.mu.Lock()
			tr.stored[id] = true
			tr.mu.Unlock()
			return
		}
		time.Sleep(20 * time.Millisecond) // a server without a leader refuses at once
	}
	tr.t.Errorf("event %s could not be published for %s", id, clusterPatience)
}

// tellLeaders logs, for a failed test, which assets have no leader or a replica that is behind.
func (tr *traffic) tellLeaders() {
	if !tr.t.Failed() {
		return
	}
	for _, a := range consumer.Assets(testConfig(), 1<<20) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		f, err := resources.Look(ctx, tr.js, a)
		cancel()
		var cluster *jetstream.ClusterInfo
		switch {
		case err != nil || f.Missing:
			tr.t.Logf("%v: %v, missing: %t", a, err, f.Missing)
			continue
		case f.Info != nil:
			cluster = f.Info.Cluster
		default:
			cluster = f.Stream.Cluster
		}
		for _, r := range cluster.Replicas {
			if !r.Current || cluster.Leader == "" {
				tr.t.Logf("%v: leader %q, %s is current: %t, offline: %t, lag %d", a, cluster.Leader, r.Name, r.Current, r.Offline, r.Lag)
			}
		}
	}
}

// recovered waits until every lane has run an event that was sent after now, and returns how long that took.
func (tr *traffic) recovered(what string) time.Duration {
	tr.t.Helper()
	from := time.Now()
	require.Eventually(tr.t, func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for lane := range events.Lanes {
			if !tr.newest[lane].After(from) {
				return false
			}
		}
		return true
	}, clusterPatience, 20*time.Millisecond, "every lane runs events again after: %s", what)
	took := time.Since(from)
	tr.t.Logf("%s: every lane runs new events after %s", what, took.Round(time.Millisecond))
	return took
}

// settled ends the publishing, and compares the result of every event with the expected one.
func (tr *traffic) settled() {
	tr.t.Helper()
	tr.stop()
	require.Eventually(tr.t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		left, err := resources.Count(ctx, tr.js, events.StreamEvents, subjects.Anchor())
		return err == nil && left == 0
	}, clusterPatience, 50*time.Millisecond, "every event ends")
	letters := map[string]int{}
	for l, err := range deadletter.NewStore(tr.js, subjects).List(context.Background(), deadletter.Filter{}) {
		require.NoError(tr.t, err)
		id, _, _ := strings.Cut(string(l.Body), " ")
		letters[id]++
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	again := 0
	for id := range tr.stored {
		require.Positive(tr.t, tr.ran[id], "event %s never ran", id)
		again += tr.ran[id] - 1
		want := 0
		if strings.HasSuffix(id, "-dead") {
			want = 1
		}
		require.Equal(tr.t, want, letters[id], "dead letters of event %s", id)
	}
	tr.t.Logf("%d events ended, %d of them dead; %d runs were repeated", len(tr.stored), len(letters), again)
}

// member starts a process of the fleet that begins at server first.
func (tr *traffic) member(first, replicas int) *fleet {
	cfg := testConfig()
	cfg.Replicas = replicas
	cfg.AckWait, cfg.Heartbeat, cfg.Window = 5*time.Second, 500*time.Millisecond, 256
	cfg.Node = fmt.Sprintf("process %d", first)
	return startWithin(tr.t, clusterPatience, tr.cluster.Connect(first), cfg, &dispatcher{handle: tr.handle, forget: true})
}

// beginTraffic starts a process of the fleet at server 0, and publishers at all servers.
func beginTraffic(t *testing.T, replicas int) (*traffic, *fleet) {
	t.Helper()
	c := natstest.StartCluster(t, 3)
	tr := &traffic{t: t, cluster: c, js: jetStream(t, c.Connect(0)), stored: map[string]bool{}, ran: map[string]int{},
		newest: map[int]time.Time{}}
	first := tr.member(0, replicas)
	tr.begin(0, 4)
	tr.recovered("start")
	return tr, first
}

// awaitReplicas waits until the assets that the traffic uses have all their replicas, so that one server may stop. If
// asked, it waits for all assets. nats-server 2.15.2 on a machine that is short of CPU time has left a stream without
// traffic without a leader after a partition.
func (tr *traffic) awaitReplicas(everything bool) {
	tr.t.Helper()
	current := func(c *jetstream.ClusterInfo) bool {
		return c != nil && c.Leader != "" && len(c.Replicas) == 2 &&
			!slices.ContainsFunc(c.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || resources.Behind(p) })
	}
	for _, a := range consumer.Assets(testConfig(), 1<<20) {
		if of := a.StreamName(); !everything && of != events.StreamEvents && of != events.StreamDead {
			continue
		}
		late := ""
		whole := func() bool {
			f, err := resources.Look(tr.t.Context(), tr.js, a)
			c := (*jetstream.ClusterInfo)(nil)
			switch {
			case err != nil || f.Missing:
				late = fmt.Sprint(a, " ", err)
				return false
			case f.Stream != nil:
				c = f.Stream.Cluster
			default:
				c = f.Info.Cluster
			}
			late = describe(a, c)
			return current(c)
		}
		if !whole() && !assert.Eventually(tr.t, whole, clusterPatience, 200*time.Millisecond) {
			tr.t.Fatalf("not all copies are current: %s", late)
		}
	}
}

func describe(a resources.Resource, c *jetstream.ClusterInfo) string {
	text, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return a.String() + " " + string(text)
}

// replicated checks that all assets of the fleet have three replicas.
func (tr *traffic) replicated() {
	tr.t.Helper()
	for _, a := range consumer.Assets(testConfig(), 1<<20) {
		f, err := resources.Look(tr.t.Context(), tr.js, a)
		require.NoError(tr.t, err)
		if f.Info != nil {
			require.Len(tr.t, f.Info.Cluster.Replicas, 2, a)
		} else {
			require.Equal(tr.t, 3, f.Stream.Config.Replicas, a)
			require.Len(tr.t, f.Stream.Cluster.Replicas, 2, a)
		}
	}
}

func (tr *traffic) leader() int {
	leader := -1
	require.Eventually(tr.t, func() bool { leader, _ = tr.cluster.Leader(tr.js, events.StreamEvents); return leader >= 0 },
		clusterPatience, 20*time.Millisecond)
	return leader
}

// Three servers keep three replicas. If the leader of the events is cut off, comes back, or is killed, no event is lost
// and no lane stays behind.
func TestClusterLosesItsLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	tr, _ := beginTraffic(t, 3)
	tr.member(1, 3)
	tr.awaitReplicas(true)

	leader := tr.leader()
	tr.cluster.Cut(leader)
	tr.recovered("leader of the events cut off")
	tr.cluster.Heal(leader)
	tr.recovered("it is back")
	tr.awaitReplicas(false)

	leader = tr.leader()
	tr.cluster.Kill(leader)
	tr.recovered("leader of the events killed")
	tr.cluster.Start(leader)
	tr.recovered("it is back")
	tr.awaitReplicas(false)
	tr.settled()
}

// A fleet with one copy gets three, then each server is stopped and started, and each process is replaced: no event is
// lost and no lane stays behind.
func TestClusterGrowsAndRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	tr, first := beginTraffic(t, 1)
	second := tr.member(1, 3)
	tr.recovered("a process that wants three copies started")
	s, err := tr.js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.Equal(t, 1, s.CachedInfo().Config.Replicas, "only the command changes what exists")
	apply := &resources.Reconciler{JS: tr.js, Apply: true}
	cfg := testConfig()
	cfg.Replicas, cfg.AckWait, cfg.Heartbeat = 3, 5*time.Second, 500*time.Millisecond
	for _, a := range consumer.Assets(cfg, tr.cluster.Connect(0).MaxPayload()) {
		require.NoError(t, apply.Reconcile(t.Context(), a), a)
	}
	tr.recovered("three copies were applied")
	tr.awaitReplicas(true)
	tr.replicated()

	for i := range 3 {
		tr.cluster.Stop(i)
		tr.recovered(fmt.Sprintf("server %d stopped", i))
		tr.cluster.Start(i)
		tr.awaitReplicas(false)
	}
	for i, f := range []*fleet{first, second} {
		tr.member(2-i, 3)
		f.stop()
		tr.recovered(fmt.Sprintf("process %d of the fleet replaced", i))
	}
	tr.settled()
}

// A server that is cut off from the others keeps its clients, but delivers nothing to them. The fleet's processes
// connect to another server.
func TestProcessLeavesAServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t, 3)
	cfg := testConfig()
	cfg.Replicas, cfg.Heartbeat, cfg.Window = 3, 500*time.Millisecond, 256
	nc := c.Connect(0)
	ran := make(chan string, 1<<16)
	startWithin(t, clusterPatience, nc, cfg,
		&dispatcher{forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			ran <- string(e.Body)
			return ack(e)
		}})
	require.Equal(t, c.URL(0), nc.ConnectedUrl())
	c.Cut(0)
	require.Eventually(t, func() bool { return nc.IsConnected() && nc.ConnectedUrl() != c.URL(0) }, clusterPatience,
		10*time.Millisecond)

	// Ask all lanes for events, so that each lane that has a leader again delivers some. It takes the servers a while to
	// store one.
	others, stored := jetStream(t, c.Connect(1)), false
	publish := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for i := range 50 {
			_, err := others.PublishMsg(ctx, &nats.Msg{Subject: subjects.Event(events.Task, fmt.Sprintf("o%d", i), "w"),
				Data: []byte("after")}, jetstream.WithRetryAttempts(0))
			stored = stored || err == nil
		}
	}
	require.Eventually(t, func() bool { publish(); return stored }, 3*clusterPatience, 500*time.Millisecond,
		"two servers of three store events")
	require.Eventually(t, func() bool { publish(); return len(ran) > 0 }, clusterPatience, 500*time.Millisecond,
		"it runs events again")
}

// TestTwoMakeTheSameBucketsInACluster has two connections make the same buckets and streams at once, as processes do
// that start together. It is a test of internal/lib/resources. It is here because a cluster takes seconds to start, and
// other tests run meanwhile.
func TestTwoMakeTheSameBucketsInACluster(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3)
	var reconcilers [2]*resources.Reconciler
	for i := range reconcilers {
		js, err := jetstream.New(cluster.Connect(i))
		require.NoError(t, err)
		reconcilers[i] = &resources.Reconciler{JS: js}
	}
	for round := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
		errs := make(chan error, len(reconcilers))
		for _, r := range reconcilers {
			go func() {
				_, err := r.Bucket(ctx, jetstream.KeyValueConfig{Bucket: fmt.Sprintf("B%d", round), History: 3, Replicas: 3})
				name := fmt.Sprintf("S%d", round)
				errs <- errors.Join(err, r.Stream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Replicas: 3}))
			}()
		}
		for range reconcilers {
			require.NoError(t, <-errs)
		}
		cancel()
	}
}

// TestDoctorSeesAServerThatIsAway is a test of internal/operate/doctor. It is here for the same reason.
func TestDoctorSeesAServerThatIsAway(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3)
	nc, cfg := cluster.Connect(0), testConfig()
	cfg.Replicas = 3
	js := jetStream(t, nc)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	c := doctor.Config{
		NC: nc, Subjects: cfg.Prefix, Resources: consumer.Assets(cfg, nc.MaxPayload()), Replicas: cfg.Replicas,
		Progress:  300 * time.Millisecond,
		Anonymous: func() (*nats.Conn, error) { return natstest.Dial(nc.ConnectedUrl()) },
	}
	// said waits until doctor has a line of that check with that text, and no other of that level.
	said := func(level doctor.Level, check, text string) {
		require.Eventually(t, func() bool {
			of := slices.DeleteFunc(doctor.Examine(t.Context(), c), func(l doctor.Line) bool { return l.Check != check })
			return len(of) > 0 && !slices.ContainsFunc(of, func(l doctor.Line) bool { return l.Level != level }) &&
				slices.ContainsFunc(of, func(l doctor.Line) bool { return strings.Contains(l.Text, text) })
		}, clusterPatience, 100*time.Millisecond, "%s %s: %s", level, check, text)
	}
	said(doctor.OK, "cluster", fmt.Sprintf("%d of %[1]d have a leader and all their copies are current", len(c.Resources)))
	said(doctor.OK, "durability", "3 copies, most of them written to their operating systems before the publisher gets an ack")
	cluster.Stop(2)
	said(doctor.Warn, "cluster", "stream PINWHEEL_EVENTS: n2 is")
}

// A fleet that starts while a server of the cluster is away, or slow, waits for it.
func TestAssetsWaitForAServerThatIsAway(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3)
	for i := range 3 { // the two that come back have never heard from the third
		cluster.Kill(i)
	}
	cluster.Start(0)
	cluster.Start(1)
	nc := cluster.Connect(0)
	js := jetStream(t, nc)
	away, asked := 0, 0
	refused := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		asked++
		name := fmt.Sprintf("S%d", asked)
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Replicas: 3})
		var api *jetstream.APIError
		if errors.As(err, &api) && api.ErrorCode == 10005 {
			away++
			return true
		}
		return false
	}
	require.Eventually(t, refused, clusterPatience, 20*time.Millisecond, "the leader knows that the server is away")
	cfg := testConfig()
	cfg.Replicas = 3
	done := make(chan error, 1)
	go func() { done <- consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()) }()
	require.Eventually(t, func() bool { return refused() && away > 30 }, clusterPatience, 100*time.Millisecond)
	select {
	case err := <-done:
		t.Fatalf("it gave up: %v", err)
	default:
	}
	cluster.Start(2)
	require.NoError(t, <-done)
}
