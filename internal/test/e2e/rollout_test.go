package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// says is the code of a worker whose tasks succeed.
func says(text string) string { return fmt.Sprintf("export default { task: () => %q };", text) }

// patient is the manifest of a worker whose events do not run out of attempts before a guard judges.
const patient = `{"retries": {"maxAttempts": 100, "initialMs": 20, "maxMs": 200}}`

// begin deploys acme/w in a share.
func (h *testFleet) begin(code string, req deploy.Request) deploy.Deployed {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "w.js")
	require.NoError(h.t, os.WriteFile(path, []byte(code), 0o600))
	require.NoError(h.t, os.WriteFile(filepath.Join(filepath.Dir(path), "w.pinwheel.json"), []byte(patient), 0o600))
	req.Owner, req.Path = "acme", path
	d, err := h.workers().Deploy(context.Background(), req, h.check)
	require.NoError(h.t, err)
	return d
}

func (h *testFleet) workers() *deploy.Store {
	h.t.Helper()
	s, err := deploy.Open(context.Background(), h.js, deploy.Config{})
	require.NoError(h.t, err)
	return s
}

// holds is the deployment of acme/w.
func (h *testFleet) holds(s *deploy.Store) workers.Deployment {
	h.t.Helper()
	in, err := s.Installation(context.Background(), "acme", "w")
	require.NoError(h.t, err)
	return in.Deployment
}

// keyed sends tasks to acme/w, each key after its last one was answered, until the returned function is called. That
// returns, by key, the versions that answered, in their order.
func (h *testFleet) keyed(keys int) (stop func() map[string][]string) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	ran := map[string][]string{}
	var running sync.WaitGroup
	for i := range keys {
		running.Go(func() {
			key := fmt.Sprint("key-", i)
			tick := time.NewTicker(150 * time.Millisecond) // tests run beside this one
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				r := h.reply(h.send(events.Task, "acme/w", "{}", events.HeaderVersionKey, key))
				mu.Lock()
				ran[key] = append(ran[key], r.Version)
				mu.Unlock()
			}
		})
	}
	return func() map[string][]string {
		cancel()
		running.Wait()
		return ran
	}
}

// A version that fails is rolled out under load. The guard sends it back, and no event is lost: those that failed run
// again in the version before.
func TestRolloutGoesBackByItself(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	h := &testFleet{t: t}
	for range 2 {
		fleettest.Serve(t, srv.URL())
	}
	h.connect(srv.URL())
	v1 := h.deploy("acme", "w", says("one"), patient)
	steps, err := workers.ParseSteps("10%@2m,50%")
	require.NoError(t, err)
	stop := h.keyed(40)
	d := h.begin(`export default { task() { throw new Error("bad") } };`, deploy.Request{Steps: steps, Guard: workers.Guard{Failures: 2}})
	store := h.workers()
	require.Eventually(t, func() bool { return !h.holds(store).Rollout.Running() }, patience, 50*time.Millisecond)
	after := h.holds(store)
	require.Equal(t, workers.RolloutRolledBack, after.Rollout.State)
	require.Regexp(t, `^\d+ of \d+ runs failed \(\d+\.\d %\); the guard wants less than 2 %$`, after.Rollout.Reason)
	require.Equal(t, []workers.Share{{Version: v1.Version, Percent: 100}}, after.Split)
	require.Equal(t, d.Deployment.Number+1, after.Number)
	for key, versions := range stop() {
		for _, v := range versions {
			require.Equal(t, v1.Version, v, "%s: its failed runs were repeated in the version before", key)
		}
	}
	h.settled()
	require.Empty(t, h.dead())
}

// A good version is rolled out. Whoever makes a step is killed for it, and others are killed at any time. The rollout
// goes on to its end, no key moves back, and each event is answered.
func TestRolloutOutlivesTheProcessThatAdvancesIt(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	srv := natstest.Start(t)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	stepped := make(chan int, 100) // which process made a step
	processes := map[int]*fleettest.Process{}
	next := 0
	open := func() {
		n := next
		next++
		processes[n] = fleettest.ServeTelling(t, func(line map[string]any) {
			if line["message"] == "rollout went on" {
				stepped <- n
			}
		}, srv.URL(), shortLease)
	}
	for range 3 {
		open()
	}
	v1 := h.deploy("acme", "w", says("one"))
	stop := h.keyed(30)
	steps, err := workers.ParseSteps("10%,60%@1s")
	require.NoError(t, err)
	d := h.begin(says("two"), deploy.Request{Steps: steps, Guard: workers.Guard{Failures: 50}})
	store := h.workers()
	for kills := 0; h.holds(store).Rollout.Running(); {
		select {
		case n := <-stepped:
			if kills++; kills > 6 {
				continue
			}
			processes[n].Kill()
			delete(processes, n)
			for victim, p := range processes { // and one that may be about to make the next
				if random.IntN(2) == 0 {
					p.Kill()
					delete(processes, victim)
				}
				break
			}
			for len(processes) < 3 {
				open()
			}
		case <-time.After(50 * time.Millisecond):
		}
	}
	after := h.holds(store)
	require.Equal(t, workers.RolloutDone, after.Rollout.State)
	require.Equal(t, []workers.Share{{Version: d.Worker.Version, Percent: 100}}, after.Split)
	require.Equal(t, d.Deployment.Number+2, after.Number, "each step was made once")
	require.Eventually(t, func() bool { // also where it was not known yet when the last step was made
		return h.reply(h.send(events.Task, "acme/w", "{}")).Version == d.Worker.Version
	}, patience, 10*time.Millisecond)
	for key, versions := range stop() {
		moved := false
		for _, v := range versions {
			moved = moved || v == d.Worker.Version
			if moved {
				require.Equal(t, d.Worker.Version, v, "%s moved back: %v", key, versions)
			} else {
				require.Equal(t, v1.Version, v)
			}
		}
	}
	h.settled()
	require.Empty(t, h.dead())
}

// slow is the code of a worker whose tasks take a while. One that is held says when it has begun.
func slow(text string) string {
	return fmt.Sprintf(`export default { async task({ payload }) {
		if (payload.hold) console.log("it has begun");
		await new Promise((done) => setTimeout(done, payload.hold ?? 20));
		return %q;
	} };`, text)
}

// heard listens on a connection that nothing else uses. The returned function says how often each event was answered
// until then.
func (h *testFleet) heard(nc *nats.Conn) func() map[string]int {
	h.t.Helper()
	replies, err := nc.SubscribeSync(nats.InboxPrefix + ">")
	require.NoError(h.t, err)
	require.NoError(h.t, replies.SetPendingLimits(-1, -1))
	require.NoError(h.t, nc.Flush())
	return func() map[string]int {
		require.NoError(h.t, nc.Flush())
		times := map[string]int{}
		for n, _, err := replies.Pending(); n > 0; n, _, err = replies.Pending() {
			require.NoError(h.t, err)
			m, err := replies.NextMsg(patience)
			require.NoError(h.t, err)
			if m.Header.Get(events.HeaderAttempt) != "" { // other messages go to inboxes, too
				times[m.Header.Get(events.HeaderEventID)]++
			}
		}
		return times
	}
}

// A version is taken back by hand under load, from everything, from a share and from a rollout. No event is lost, each
// is answered once, and one that has begun ends in the version in which it did.
func TestRollbackUnderLoadLosesNoEvent(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	h := &testFleet{t: t}
	for range 2 {
		fleettest.Serve(t, srv.URL())
	}
	h.connect(srv.URL())
	answered := h.heard(natstest.Connect(t, srv))
	began := make(chan *nats.Msg, 10)
	_, err := h.nc.ChanSubscribe(events.Subjects(events.DefaultPrefix).Logs("acme", "w"), began)
	require.NoError(t, err)
	v1 := h.deploy("acme", "w", slow("one"))
	key := "key"
	for i := 0; events.SplitPoint("acme", "w", key) >= 5000; i++ { // it is among those of a new version with half
		key = fmt.Sprint("key ", i)
	}
	sent := 0
	send := func(body string) <-chan *nats.Msg {
		sent++
		return h.send(events.Task, "acme/w", body, events.HeaderVersionKey, key)
	}
	stop := h.keyed(30)
	store, versions := h.workers(), []string{v1.Version}
	for way, request := range map[string]deploy.Request{
		"everything": {}, "a share": {Percent: 50},
		"a rollout": {Steps: []workers.Step{{Percent: 50, For: workers.Millis(time.Hour)}}},
	} {
		d := h.begin(slow(way), request)
		versions = append(versions, d.Worker.Version)
		require.Eventually(t, func() bool { return h.reply(send("{}")).Version == d.Worker.Version }, patience,
			10*time.Millisecond, way)
		h.inEffect(d)
		held := send(`{"hold": 1000}`)
		select {
		case <-began:
		case <-time.After(patience):
			t.Fatal("the event that is held has not begun")
		}
		back, changed, err := store.Redeploy(context.Background(), "acme", "w", store.Rollback(context.Background(), "",
			false, deploy.Note{}))
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, []workers.Share{{Version: v1.Version, Percent: 100}}, back.Split)
		require.Nil(t, back.Rollout)
		h.inEffect(deploy.Deployed{Worker: v1, Deployment: back})
		for range 10 {
			require.Equal(t, v1.Version, h.reply(send("{}")).Version, "%s: it is taken back", way)
		}
		require.Equal(t, d.Worker.Version, h.reply(held).Version, "%s: it ends where it began", way)
	}
	for key, ran := range stop() {
		sent += len(ran)
		for _, v := range ran {
			require.Contains(t, versions, v, key)
		}
	}
	h.settled()
	require.Empty(t, h.dead())
	times := answered()
	require.Len(t, times, sent)
	for id, n := range times {
		require.Equal(t, 1, n, "event %s was answered so often", id)
	}
}

// A split of a fleet is exact: which version answers depends on nothing but the key.
func TestSplitIsExactInAllProcesses(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	h := &testFleet{t: t}
	for range 2 {
		fleettest.Serve(t, srv.URL())
	}
	h.connect(srv.URL())
	v1 := h.deploy("acme", "w", says("one"))
	d := h.begin(says("two"), deploy.Request{Percent: 25})
	h.inEffect(d)
	for i := range 200 {
		key := fmt.Sprint("customer ", i)
		want := v1.Version
		if events.SplitPoint("acme", "w", key) < 2500 {
			want = d.Worker.Version
		}
		require.Equal(t, want, h.reply(h.send(events.Task, "acme/w", "{}", events.HeaderVersionKey, key)).Version, key)
		if i%10 == 0 {
			require.Equal(t, v1.Version,
				h.reply(h.send(events.Task, "acme/w", "{}", events.HeaderVersionKey, key, events.HeaderWorkerVersion, "1")).Version)
		}
	}
	_, _, err := h.workers().Redeploy(context.Background(), "acme", "w", deploy.SetAlias("next", "2"))
	require.NoError(t, err)
	d.Deployment = h.holds(h.workers())
	h.inEffect(d)
	for range 20 {
		require.Equal(t, d.Worker.Version, h.reply(h.send(events.Task, "acme/w", "{}", events.HeaderWorkerVersion, "next")).
			Version)
	}
}
