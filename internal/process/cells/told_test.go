package cells

import (
	"encoding/json"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/isolates"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

// headOf waits for the reply of an event whose body comes in chunks.
func (h *house) headOf(done chan lifecycle.Settlement) *events.Reply {
	h.t.Helper()
	select {
	case s := <-done:
		require.NotNil(h.t, s.Reply)
		require.NotNil(h.t, s.Reply.Stream)
		return s.Reply
	case <-time.After(patience):
		require.Fail(h.t, "no reply")
		return nil
	}
}

// awaitLine waits for a line of output.
func (h *house) awaitLine(text string) events.LogLine {
	h.t.Helper()
	var found events.LogLine
	require.Eventually(h.t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, l := range h.logs {
			if l.Text == text {
				found = l
				return true
			}
		}
		return false
	}, patience, time.Millisecond, text)
	return found
}

// A body is made as it is granted, and not further.
func TestBodiesFollowTheirGrants(t *testing.T) {
	t.Parallel()
	const piece, pieces = 256 << 10, 40 // more than a cell may send without a grant
	h := openHouse(t)
	h.deploy("alice", `let n = 0; export default { fetch() { return new Response(new ReadableStream({
		pull(c) { if (n++ === 40) c.close(); else c.enqueue(new Uint8Array(256 << 10).fill(n)) } })) } }`,

		func(w *workers.Worker) {
			w.Limits = workers.Limits{CPU: workers.Millis(time.Minute), Wall: workers.Millis(patience)}
		})
	e := newEvent(events.Fetch, "alice", "1")
	e.Requester = &events.Requester{Credit: piece}
	done := h.give(e)
	s := h.headOf(done).Stream
	came, ended := 0, false
	notice := make(chan struct{}, 1)
	s.OnChunks(func() {
		select {
		case notice <- struct{}{}:
		default:
		}
	})
	for !ended {
		<-notice
		for _, c := range s.Take() {
			require.Nil(t, c.Failure)
			for i, b := range c.Data {
				if want := byte((came+i)/piece + 1); b != want { // require takes a second for a million bytes
					require.Equal(t, want, b, "byte %d", came+i)
				}
			}
			came += len(c.Data)
			ended = c.End
		}
		s.Grant(int64(came) + piece)
	}
	require.Equal(t, piece*pieces, came)
	_, end := h.wait(done)
	require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
	require.Zero(t, h.endsOf("lie"))
}

// A requester that goes is told to the handler, before the reply and in its body. So is one that cancels.
func TestHandlersAreToldThatTheRequesterGoes(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.install("alice", "w", `export default { async fetch(r) {
		const path = new URL(r.url).pathname;
		r.signal.addEventListener("abort", () => console.log("gone: " + path));
		console.log("runs: " + path);
		if (path === "/early") await new Promise((d) => { r.signal.addEventListener("abort", d); setTimeout(d, 1e8) });
		return new Response(new ReadableStream({
			start(c) { c.enqueue(new Uint8Array(1)); setTimeout(() => {}, 1e8) },
		}));
	} }`)
	for _, path := range []string{"/early", "/late", "/cancel"} {
		e := newEvent(events.Fetch, "alice", path)
		e.URL, e.Requester = "http://x"+path, &events.Requester{Credit: 1 << 20}
		done := h.give(e)
		h.awaitLine("runs: " + path)
		switch path {
		case "/late":
			h.headOf(done)
			e.Requester.Gone()
		case "/early":
			e.Requester.Gone()
		case "/cancel":
			h.headOf(done).Stream.Cancel("no more")
		}
		h.awaitLine("gone: " + path)
	}
}

// Output arrives with what it belongs to.
func TestLinesArrive(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.install("alice", "w", `export default { task() { console.warn("a", { b: 1 }); throw new Error("broken") } }`)
	h.submit("alice", "w", "1")
	line := h.awaitLine("a { b: 1 }")
	require.Equal(t, []any{"alice", "w", "1-x", "warn"}, []any{line.Owner, line.Worker, line.Version, line.Level})
	require.NotEmpty(t, line.EventID)
	require.WithinDuration(t, time.Now(), line.Time, patience)
}

// A cell has no resolver. The broker looks up names for it, under its guard.
func TestNamesOfCells(t *testing.T) {
	t.Parallel()
	h := openHouse(t, func(c *Config) {
		c.Calls.Egress = egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, nil)
	})
	h.install("alice", "w", `import { builtin } from "pinwheel:node"; export default { async task() {
		const { resolve4 } = builtin("dns/promises");
		console.log("found " + await resolve4("localhost") + " " + await resolve4("nobody.invalid").catch((e) => e.code));
	} }`)
	h.submit("alice", "w", "1")
	h.awaitLine("found 127.0.0.1 ENOTFOUND")
	require.Zero(t, h.endsOf("lie"))
}

// What runs ends when it is told to.
func TestRunsInCellsAreHalted(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	e := newEvent(events.Task, "alice", "1")
	e.Halt = &events.Signal{}
	h.deploy("alice", `export default { async task() { console.log("runs"); await new Promise((d) => setTimeout(d, 1e8)) } }`,
		func(w *workers.Worker) { w.Retries = workers.Retries{MaxAttempts: 1} })
	done := h.give(e)
	h.awaitLine("runs")
	e.Halt.Fire()
	_, end := h.wait(done)
	require.NotNil(t, end.Outcome.Failure)
	require.Contains(t, end.Outcome.Failure.Message, "told to end")
}

// vault has the secrets of a test.
type vault struct {
	mu  sync.Mutex
	all *isolates.Secrets
	err error
}

func (v *vault) of(*workers.Worker) (*isolates.Secrets, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all, v.err
}

func (v *vault) set(values map[string]string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all, v.err = isolates.NewSecrets(values), err
}

// A worker in a cell has its secrets, the new ones after they were replaced, and fails without.
func TestSecretsReachCells(t *testing.T) {
	t.Parallel()
	var v vault
	h := openHouse(t, func(c *Config) { c.Secrets = v.of })
	v.set(map[string]string{"KEY": "one"}, nil)
	h.deploy("alice", `export default { task(e, env) { return env.KEY } }`, func(w *workers.Worker) {
		w.Secrets, w.Retries = []string{"KEY"}, workers.Retries{MaxAttempts: 1}
	})
	reply, _ := h.run("alice", "w", "1")
	require.JSONEq(t, `{"success":true,"data":"one"}`, reply)
	v.set(map[string]string{"KEY": "two"}, nil)
	h.pools.Renew("alice", "w")
	reply, _ = h.run("alice", "w", "1")
	require.JSONEq(t, `{"success":true,"data":"two"}`, reply)
	v.set(nil, errors.New("the vault is shut"))
	_, end := h.run("alice", "w", "1")
	require.NotNil(t, end.Outcome.Failure)
	require.Contains(t, end.Outcome.Failure.Message, "the vault is shut")
	v.set(map[string]string{"KEY": "three"}, nil)
	reply, _ = h.run("alice", "w", "1")
	require.JSONEq(t, `{"success":true,"data":"three"}`, reply)
}

// A batch of a queue runs as one, and each event ends as its handler says.
func TestBatchesRunInCells(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.deploy("alice", `export default { queue(batch) {
		console.log("events: " + batch.messages.length);
		for (const m of batch.messages) if (m.body === "again" && m.attempts === 1) m.retry(); else m.ack();
	} }`, func(w *workers.Worker) {
		w.Queue, w.Batch = true, &workers.Batch{MaxSize: 3, MaxWait: new(workers.Millis(500 * time.Millisecond))}
		w.Retries = workers.Retries{MaxAttempts: 3}
	})
	var all []chan lifecycle.Settlement
	for _, body := range []string{`"a"`, `"again"`, `"b"`} {
		all = append(all, h.submit("alice", "w", body))
	}
	h.awaitLine("events: 3")
	for _, i := range []int{0, 2} {
		_, end := h.wait(all[i])
		require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
		require.Equal(t, 1, end.Event.Attempt)
	}
	_, end := h.wait(all[1])
	require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
	require.Equal(t, 2, end.Event.Attempt)
	require.Zero(t, h.endsOf("lie"))
}

// A broker asks its cells.
func TestCellsAnswer(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.install("alice", "w", echo)
	h.run("alice", "w", "1")
	c := h.pools.classes["all"].live()
	answer, err := c.ask(wire.AskStats)
	require.NoError(t, err)
	var stats isolates.Stats
	require.NoError(t, json.Unmarshal(answer, &stats))
	require.NotZero(t, stats)
	answer, err = c.ask(wire.AskIdle)
	require.NoError(t, err)
	require.Equal(t, "true", string(answer))
}

// An owner that changes its class leaves nothing in its old cell: what waits runs in the new one, what runs ends where
// it is.
func TestOwnersChangeTheirClass(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.classes["alice"] = "old"
	h.deploy("alice", `let n = 0; export default { async task(e) {
		const ms = Number(await e.text());
		if (ms) { console.log("runs"); await new Promise((d) => setTimeout(d, ms)) }
		return ++n } }`, func(w *workers.Worker) { w.Mode = workers.Persistent })
	h.run("alice", "w", "0")
	running := h.submit("alice", "w", "500")
	h.awaitLine("runs")
	var all []chan lifecycle.Settlement
	for class := range 6 {
		for range 20 {
			all = append(all, h.submit("alice", "w", "0"))
		}
		h.mu.Lock()
		h.classes["alice"] = []string{"new", "", "old"}[class%3]
		h.mu.Unlock()
		h.catalog.SetPolicy("alice", workers.Policy{Weight: class + 1})
	}
	for _, one := range append(all, running) {
		h.settledOnce(one)
	}
	h.mu.Lock()
	h.classes["alice"] = "new"
	h.mu.Unlock()
	h.catalog.SetPolicy("alice", workers.Policy{})
	h.settledOnce(h.submit("alice", "w", "0"))
	require.NotZero(t, h.pidOf("new"))
	require.Zero(t, h.endsOf("lie")+h.endsOf("died"))
}

// Answers with odd texts are no lies: whatever JavaScript may make, a cell may send.
func TestOddAnswersAreNoLies(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.install("alice", "w", `const odd = [
		{ headers: { x: "a\u0001b" } }, { headers: { x: "\u007f" } }, { headers: { x: "\u00ff\u0080" } }, { headers: { x: "" } },
		{ headers: { "!#$%&'*+-.^_|~": "x" } }, { statusText: "a\tb \u00ff" }, { status: 599 },
	]; export default { async fetch(r) { return new Response("x", odd[new URL(r.url).pathname.slice(1)]) } }`)
	for _, n := range []string{"0", "1", "2", "3", "4", "5", "6"} {
		e := newEvent(events.Fetch, "alice", n)
		e.URL = "http://x/" + n
		_, end := h.wait(h.give(e))
		require.Equal(t, lifecycle.Ack, end.Outcome.Verdict, n)
		require.Zero(t, h.endsOf("lie"), n)
	}
}
