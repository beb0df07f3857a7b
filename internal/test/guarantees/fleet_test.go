package guarantees_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const (
	subjects = events.Subjects(events.DefaultPrefix)
	ackWait  = 2 * time.Second
	patience = 60 * time.Second
	// startPatience is how long a process may take to get ready. It waits a minute for NATS before it gives up, and is
	// started again.
	startPatience = 3 * time.Minute
	// rough is the owner whose handlers are killed for exceeding limits. Its other events may suffer, but not those of
	// other owners.
	rough = "rough"
)

// testFleet is the fleet, its server, and what the test knows about them.
type testFleet struct {
	t       testing.TB
	dir     string
	model   *model
	server  *process          // nil: there is a cluster
	cluster *natstest.Cluster // nil: there is one server
	proxies []*proxy          // one for each process, to the one server
	fleet   []*process
	nc      *nats.Conn
	js      jetstream.JetStream
	cfg     config.Config // for commands

	ids       atomic.Int64
	deploying sync.Mutex

	mu     sync.Mutex
	counts map[string]int
	times  map[string][]time.Duration
}

func (h *testFleet) nextID() string { return fmt.Sprintf("e%d", h.ids.Add(1)) }

func (h *testFleet) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

// openFleet starts the servers and n processes, whose clocks may be wrong, and deploys the workers. With overtake,
// which is chosen at random, events overtake even the shortest backlogs, including backlog events that are about to be
// delivered. Those may then run twice. env is that of the processes beside the rest.
func openFleet(t testing.TB, n, servers int, random *rand.Rand, env ...string) *testFleet {
	t.Helper()
	syncAlways, overtake := random.IntN(4) == 0, random.IntN(3) == 0
	h := &testFleet{
		t: t, dir: t.TempDir(), model: newModel(),
		counts: map[string]int{}, times: map[string][]time.Duration{},
	}
	upstream := httptest.NewServer(http.HandlerFunc(h.told))
	t.Cleanup(upstream.Close)
	var urls []string // of each process, and of the test
	if servers > 1 {
		urls = h.openCluster(n, servers)
	} else {
		urls = h.openServer(n, syncAlways)
	}
	var err error
	h.nc, err = natstest.Dial(urls[n], nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { h.count("errors on the test's own connection") }))
	require.NoError(t, err)
	t.Cleanup(h.nc.Close)
	h.js, err = jetstream.New(h.nc)
	require.NoError(t, err)
	h.listen()
	backlog := 10_000
	if overtake {
		backlog, h.model.loose = 4, true
	}
	t.Logf("a backlog is %d events", backlog)
	for i := range n {
		name, fast := fmt.Sprintf("fleet-%d", i), randomClock(random)
		t.Logf("the clock of %s is %d seconds fast", name, fast)
		h.fleet = append(h.fleet, newProcess(t, h.dir, name, []string{"serve"}, append(env[:len(env):len(env)],
			asPinwheel+"=1", "PINWHEEL_PROCESSES=0",
			ownClock+"="+setClock(t, h.dir, name, fast),
			"PINWHEEL_NATS_URL="+urls[i], fmt.Sprintf("PINWHEEL_REPLICAS=%d", servers), "PINWHEEL_ADMIN_ADDR=",
			"PINWHEEL_LOG_FORMAT=json", "PINWHEEL_ACK_WAIT="+ackWait.String(),
			"PINWHEEL_DRAIN_TIMEOUT=3s", "PINWHEEL_THREADS=2", "PINWHEEL_SLOTS=16", "PINWHEEL_WINDOW=64",
			"PINWHEEL_OWNER_MAX_QUEUED=12", "PINWHEEL_MAX_BYTES=1MiB",
			fmt.Sprintf("PINWHEEL_OVERTAKE=%d", backlog), "PINWHEEL_ALLOW_PRIVATE_ADDRESSES=127.0.0.1")...))
		h.fleet[i].start()
	}
	for _, p := range h.fleet {
		within(t, p.name, startPatience, p.ready)
	}
	h.cfg, err = config.Load()
	require.NoError(t, err)
	h.cfg.NatsURL, h.cfg.LogLevel = urls[n], "error"
	h.writeWorkers(upstream.URL)
	for _, owner := range owners {
		for _, w := range workersOf(owner) {
			require.NoError(t, h.deploy(owner, w, 0))
		}
	}
	return h
}

// told takes what handlers tell of their runs.
func (h *testFleet) told(w http.ResponseWriter, r *http.Request) {
	of, isBatch := strings.CutPrefix(r.URL.Path, "/batch")
	if !isBatch {
		attempt, _ := strconv.Atoi(r.URL.Query().Get("attempt"))
		h.model.ran(r.URL.Query().Get("id"), attempt, of == "/done")
		return
	}
	var messages []struct {
		ID      string
		Attempt int
	}
	if err := json.NewDecoder(r.Body).Decode(&messages); err != nil { // the process was killed meanwhile
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, m := range messages {
		h.model.ran(m.ID, m.Attempt, of == "/done")
	}
	if of == "/ran" {
		h.count(fmt.Sprintf("batches of %d", len(messages)))
	}
}

// openServer starts the one server, and gives each of n processes its own network.
func (h *testFleet) openServer(n int, syncAlways bool) (urls []string) {
	address := fmt.Sprintf("127.0.0.1:%d", natstest.FreePort(h.t))
	env := []string{asServer + "=" + address, serverStore + "=" + filepath.Join(h.dir, "nats")}
	if syncAlways {
		env = append(env, serverSync+"=1")
	}
	h.server = newProcess(h.t, h.dir, "server", nil, env...)
	h.server.start()
	within(h.t, "server", patience, h.server.ready)
	for range n {
		p := openProxy(h.t, address)
		h.proxies = append(h.proxies, p)
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", p.port))
	}
	return append(urls, "nats://"+address)
}

// listen takes replies.
func (h *testFleet) listen() {
	_, err := h.nc.Subscribe("_INBOX.orders.*", func(m *nats.Msg) {
		if m.Header.Get("Status") == "503" && len(m.Data) == 0 {
			h.count("calls that reached no process")
			return
		}
		r, err := events.DecodeReply(events.Header(m.Header), m.Data)
		if err != nil {
			h.model.mu.Lock()
			h.model.fail("a reply cannot be read: %v", err)
			h.model.mu.Unlock()
			return
		}
		h.model.replied(strings.TrimPrefix(m.Subject, "_INBOX.orders."), r)
	})
	require.NoError(h.t, err)
	require.NoError(h.t, h.nc.Flush())
	_, err = h.nc.Subscribe("$JS.API.STREAM.MSG.DELETE."+events.StreamEvents,
		func(*nats.Msg) { h.count("events brought past others, or pins moved") })
	require.NoError(h.t, err)
	require.NoError(h.t, h.nc.Flush())
}

// owners are in two lanes, in pairs, except for rough.
var owners = []string{"ada", "ivo", "cyd", "cal", rough}

func workersOf(owner string) []string {
	if owner == rough {
		return []string{"cpu", "memory", "timeout"}
	}
	return []string{"job", "once", "batch"}
}

// sourceOf is the file with the code of a worker.
func sourceOf(worker string) string {
	if worker == "batch" {
		return "testdata/batch.js"
	}
	return "testdata/job.js"
}

// writeWorkers writes the source of every worker with its manifest.
func (h *testFleet) writeWorkers(upstream string) {
	for name, limits := range map[string]string{
		"job": `"cpuMs": 5000, "wallMs": 60000`, "once": `"cpuMs": 5000, "wallMs": 60000`,
		"batch": `"cpuMs": 5000, "wallMs": 60000`, "cpu": `"cpuMs": 50, "wallMs": 60000`,
		"memory": `"cpuMs": 20000, "heapMB": 16, "wallMs": 60000`, "timeout": `"cpuMs": 5000, "wallMs": 500`,
	} {
		manifest := fmt.Sprintf(`{"idempotent": %t, "vars": {"TEST": %q}, "retries": {"maxAttempts": %d, "initialMs": 30, "maxMs": 100}, "limits": {%s}`, name == "once", upstream, maxAttempts, limits)
		if name == "batch" {
			manifest += `, "batch": {"maxSize": 6, "maxWaitMs": 300}`
		}
		require.NoError(h.t, os.WriteFile(filepath.Join(h.dir, name+".pinwheel.json"), []byte(manifest+"}"), 0o600))
	}
}

// deploy deploys a version of a worker that behaves like the others.
func (h *testFleet) deploy(owner, worker string, n int) error {
	path := filepath.Join(h.dir, worker+".js")
	code, err := os.ReadFile(sourceOf(worker))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, fmt.Appendf(code, "\nexport const number = %d;\n", n), 0o600); err != nil {
		return err
	}
	var out strings.Builder
	if code := cli.MainWith(h.cfg, []string{"deploy", path, "--owner", owner}, strings.NewReader(""), &out,
		&out); code != 0 {
		return fmt.Errorf("deploy: exit code %d: %s", code, out.String())
	}
	return nil
}

// asForwarded adds the headers of a message that a client has read from a stream and forwards with all its headers.
// Here the headers fit a message that belongs, or belonged, to another owner.
func asForwarded(m *nats.Msg) {
	for name, value := range map[string]string{
		"Nats-Stream": events.StreamEvents, "Nats-Subject": string(subjects) + ".events.0.task.other.job",
		"Nats-Sequence": "3", "Nats-Time-Stamp": "2026-01-01T00:00:00Z",
		"Nats-Last-Sequence": "2", "Nats-Num-Pending": "1",
	} {
		m.Header.Set(name, value)
	}
}

// publish publishes an event, and records it when it is acknowledged. A refusal is final. Without an answer, publish
// tries again with the same message ID.
func (h *testFleet) publish(o *order) {
	m := &nats.Msg{Subject: subjects.Event(o.kind, o.owner, o.worker), Data: []byte(o.body), Header: nats.Header{
		events.HeaderEventID: {o.id}, events.HeaderReplyTo: {"_INBOX.orders." + o.id},
		events.HeaderMsgID: {o.owner + ":" + o.id},
	}}
	switch o.what {
	case "malformed":
		m.Header.Set(events.HeaderDeadline, "tomorrow")
	case "expired":
		m.Header.Set(events.HeaderDeadline, time.Now().Add(-time.Second).UTC().Format(time.RFC3339Nano))
	case "hurry":
		m.Header.Set(events.HeaderDeadline, time.Now().Add(100*time.Millisecond).UTC().Format(time.RFC3339Nano))
	}
	if o.delay > 0 {
		m.Header.Set(events.HeaderDeliverAfter, o.delay.String())
	}
	if len(o.id+o.body)%3 == 0 {
		asForwarded(m)
	}
	o.sent = time.Now()
	h.model.add(o)
	if o.call {
		m.Subject = subjects.Call(o.kind, o.owner, o.worker)
		m.Reply = m.Header.Get(events.HeaderReplyTo)
		m.Header.Del(events.HeaderMsgID)
		_ = h.nc.PublishMsg(m)
		return
	}
	h.insist(o, m)
	if o.worker == "once" {
		h.publishAgain(o, m)
	}
}

// publishAgain publishes an event of an idempotent worker a second time, after it was answered.
func (h *testFleet) publishAgain(o *order, m *nats.Msg) {
	answered := func() bool {
		h.model.mu.Lock()
		defer h.model.mu.Unlock()
		return len(o.replies) > 0
	}
	for deadline := time.Now().Add(3 * time.Second); !answered(); pause(20 * time.Millisecond) {
		if o.published.IsZero() || time.Now().After(deadline) {
			return // it was refused, or its reply was lost
		}
	}
	pause(200 * time.Millisecond) // its result is stored after the reply
	m.Header.Set(events.HeaderMsgID, o.owner+":"+o.id+":again")
	h.model.mu.Lock()
	o.twice = true
	h.model.mu.Unlock()
	h.count("events published again with the same id to an idempotent worker")
	h.insist(o, m)
}

// codeDuplicateUnderWay is a cluster's answer while it does not know yet whether a message with the same ID was stored.
const codeDuplicateUnderWay = 10158

// insist publishes m until it is stored or refused.
func (h *testFleet) insist(o *order, m *nats.Msg) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := h.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		cancel()
		h.model.mu.Lock()
		if err == nil {
			if o.published.IsZero() {
				o.published = time.Now()
			}
			o.seen = time.Now()
			h.model.mu.Unlock()
			return
		}
		var refused *jetstream.APIError
		if asAPIError(err, &refused) && refused.ErrorCode != codeDuplicateUnderWay {
			h.model.mu.Unlock()
			h.count("publishes refused: " + refused.Description)
			return
		}
		o.unsure = true
		h.model.mu.Unlock()
		h.count("publishes without an answer")
		if h.cluster != nil {
			pause(200 * time.Millisecond) // an election takes seconds, and CPU time
		}
		pause(50 * time.Millisecond)
	}
}

// pause waits between two actions of the test.
func pause(d time.Duration) { <-time.After(d) }

// letters returns the dead letters by event ID.
func (h *testFleet) letters() map[string][]*events.DeadLetter {
	found := map[string][]*events.DeadLetter{}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for l, err := range deadletter.NewStore(h.js, subjects).List(ctx, deadletter.Filter{}) {
		require.NoError(h.t, err)
		found[l.EventID] = append(found[l.EventID], l)
	}
	return found
}

// left returns the number of events that have not ended.
func (h *testFleet) left() (stored, parked, waiting int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	of := func(name, pin string) int {
		n, err := resources.Count(ctx, h.js, name, pin)
		if err != nil {
			return 1 << 20
		}
		return int(n)
	}
	return of(events.StreamEvents, subjects.Anchor()), of(events.StreamParked, subjects.ParkedAnchor()),
		of(events.StreamSchedules, subjects.SchedulesAnchor())
}

// leftovers describes the first n events that have not ended.
func (h *testFleet) leftovers(n int) (lines []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, name := range []string{events.StreamEvents, events.StreamParked, events.StreamSchedules} {
		s, err := h.js.Stream(ctx, name)
		if err != nil {
			return append(lines, err.Error())
		}
		for i := range s.ListConsumers(ctx).Info() {
			if i.Config.FilterSubject != "" && i.Delivered.Stream > 0 {
				lines = append(lines, fmt.Sprintf("  %s %s: delivered to %d, all acked to %d, %d unacked, %d pending, %d requests", name, i.Name,
					i.Delivered.Stream, i.AckFloor.Stream, i.NumAckPending, i.NumPending, i.NumWaiting))
			}
		}
		lines = append(lines, fmt.Sprintf("  %s: %+v", name, s.CachedInfo().State))
		for seq, i := uint64(1), 0; i < n; seq, i = seq+1, i+1 {
			m, err := s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(">"))
			if err != nil {
				break
			}
			seq = m.Sequence
			h.model.mu.Lock()
			o := h.model.orders[m.Header.Get(events.HeaderEventID)]
			line := fmt.Sprintf("  %s %d %s, stored %s ago", name, seq, m.Subject, time.Since(m.Time).Round(time.Millisecond))
			if o != nil {
				line += fmt.Sprintf(": %s, attempts %v, %d done, %d replies", o, o.runs, o.done, len(o.replies))
			}
			h.model.mu.Unlock()
			lines = append(lines, line)
		}
	}
	return lines
}

// randomOrder returns an event with a random behaviour. Common behaviours are more frequent.
func randomOrder(random *rand.Rand, id string) *order {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	o := &order{id: id, kind: events.Kind(random.IntN(3)) + events.Fetch, owner: owners[random.IntN(len(owners)-1)],
		worker: "job"}
	switch random.IntN(20) {
	case 0:
		o.what = pick("missing", "malformed", "expired", "hurry")
	case 1, 2, 3:
		o.what = pick("throw", "flaky", "retry", "noretry")
	case 4, 5:
		o.what = "late"
	case 6, 7, 8:
		o.what = "slow"
	case 9:
		o.owner = rough
		if o.worker = pick("cpu", "memory", "timeout"); random.IntN(3) > 0 {
			o.what = "ok"
		} else {
			o.what = o.worker
		}
	default:
		o.what = "ok"
	}
	switch {
	case o.what == "missing":
		o.worker = "nobody"
	case o.owner != rough && o.what == "ok" && random.IntN(6) == 0:
		o.worker = "once"
	case o.what != "hurry" && random.IntN(12) == 0:
		o.delay = time.Duration(100+random.IntN(3000)) * time.Millisecond
	}
	if o.kind == events.Fetch && o.what == "noretry" {
		o.what = "throw"
	}
	o.call = random.IntN(15) == 0 && o.what != "malformed" && o.worker != "once"
	o.body = fmt.Sprintf(`{"id":%q,"what":%q}`, id, o.what)
	return o
}

// randomMessage returns a message to the queue handler of owner. What becomes of it does not depend on the messages
// with which it comes to be in a batch.
func randomMessage(random *rand.Rand, id, owner string) *order {
	o := &order{id: id, kind: events.Task, owner: owner, worker: "batch"}
	switch random.IntN(12) {
	case 0:
		o.what = "poison"
	case 1, 2:
		o.what = "again"
	case 3:
		o.what = "twice"
	case 4, 5, 6:
		o.what = "blind"
	default:
		o.what = "fine"
	}
	if random.IntN(20) == 0 {
		o.delay = time.Duration(100+random.IntN(2000)) * time.Millisecond
	}
	o.call = random.IntN(25) == 0
	o.body = fmt.Sprintf(`{"id":%q,"what":%q}`, id, o.what)
	return o
}
