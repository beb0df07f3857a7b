package isolates

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = 5 * time.Minute

// bench is a pool with a Source that tests feed by hand.
type bench struct {
	t       testing.TB
	pool    *Pool
	mu      sync.Mutex
	next    []*lifecycle.Attempt
	seen    map[*lifecycle.Attempt]*outcome
	logs    []events.LogLine
	sent    []Message
	charged map[string]time.Duration             // by owner, outside events
	told    map[*lifecycle.Attempt]time.Duration // CPU time that attempts had taken before their end
	away    int
	leaves  int // how often an attempt went away
	staying int // turns that overstay
	stayed  int // how often one did
	seq     uint64
	mode    workers.Mode   // of workers without a mode
	cpu     workers.Millis // CPU limit of workers without one; 0 = the default
	own     bool           // each event gets its own isolate
	lost    []string       // workers whose code has cost a thread
	keeps   bool           // a persistent context holds bytes when the test ends
	closed  []string       // owners and workers of which a thread has no context any more
	taken   func()         // is called when a thread has taken events and has not begun them; nil = not
	busy    int            // how often a thread had no free slot when it was asked to take events

	calling, mostCalling int               // calls of bindings under way
	stored               map[string][]byte // by puts of callKept

	close func() // closes the pool, once
}

// ample is the CPU limit of tests whose scripts have much to do: on a busy machine, and with the race detector, they
// need more than the default.
const ample = workers.Millis(10 * time.Second)

// inModes runs a test in every execution mode.
func inModes(t *testing.T, f func(t *testing.T, b *bench), change ...func(*Config)) {
	t.Helper()
	for _, mode := range workers.Modes {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t, change...)
			b.mode = mode
			f(t, b)
		})
	}
}

// outcome is the reports of an attempt.
type outcome struct {
	reply   *events.Reply
	before  int // log lines that came before the reply
	replied chan struct{}
	end     *lifecycle.End
	ended   chan struct{}
	thread  int
}

// newPool makes a pool whose runaways keep their priority and whose threads are lost soon, since tests wait for both.
// Modules may load for as long as a busy machine needs. It is not open: its threads call the source, which must know
// the pool by then.
func newPool(t testing.TB, cfg Config, source Source, host Host) *Pool {
	t.Helper()
	p, err := New(cfg, source, host)
	require.NoError(t, err)
	p.losses.runaways.nice, p.load.wall, p.losses.lostAfter = 0, patience, overstaysAfter
	return p
}

// sampled returns n of the names, others in each run. With the tag hostile it returns all.
func sampled(t testing.TB, names []string, n int) []string {
	t.Helper()
	if wholeSuite {
		return names
	}
	seed := rand.Uint64N(1e9)
	t.Logf("a sample of %d of %d, seed %d; with the tag hostile: all", n, len(names), seed)
	names = slices.Clone(names)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:n]
}

func newBench(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	return openBench(t, func(*Pool) {}, change...)
}

// openBench is newBench with a function that changes the pool before its threads and its watchdog run.
func openBench(t testing.TB, before func(*Pool), change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, seen: map[*lifecycle.Attempt]*outcome{}}
	cfg := DefaultConfig(1)
	for _, f := range change {
		f(&cfg)
	}
	b.pool = newPool(t, cfg, b, b)
	before(b.pool)
	require.NoError(t, b.pool.Open())
	b.close = sync.OnceFunc(b.pool.Close)
	t.Cleanup(b.close)
	t.Cleanup(b.checkHoldings)
	return b
}

// holdsNothing waits until all that runs held is given back.
func (b *bench) holdsNothing(what ...any) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.pool.holdings.Total() == 0 }, patience, time.Millisecond, what...)
}

// checkHoldings fails a test whose runs are over and did not give back what they held.
func (b *bench) checkHoldings() {
	b.t.Helper()
	if !b.t.Failed() && !b.keeps && !b.pool.closing() && b.pool.Stats().Running == 0 {
		b.holdsNothing()
	}
}

func (b *bench) Next(_, free int) []*lifecycle.Attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	if free == 0 {
		b.busy++
	}
	n := min(free, len(b.next))
	batch := b.next[:n:n]
	b.next = b.next[n:]
	if n > 0 && b.taken != nil {
		b.taken()
	}
	return batch
}

func (b *bench) Report(thread int, reports []lifecycle.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range reports {
		if r.Closed != nil {
			b.closed = append(b.closed, r.Closed.Owner+"/"+r.Closed.Name)
			continue
		}
		o := b.seen[r.Attempt]
		o.thread = thread
		if r.Reply != nil {
			o.reply, o.before = r.Reply, len(b.logs)
			close(o.replied)
		}
		if r.End != nil {
			o.end = r.End
			close(o.ended)
		}
	}
}

// Running reports that others wait when there is an event.
func (b *bench) Running(thread int, a *lifecycle.Attempt, cpu time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told == nil {
		b.told = map[*lifecycle.Attempt]time.Duration{}
	}
	b.told[a] = cpu
	return thread >= 0 && len(b.next) > 0
}

func (b *bench) Calling(*lifecycle.Attempt, bool) {}

func (b *bench) Away(_ *lifecycle.Attempt, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if is {
		b.away++
		b.leaves++
	} else {
		b.away--
	}
}

func (b *bench) Charge(owner string, cpu time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.charged == nil {
		b.charged = map[string]time.Duration{}
	}
	b.charged[owner] += cpu
}

func (b *bench) Overstays(_ *workers.Worker, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if is {
		b.staying++
		b.stayed++
	} else {
		b.staying--
	}
}

func (b *bench) Lost(w *workers.Worker, _ time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = append(b.lost, w.Target())
}

func (b *bench) Enqueue(ctx context.Context, owner, worker string, tasks []Message) error {
	if worker == "never" {
		<-ctx.Done()
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if worker == "full" {
		return fmt.Errorf("stream of %s is full", owner)
	}
	b.sent = append(b.sent, tasks...)
	return nil
}

func (b *bench) Log(line events.LogLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logs = append(b.logs, line)
}

func (b *bench) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var texts []string
	for _, l := range b.logs {
		texts = append(texts, l.Text)
	}
	return texts
}

// start passes an event to the pool.
func (b *bench) start(w *workers.Worker, e *lifecycle.Delivery) *outcome {
	return b.startIn(w, e, b.own)
}

// startIn is like start. own says whether the event gets its own isolate.
func (b *bench) startIn(w *workers.Worker, e *lifecycle.Delivery, own bool) *outcome {
	return b.add(w, &lifecycle.Attempt{Event: e, Number: 1, Own: own})
}

// startBatch passes a batch to the pool.
func (b *bench) startBatch(w *workers.Worker, batch []*lifecycle.Delivery) *outcome {
	return b.add(w, &lifecycle.Attempt{Event: batch[0], Batch: batch, Number: 1, Own: b.own})
}

func (b *bench) add(w *workers.Worker, a *lifecycle.Attempt) *outcome {
	if w.Mode == "" && b.mode != "" {
		mine := *w
		mine.Mode = b.mode
		w = &mine
	}
	o := &outcome{replied: make(chan struct{}), ended: make(chan struct{})}
	b.mu.Lock()
	if w.Limits.CPU == 0 && b.cpu > 0 { // a thread may read it already, if the worker has run before
		w.Limits.CPU = b.cpu
	}
	if w.Limits.Wall == 0 { // on a busy machine a script may need more than the default
		w.Limits.Wall = workers.Millis(patience)
	}
	a.Worker = w
	b.seq++
	if e := a.Event; e.ID == "" {
		e.ID = fmt.Sprint(b.seq)
	}
	b.next = append(b.next, a)
	b.seen[a] = o
	b.mu.Unlock()
	for i := range b.pool.threads {
		b.pool.Wake(i)
	}
	return o
}

// run runs an event to its end.
func (b *bench) run(w *workers.Worker, e *lifecycle.Delivery) *outcome {
	b.t.Helper()
	o := b.start(w, e)
	o.wait(b.t, o.ended)
	return o
}

func (o *outcome) wait(t testing.TB, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("the attempt does not end")
	}
}

// task runs code's task handler and returns its result document.
func (b *bench) task(code, payload string) map[string]any {
	b.t.Helper()
	o := b.run(worker("w", code), task(payload))
	if o.end.Failure != nil {
		b.t.Fatalf("%v\n%s\n%v", o.end.Failure, o.end.Failure.Stack, b.lines())
	}
	var doc map[string]any
	require.NoError(b.t, json.Unmarshal(o.reply.Body, &doc))
	return doc
}

// short are the limits of handlers that loop.
var short = workers.Limits{CPU: workers.Millis(50 * time.Millisecond)}

func worker(name, code string) *workers.Worker {
	return &workers.Worker{Owner: "acme", Name: name, Version: "1-test", Number: 1, Hash: name + code, Code: code,
		File: name + ".js"}
}

func task(payload string) *lifecycle.Delivery {
	return &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: "acme", Worker: "w",
		Body: []byte(payload), Header: events.Header{"X-Test": {"yes"}, "Nats-Msg-Id": {"secret"}}},
		Runs: events.Runs{Attempt: 1}}
}

func fetch(method, url, body string) *lifecycle.Delivery {
	return &lifecycle.Delivery{Event: events.Event{Kind: events.Fetch, Owner: "acme", Worker: "w",
		Body: []byte(body), Request: events.Request{Method: method, URL: url}},
		Runs: events.Runs{Attempt: 1}}
}
