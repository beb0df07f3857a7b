package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A reply goes out as soon as the response is ready; the message is acked only after waitUntil.
func TestReplyFirstThenWaitUntilThenAck(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("acme", "slow", `export default { fetch(r, env, ctx) {
		ctx.waitUntil(new Promise(done => setTimeout(done, 3000)));
		return new Response("early");
	} }`)
	h.reply(h.send(events.Fetch, "acme/slow", "")) // warm up
	h.settled()
	start := time.Now()
	forged := []string{"Nats-Stream", events.StreamEvents, "Nats-Subject", "x", "Nats-Sequence", "1", "Nats-Time-Stamp",
		"2001-01-01T00:00:00Z"}
	r := h.reply(h.send(events.Fetch, "acme/slow", "", forged...))
	replied := time.Since(start)
	require.Equal(t, "early", string(r.Body))
	require.Less(t, replied, 3*time.Second)
	held := h.ask("stats", "")["events"].(map[string]any)
	require.EqualValues(t, 1, held["messages"], "not acked while waitUntil runs")
	oldest, err := time.Parse(time.RFC3339Nano, held["oldest"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, start, oldest, replied, "the event, and not the pin, and by the server's clock")
	h.settled()
	require.GreaterOrEqual(t, time.Since(start), 3*time.Second)
	require.Empty(t, h.dead())
}

// How hostile workers and events end, while another owner's events continue.
func TestHostileEventsEndAsDesigned(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("good", "echo", `export default { fetch: async r => new Response(await r.text()), task: e => e.payload }`)
	for name, code := range map[string]string{
		"loop":  `export default { fetch() { for (;;); }, task() { for (;;); } }`,
		"throw": `export default { fetch() { throw new Error("no") }, task() { throw new Error("no") } }`,
		"never": `export default { fetch: () => new Promise(() => {}), task: () => new Promise(() => {}) }`,
		"tick":  `export default { fetch: () => new Promise(() => setInterval(() => {}, 10)), task: () => new Promise(() => setInterval(() => {}, 10)) }`,
		"big":   `export default { fetch: () => new Response("x".repeat(2 ** 31)), task: () => "x".repeat(2 ** 31) }`,
		"heap":  `export default { fetch() { const a = []; for (;;) a.push(new Array(1e6).fill(1.5)) }, task() { const a = []; for (;;) a.push(new Array(1e6).fill(1.5)) } }`,
	} {
		// Of the two clocks, only the one that is meant can end a run, on a busy machine too.
		manifest := `{"retries": {"maxAttempts": 1}, "limits": {"wallMs": 60000}}`
		switch name {
		case "loop":
			manifest = `{"retries": {"maxAttempts": 1}, "limits": {"wallMs": 60000, "cpuMs": 50}}`
		case "never", "tick":
			manifest = `{"retries": {"maxAttempts": 1}, "limits": {"wallMs": 1000, "cpuMs": 20000}}`
		case "heap":
			manifest = `{"retries": {"maxAttempts": 1}, "limits": {"heapMB": 16, "cpuMs": 20000, "wallMs": 60000}}`
		}
		h.deploy("bad", name, code, manifest)
	}
	stop := h.keepFlowing("good/echo")

	for name, want := range map[string]struct {
		reason events.Reason
		status int
	}{
		"loop": {events.ReasonCPU, 429}, "throw": {events.ReasonException, 500}, "never": {events.ReasonTimeout, 504},
		"tick": {events.ReasonTimeout, 504}, "big": {events.ReasonException, 500}, "heap": {events.ReasonMemory, 429},
		"missing": {events.ReasonNoWorker, 404},
	} {
		r := h.reply(h.send(events.Fetch, "bad/"+name, ""))
		require.Equal(t, want.status, r.Status, name)
		require.Equal(t, want.reason, r.Failure.Reason, name)
		r = h.reply(h.send(events.Task, "bad/"+name, "{}"))
		require.Contains(t, string(r.Body), `"success":false`, name)
		require.Equal(t, want.reason, r.Failure.Reason, name)
	}
	r := h.reply(h.send(events.Scheduled, "good/echo", ""))
	require.Equal(t, events.ReasonNoHandler, r.Failure.Reason)
	r = h.reply(h.send(events.Fetch, "good/echo", "", events.HeaderURL, "ftp://x"))
	require.Equal(t, 400, r.Status)
	r = h.reply(h.send(events.Fetch, "good/echo", "", "Status", "409", "Description", "Consumer Deleted"))
	require.Equal(t, 200, r.Status, "a header that looks like the server's is a user's header")
	h.settled()
	stop()

	reasons := map[events.Reason]int{}
	for _, l := range h.dead() {
		reasons[l.Failure.Reason]++
	}
	require.Equal(t, map[events.Reason]int{"cpu": 1, "exception": 2, "timeout": 2, "memory": 1, "no-worker": 1,
		"no-handler": 1}, reasons)
}

// keepFlowing sends events to target until the returned function is called. It fails the test when an event is not
// answered.
func (h *testFleet) keepFlowing(target string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	owner, name, _ := events.ParseTarget(target)
	subject := events.Subjects(events.DefaultPrefix).Call(events.Fetch, owner, name)
	running.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond) // tests run beside this one
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			<-tick.C
			body := fmt.Sprint(i)
			m, err := h.nc.Request(subject, []byte(body), 5*patience) // all threads may be busy for long
			if err != nil || string(m.Data) != body {
				h.t.Errorf("event %d of %s: %v %v", i, target, m, err)
				return
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

// A dead letter says what happened. After the worker is repaired, a replay runs the event and the letter is removed.
func TestDeadLetterIsReplayed(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	w := h.deploy("acme", "job", "export default {\n  task(event) {\n    throw new RangeError('too ' + event.payload.what)\n  }\n}",
		`{"retries": {"maxAttempts": 2, "initialMs": 10}}`)
	r := h.reply(h.send(events.Task, "acme/job", `{"what":"hot"}`, "X-Mine", "yes", events.HeaderEventID, "order-7"))
	require.Contains(t, string(r.Body), "too hot")
	h.settled()

	letters := h.dead()
	require.Len(t, letters, 1)
	l := letters[0]
	require.Equal(t, []any{"acme", "job", "task", w.Version, "order-7", 2, 0}, []any{l.Owner, l.Worker, l.Kind, l.Version,
		l.EventID, l.Attempts, l.Replays})
	require.Equal(t, events.ReasonException, l.Failure.Reason)
	require.Equal(t, "RangeError: too hot", l.Failure.Message)
	require.Contains(t, l.Failure.Stack, "job.js:3:")
	require.False(t, l.FirstAt.IsZero() || l.At.Before(l.FirstAt))
	require.Equal(t, `{"what":"hot"}`, string(l.Body))
	require.Equal(t, "yes", l.Header.Get("X-Mine"))

	h.deploy("acme", "job", `export default { task: event => ({ fixed: event.payload.what, header: event.headers.get("x-mine"), id: event.id }) }`)
	sub, err := h.nc.SubscribeSync(l.Header.Get(events.HeaderReplyTo))
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	require.NoError(t, deadletter.NewStore(h.js, events.DefaultPrefix).Replay(context.Background(), l,
		deadletter.ReplayOptions{}))
	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	require.JSONEq(t, `{"success":true,"data":{"fixed":"hot","header":"yes","id":"order-7"}}`, string(m.Data))
	h.settled()
	require.Empty(t, h.dead())
}

// Two processes share events; one is killed halfway. Every event ends, none is lost, and all are answered.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	const total = 4000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	srv := natstest.Start(t)
	victim, survivor := fleettest.Serve(t, srv.URL(), shortLease), fleettest.Serve(t, srv.URL(), shortLease)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	h.deploy("acme", "count", `export default { async task(event) { await new Promise(done => setTimeout(done, 1)); return event.payload } }`)

	replies := h.publishCounted(total)

	answered := map[string]bool{}
	killAt := total/4 + random.IntN(total/2)
	deadline := time.After(2 * patience)
	for len(answered) < total {
		select {
		case m := <-replies:
			answered[m.Subject] = true
			require.Contains(t, string(m.Data), `"success":true`)
			if len(answered) == killAt {
				victim.Kill()
			}
		case <-deadline:
			t.Fatalf("%d of %d answered; killed at %d", len(answered), total, killAt)
		}
	}
	h.settled()
	require.Empty(t, h.dead())
	survivor.Signal(os.Interrupt)
	require.NoError(t, survivor.Wait(), "a process that drains ends well")
}

// publishCounted publishes total tasks of acme/count, and returns the channel of their replies. Each has a subject of
// its own.
func (h *testFleet) publishCounted(total int) <-chan *nats.Msg {
	h.t.Helper()
	replies := make(chan *nats.Msg, 2*total)
	_, err := h.nc.ChanSubscribe("_INBOX.test.*", replies)
	require.NoError(h.t, err)
	require.NoError(h.t, h.nc.Flush())
	js, err := jetstream.New(h.nc, jetstream.WithPublishAsyncMaxPending(1000))
	require.NoError(h.t, err)
	for i := range total {
		m := nats.NewMsg("pinwheel.events.task.acme.count")
		m.Data = fmt.Append(nil, i)
		m.Header.Set(events.HeaderReplyTo, fmt.Sprintf("_INBOX.test.%d", i))
		_, err := js.PublishMsgAsync(m, jetstream.WithStallWait(patience))
		require.NoError(h.t, err)
	}
	<-js.PublishAsyncComplete()
	return replies
}

// shortLease is for processes of tests that kill one: another takes its events soon.
const shortLease = "PINWHEEL_ACK_WAIT=2s"
