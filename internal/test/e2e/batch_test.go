package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// told is what queue handlers of a worker write: tellBatch writes a line for each batch.
type told struct {
	mu      sync.Mutex
	batches [][]string          // ids
	runs    map[string][]string // by id: the attempts
}

// tellBatch is JavaScript that tells of the batch.
const tellBatch = `console.log(JSON.stringify(batch.messages.map((m) => [m.id, m.attempts])));`

func (h *testFleet) listen(owner, worker string) *told {
	h.t.Helper()
	b := &told{runs: map[string][]string{}}
	sub, err := h.nc.Subscribe("pinwheel.logs."+owner+"."+worker, func(m *nats.Msg) {
		var line events.LogLine
		var list [][2]any
		if json.Unmarshal(m.Data, &line) != nil || json.Unmarshal([]byte(line.Text), &list) != nil {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		var ids []string
		for _, x := range list {
			id := fmt.Sprint(x[0])
			ids = append(ids, id)
			b.runs[id] = append(b.runs[id], fmt.Sprint(x[1]))
		}
		b.batches = append(b.batches, ids)
	})
	require.NoError(h.t, err)
	require.NoError(h.t, sub.SetPendingLimits(-1, -1))
	require.NoError(h.t, h.nc.Flush())
	return b
}

// of returns the attempts of a message, for example "1 2", when they have been told.
func (b *told) of(t testing.TB, id string, n int) string {
	t.Helper()
	var runs []string
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		runs = b.runs[id]
		return len(runs) >= n
	}, patience, time.Millisecond, id)
	return strings.Join(runs, " ")
}

// all returns the ids of the batches so far.
func (b *told) all() [][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.batches)
}

func TestQueueHandlerDecidesAboutEachMessage(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	b := h.listen("acme", "jobs")
	h.deploy("acme", "jobs", `export default { async queue(batch, env, ctx) {
		`+tellBatch+`
		const failed = [];
		for (const m of batch.messages) {
			if (m.body === "retry" && m.attempts < 3) m.retry({ delaySeconds: 0.05 });
			if (m.body === "fails" && m.attempts < 2) failed.push({ itemIdentifier: m.id });
			if (m.body === "dies") m.retry();
			if (m.body === "acked") m.ack();
		}
		if (batch.messages.some((m) => m.body === "acked")) await new Promise((f, no) => setTimeout(no, 1, new Error("too late")));
		return { batchItemFailures: failed };
	} }`, `{"batch": {"maxSize": 4, "maxWaitMs": "10s"}, "retries": {"maxAttempts": 3, "initialMs": 10, "jitter": 0}}`)
	// A worker sends; the bodies arrive as they were sent.
	h.deploy("acme", "sender", `export default { async task(event, env) { for (const body of event.payload) await env.JOBS.send(body) } }`, `{"queues": {"JOBS": "jobs"}}`)
	send := func(body, id string) <-chan *nats.Msg {
		return h.send(events.Task, "acme/jobs", `"`+body+`"`, events.HeaderEventID, id)
	}
	sent := []<-chan *nats.Msg{send("plain", "a"), send("retry", "b"), send("fails", "c"), send("dies", "d")}
	require.Equal(t, "1 2", b.of(t, "c", 2))
	sent = append(sent, send("plain", "x"), send("plain", "y")) // fill the batch in which b and d come again
	for i := range sent {
		if r := h.reply(sent[i]); i != 3 {
			require.JSONEq(t, `{"success":true}`, string(r.Body))
		} else {
			require.Contains(t, string(r.Body), "asked for 3 times")
		}
	}
	require.Equal(t, "1", b.of(t, "a", 1))
	require.Equal(t, "1 2 3", b.of(t, "b", 3))
	require.Equal(t, "1 2 3", b.of(t, "d", 3))
	require.Equal(t, []string{"a", "b", "c", "d"}, b.all()[0], "four at once")

	// The handler throws after it acked one.
	sent = []<-chan *nats.Msg{send("acked", "e"), send("plain", "f"), send("plain", "g"), send("plain", "h")}
	for i := range 4 {
		require.JSONEq(t, `{"success":true}`, string(h.reply(sent[i]).Body))
	}
	require.Equal(t, "1", b.of(t, "e", 1))
	for _, id := range []string{"f", "g", "h"} {
		require.Equal(t, "1 2", b.of(t, id, 2), "it was in a batch that failed, and ran alone then")
	}
	h.reply(h.send(events.Task, "acme/sender", `["plain", {"x": 1}, 3, null]`))
	h.settled()
	letters := h.dead()
	require.Len(t, letters, 1)
	require.Equal(t, []any{"d", 3, events.ReasonException}, []any{letters[0].EventID, letters[0].Attempts,
		letters[0].Failure.Reason})
	require.True(t, letters[0].History[0].Asked)
}

// Of 10 000 messages in batches of 100, the one that never ends becomes a dead letter, and no other one runs more than
// twice.
func TestPoisonAmongTenThousand(t *testing.T) {
	t.Parallel()
	const n, poison = 10_000, 6170
	h := openFleet(t)
	b := h.listen("acme", "jobs")
	h.deploy("acme", "jobs", `export default { queue(batch) {
		`+tellBatch+`
		for (const m of batch.messages) if (m.body === `+fmt.Sprint(poison)+`) for (;;);
	} }`, `{"batch": {"maxSize": 100, "maxWaitMs": 300}, "retries": {"maxAttempts": 3, "initialMs": 10}, "limits": {"cpuMs": 200, "wallMs": 60000}}`)
	for i := range n {
		if i%1000 == 0 {
			<-h.js.PublishAsyncComplete()
		}
		m := nats.NewMsg("pinwheel.events.task.acme.jobs")
		m.Data = fmt.Append(nil, i)
		m.Header.Set(events.HeaderEventID, fmt.Sprint(i))
		_, err := h.js.PublishMsgAsync(m)
		require.NoError(t, err)
	}
	<-h.js.PublishAsyncComplete()
	h.settled()
	// Events beyond the owner's queue are parked, so an empty stream is not the end of all.
	require.Eventually(t, func() bool { return len(h.dead()) > 0 }, patience, 10*time.Millisecond)
	letters := h.dead()
	require.Len(t, letters, 1)
	l := letters[0]
	require.Equal(t, []any{fmt.Sprint(poison), 3, events.ReasonCPU}, []any{l.EventID, l.Attempts, l.Failure.Reason})
	require.Len(t, l.History, 3)
	require.Zero(t, l.History[1].Batch, "it ran alone")
	again := 0
	for i := range n {
		switch runs := b.of(t, fmt.Sprint(i), 1); {
		case i == poison:
			require.Equal(t, "1 2 3", b.of(t, fmt.Sprint(poison), 3))
		case runs == "1 2":
			again++
		default:
			require.Equal(t, "1", runs, i)
		}
	}
	require.Equal(t, max(1, l.History[0].Batch), again+1, "who was in its first batch ran again, and nobody else")
	t.Logf("%d batches; the first one with the poison had %d", len(b.all()), again+1)
}

// A process dies during a batch: each of its messages runs again, alone.
func TestKilledDuringABatch(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	victim := fleettest.Serve(t, srv.URL(), shortLease)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	b := h.listen("acme", "count")
	h.deploy("acme", "count", `export default { async queue(batch) {
		`+tellBatch+`
		if (batch.messages[0].attempts === 1) await new Promise((f) => setTimeout(f, 600_000));
	} }`, `{"batch": {"maxSize": 20, "maxWaitMs": "1m"}, "limits": {"wallMs": 900000}}`)
	replies := h.publishCounted(20)
	require.Eventually(t, func() bool { return len(b.all()) > 0 }, patience, time.Millisecond)
	require.Len(t, b.all()[0], 20)
	victim.Kill()
	fleettest.Serve(t, srv.URL(), shortLease)
	for range 20 {
		select {
		case m := <-replies:
			require.Contains(t, string(m.Data), `"success":true`)
		case <-time.After(patience):
			t.Fatal("not answered")
		}
	}
	h.settled()
	require.Empty(t, h.dead())
	for _, batch := range b.all()[1:] {
		require.Len(t, batch, 1)
	}
	for _, id := range b.all()[0] {
		require.Equal(t, "1 2", b.of(t, id, 2))
	}
}

// Messages that gather go back when the process drains, which is no attempt, and to the version that is active.
func TestDrainAndDeployWhileGathering(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	with := func(c *config.Config) { c.NatsURL = srv.URL() }
	h := openFleet(t, with)
	b := h.listen("acme", "jobs")
	code := `export default { queue(batch) {` + tellBatch + `} }`
	h.deploy("acme", "jobs", code, `{"batch": {"maxSize": 50, "maxWaitMs": "1m"}}`)
	send := func() (list []<-chan *nats.Msg) {
		before := h.fleet.Stats().Dispatch.Queued
		for range 3 {
			list = append(list, h.send(events.Task, "acme/jobs", "1"))
		}
		require.Eventually(t, func() bool { return h.fleet.Stats().Dispatch.Queued == before+3 }, patience, time.Millisecond)
		return list
	}
	first := send()
	second := h.deploy("acme", "jobs", code+"// 2", `{"batch": {"maxSize": 50, "maxWaitMs": 0}}`)
	for _, c := range first {
		require.Equal(t, second.Version, h.reply(c).Version)
	}
	h.settled()

	h.deploy("acme", "jobs", code+"// 3", `{"batch": {"maxSize": 50, "maxWaitMs": "1m"}}`)
	last := send()
	h.stop()
	other := openFleet(t, with)
	fourth := other.deploy("acme", "jobs", code+"// 4", `{"batch": {"maxSize": 50, "maxWaitMs": "100ms"}}`)
	for _, c := range last {
		r := other.reply(c)
		require.Equal(t, []any{fourth.Version, 1}, []any{r.Version, r.Attempt})
	}
	other.settled()
	require.Empty(t, other.dead())
	require.NotEmpty(t, b.all())
}
