package dispatch

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// ledger is a Settler and Threads that record the calls.
type ledger struct {
	mu      sync.Mutex
	settled []lifecycle.Settlement
	woken   []int
	rooms   []room
	closing []closing
	ending  []*lifecycle.Delivery
}

func (l *ledger) Settle(batch []lifecycle.Settlement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = append(l.settled, batch...)
}

func (l *ledger) Room(owner string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rooms = append(l.rooms, room{owner, n})
}

func (l *ledger) Wake(thread int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.woken = append(l.woken, thread)
}

func (l *ledger) CloseContexts(thread int, w *workers.Worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = append(l.closing, closing{thread, w})
}

func (l *ledger) Cancel(e *lifecycle.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = append(l.ending, e)
}

// take returns what was settled since the last take.
func (l *ledger) take() []lifecycle.Settlement { return taken(l, &l.settled) }

func (l *ledger) takeClosing() []closing { return taken(l, &l.closing) }

func (l *ledger) takeWoken() []int { return taken(l, &l.woken) }

func taken[T any](l *ledger, list *[]T) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := *list
	*list = nil
	return all
}

func newDispatcher(t testing.TB, cfg Config) (*Dispatcher, *ledger) {
	d, err := New(cfg, zerolog.Nop(), prometheus.NewRegistry())
	require.NoError(t, err)
	l := &ledger{}
	d.Wire(l, l)
	return d, l
}

func worker(owner, name string) *workers.Worker {
	return &workers.Worker{Owner: owner, Name: name, Version: "1-abc", Number: 1, Handlers: events.Kinds[:]}
}

func task(owner, worker string, n int) *lifecycle.Delivery {
	return &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: owner, Worker: worker,
		ID: fmt.Sprint(n), ReplyTo: "_INBOX.x"}, Runs: events.Runs{Attempt: 1}}
}

func tasks(owner, worker string, n int) (batch []*lifecycle.Delivery) {
	for i := range n {
		batch = append(batch, task(owner, worker, i))
	}
	return batch
}

// done is the report of a handler that returned after the given CPU time.
func done(a *lifecycle.Attempt, cpu time.Duration) lifecycle.Report {
	return lifecycle.Report{Attempt: a, Reply: &events.Reply{Body: []byte("{}")},
		End: &lifecycle.End{Started: true, CPU: cpu}}
}

func notStarted(a *lifecycle.Attempt) lifecycle.Report {
	return lifecycle.Report{Attempt: a, End: &lifecycle.End{Interrupted: true}}
}

func report(d *Dispatcher, thread int, cpu time.Duration, batch []*lifecycle.Attempt) {
	var reports []lifecycle.Report
	for _, a := range batch {
		reports = append(reports, done(a, cpu))
	}
	d.Report(thread, reports)
}

func ids(batch []*lifecycle.Attempt) (s []string) {
	for _, a := range batch {
		s = append(s, a.Event.ID)
	}
	return s
}

// own is pool 0.
func own(d *Dispatcher) *pool { return d.pools.pool(0) }

// engage makes all threads that do not sleep busy for long, so that nothing is left to them.
func engage(d *Dispatcher) {
	d.pools.each(func(p *pool) {
		for thread := range p.idle.threads {
			p.idle.busy(thread, time.Now())
		}
	})
}

// learn runs one event of the worker on the thread, so that its cost is known and it is warm there.
func learn(t testing.TB, d *Dispatcher, thread int, owner, name string, cpu time.Duration) {
	d.Submit([]*lifecycle.Delivery{task(owner, name, -1)})
	engage(d)
	batch := d.Next(thread, 1)
	require.Len(t, batch, 1)
	report(d, thread, cpu, batch)
}

func TestEventRuns(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 2})
	w := worker("o", "w")
	d.Install(workers.Only(w))
	require.Nil(t, d.Next(0, 64))
	e := task("o", "w", 7)
	e.Attempt = 3
	d.Submit([]*lifecycle.Delivery{e})
	require.Equal(t, []int{0}, l.takeWoken())

	batch := d.Next(0, 64)
	require.Len(t, batch, 1)
	a := batch[0]
	require.Same(t, e, a.Event)
	require.Same(t, w, a.Worker)
	require.Equal(t, 3, a.Number)
	require.False(t, a.Start.IsZero())

	d.Report(0, []lifecycle.Report{{Attempt: a, Reply: &events.Reply{Body: []byte("{}")}}})
	s := l.take()
	require.Len(t, s, 1)
	require.True(t, s[0].ReplyOnly())
	require.Equal(t, "7", s[0].Reply.EventID)
	require.Equal(t, 3, s[0].Reply.Attempt)
	require.Equal(t, "1-abc", s[0].Reply.Version)
	require.Positive(t, s[0].Reply.Duration)

	d.Report(0, []lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true}}})
	s = l.take()
	require.Len(t, s, 1)
	require.Nil(t, s[0].Reply)
	require.Equal(t, lifecycle.Outcome{Verdict: lifecycle.Ack, Version: "1-abc"}, s[0].Outcome)

	d.Report(0, []lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true}}}) // a mistake of the thread
	require.Empty(t, l.take(), "one final settlement per event")
	require.Equal(t, Stats{Owners: 1}, d.Figures().Stats())
}

func TestFailureReply(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	w := worker("o", "w")
	w.Retries.MaxAttempts = 1
	d.Install(workers.Only(w))
	for _, replyTo := range []string{"_INBOX.x", ""} {
		e := task("o", "w", 1)
		e.ReplyTo = replyTo
		d.Submit([]*lifecycle.Delivery{e})
		a := d.Next(0, 1)[0]
		d.Report(0,
			[]lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true, Failure: events.Fail(events.ReasonException,
				"boom")}}})
		s := l.take()
		require.Len(t, s, 1)
		require.Equal(t, lifecycle.Dead, s[0].Outcome.Verdict)
		require.Equal(t, "1-abc", s[0].Outcome.Version)
		if replyTo == "" {
			require.Nil(t, s[0].Reply)
			continue
		}
		require.JSONEq(t, `{"success":false,"error":"exception: boom"}`, string(s[0].Reply.Body))
		require.Equal(t, "1-abc", s[0].Reply.Version)
		require.Positive(t, s[0].Reply.Duration)
	}
}

func TestNotRun(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	w := worker("o", "w")
	w.Handlers = []events.Kind{events.Task}
	d.Install(workers.Only(w))
	late := task("o", "w", 1)
	late.Deadline = time.Now().Add(-time.Second)
	nobody := task("nobody", "w", 2)
	nobody.Kind = events.Fetch
	fetch := task("o", "w", 3)
	fetch.Kind = events.Fetch
	d.Submit([]*lifecycle.Delivery{late, nobody, fetch, task("o", "other", 4)})
	s := l.take()
	require.Len(t, s, 4)
	for i, want := range []struct {
		verdict lifecycle.Verdict
		reason  events.Reason
		status  int
	}{
		{lifecycle.Dead, events.ReasonExpired, 0},
		{lifecycle.Ack, events.ReasonNoWorker, 404},
		{lifecycle.Ack, events.ReasonNoHandler, 501},
		{lifecycle.Dead, events.ReasonNoWorker, 0},
	} {
		require.Equal(t, want.verdict, s[i].Outcome.Verdict)
		require.Equal(t, want.reason, s[i].Outcome.Failure.Reason)
		require.Equal(t, want.status, s[i].Reply.Status)
	}
	require.Nil(t, d.Next(0, 1))
}

func TestRetriedComesFirst(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	learn(t, d, 0, "o", "w", time.Microsecond)
	d.Submit(tasks("o", "w", 3))
	batch := d.Next(0, 2)
	require.Equal(t, []string{"0", "1"}, ids(batch))
	l.take()

	again7, again8 := task("o", "w", 7), task("o", "w", 8)
	again7.Attempt, again8.Attempt = 2, 2
	d.Submit([]*lifecycle.Delivery{again7, task("o", "w", 9), again8})
	d.Report(0, []lifecycle.Report{notStarted(batch[0]), notStarted(batch[1])})
	require.Empty(t, l.take(), "what was not started stays here")
	require.Equal(t, []string{"0", "1", "7", "8", "2", "9"}, ids(d.Next(0, 64)))
}

// versions is an installation of o/w with n versions, 1-x and so on.
func versions(n int) workers.Installation {
	in := workers.Installation{Owner: "o", Name: "w"}
	for i := 1; i <= n; i++ {
		w := worker("o", "w")
		w.Version, w.Number = fmt.Sprintf("%d-x", i), i
		in.Versions = append(in.Versions, w)
	}
	return in
}

func TestPins(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	in := versions(2)
	in.Deployment = workers.Deployment{Number: 1, Split: []workers.Share{{Version: "2-x", Percent: 100}},
		Aliases: map[string]string{"old": "1-x"}}
	d.Install(in)
	for pin, want := range map[string]string{"": "2-x", "1": "1-x", "1-x": "1-x", "2": "2-x", "old": "1-x"} {
		e := task("o", "w", 1)
		e.Version = pin
		d.Submit([]*lifecycle.Delivery{e})
		batch := d.Next(0, 64)
		require.Equal(t, want, batch[0].Worker.Version)
		report(d, 0, 1, batch)
	}
	l.take()
	e := task("o", "w", 1)
	e.Version = "3-x"
	d.Submit([]*lifecycle.Delivery{e})
	require.Equal(t, events.ReasonNoWorker, l.take()[0].Outcome.Failure.Reason)
}

func TestInstallWhileQueued(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	d.Submit(tasks("o", "w", 3))
	newer := worker("o", "w")
	newer.Version = "2-abc"
	d.Install(workers.Only(newer))
	require.Equal(t, "2-abc", d.Next(0, 1)[0].Worker.Version, "the version is chosen when it starts")
	d.Remove("o", "w")
	d.Install(workers.Only(newer))
	require.Equal(t, "2-abc", d.Next(0, 1)[0].Worker.Version, "removed and installed again")
	d.Remove("o", "w")
	require.Nil(t, d.Next(0, 1))
	s := l.take()
	require.Len(t, s, 1)
	require.Equal(t, events.ReasonNoWorker, s[0].Outcome.Failure.Reason)
}

func TestRemovedOwnerIsForgotten(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	d.Submit(tasks("o", "w", 1))
	batch := d.Next(0, 1)
	d.Remove("o", "w")
	require.Equal(t, 1, d.Figures().Stats().Owners, "an attempt runs")
	d.Report(0, []lifecycle.Report{notStarted(batch[0])})
	require.Equal(t, 1, d.Figures().Stats().Queued)
	require.Nil(t, d.Next(0, 1))
	require.Equal(t, events.ReasonNoWorker, l.take()[0].Outcome.Failure.Reason)
	require.Equal(t, Stats{Asleep: 1}, d.Figures().Stats())
}

func TestParkAndRoom(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxQueued: 10})
	d.Install(workers.Only(worker("o", "w")))
	d.Install(workers.Only(worker("quiet", "w")))
	learn(t, d, 0, "o", "w", time.Microsecond)
	l.take()
	d.Submit(tasks("o", "w", 13))
	s := l.take()
	require.Len(t, s, 3)
	for i, s := range s {
		require.Equal(t, lifecycle.Settlement{Event: s.Event, Order: lifecycle.Park}, s)
		require.Equal(t, fmt.Sprint(10+i), s.Event.ID, "the last ones")
		require.Nil(t, s.Reply)
	}
	d.Submit(tasks("quiet", "w", 1))
	require.Empty(t, l.take(), "others have room")

	retried := task("o", "w", 50)
	retried.Attempt = 2
	d.Submit([]*lifecycle.Delivery{retried})
	require.Empty(t, l.take(), "a retried event is held already")

	next := func() { // one event of o leaves the queue
		was := d.Figures().BusyOwners()
		for d.Figures().BusyOwners()[0].Queued == was[0].Queued {
			report(d, 0, time.Microsecond, d.Next(0, 1))
		}
	}
	for n := 11; n > 5; n-- {
		require.Empty(t, l.rooms)
		l.take()
		d.Submit(tasks("o", "w", 1))
		require.Equal(t, lifecycle.Park, l.take()[0].Order, "until it is below half")
		next()
	}
	next()
	require.Equal(t, []room{{"o", 1}}, l.rooms, "half a queue is for them")
	next()
	require.Len(t, l.rooms, 1)
	next()
	next()
	require.Equal(t, []room{{"o", 1}, {"o", 4}}, l.rooms, "a quarter further")
	l.take()
	d.Submit(tasks("o", "w", 1))
	require.Equal(t, lifecycle.Park, l.take()[0].Order, "behind those that are parked")
	parked := tasks("o", "w", 4)
	for _, e := range parked {
		e.Parked = true
	}
	d.Submit(parked)
	require.Empty(t, l.take())
	require.False(t, d.Through("o", d.parks["o"]-1))
	d.Submit(tasks("o", "w", 1))
	require.Len(t, l.take(), 1, "word from before the last was parked")
	require.True(t, d.Through("o", d.parks["o"]))
	require.Empty(t, d.parks, "no owner is remembered forever")
	d.owners["o"].parked = true // another process has some
	d.Submit(tasks("o", "w", 1))
	require.Empty(t, l.take(), "all are through")
	for d.Figures().Stats().Queued > 0 {
		report(d, 0, time.Microsecond, d.Next(0, 1))
	}
	require.Equal(t, room{"o", 5}, l.rooms[len(l.rooms)-1], "nothing left")
}

func TestDrain(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	learn(t, d, 0, "o", "w", time.Microsecond)
	d.Submit(tasks("o", "w", 4))
	batch := d.Next(0, 2)
	require.Len(t, batch, 2)
	l.take()
	d.Drain()
	d.Submit(tasks("o", "w", 1))
	s := l.take()
	require.Len(t, s, 3)
	for _, s := range s {
		require.Equal(t, lifecycle.Settlement{Event: s.Event, Order: lifecycle.Return}, s)
	}
	require.Nil(t, d.Next(0, 2))
	d.Report(0, []lifecycle.Report{done(batch[0], 1), notStarted(batch[1])})
	s = l.take()
	require.Equal(t, lifecycle.Ack, s[0].Outcome.Verdict, "what runs goes on")
	require.Equal(t, lifecycle.Return, s[1].Order)
	require.True(t, d.Figures().Stats().Draining)
	require.Zero(t, d.Figures().Stats().Queued+d.Figures().Stats().Running)
}

func TestDeadlineWhileQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1})
		d.Install(workers.Only(worker("o", "w")))
		go d.Run(t.Context())
		start := time.Now()
		for i, in := range []time.Duration{3 * time.Second, time.Second, 0, time.Hour} {
			e := task("o", "w", i)
			if in > 0 {
				e.Deadline = start.Add(in)
			}
			if i == 0 {
				e.Kind = events.Fetch
			}
			d.Submit([]*lifecycle.Delivery{e})
		}
		time.Sleep(time.Second + expiryStep)
		synctest.Wait()
		s := l.take()
		require.Len(t, s, 1)
		require.Equal(t, "1", s[0].Event.ID)
		require.Equal(t, lifecycle.Dead, s[0].Outcome.Verdict)
		require.Equal(t, events.ReasonExpired, s[0].Outcome.Failure.Reason)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s = l.take()
		require.Len(t, s, 1)
		require.Equal(t, lifecycle.Ack, s[0].Outcome.Verdict)
		require.Equal(t, 503, s[0].Reply.Status)
		require.Equal(t, 2, d.Figures().Stats().Queued)
		require.Equal(t, "2", d.Next(0, 1)[0].Event.ID)
		time.Sleep(time.Hour)
		require.Nil(t, d.Next(0, 1))
		require.Len(t, l.take(), 1)
	})
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	d, err := New(Config{Threads: 1}, zerolog.Nop(), reg)
	require.NoError(t, err)
	l := &ledger{}
	d.Wire(l, l)
	d.Install(workers.Only(worker("o", "w")))
	learn(t, d, 0, "o", "w", time.Microsecond)
	d.Submit([]*lifecycle.Delivery{task("o", "w", 1), task("o", "nobody", 2), task("o", "w", 3)})
	a := d.Next(0, 1)[0]
	d.Report(0,
		[]lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true, Warm: true,
			Failure: events.Fail(events.ReasonCPU, "x")}}})
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP pinwheel_dispatch_queued Events that wait for a thread in this process.
# TYPE pinwheel_dispatch_queued gauge
pinwheel_dispatch_queued 1
# HELP pinwheel_dispatch_attempts_total Attempts that ended, by whether their context had run before.
# TYPE pinwheel_dispatch_attempts_total counter
pinwheel_dispatch_attempts_total{context="cold"} 1
pinwheel_dispatch_attempts_total{context="warm"} 1
`), "pinwheel_dispatch_queued", "pinwheel_dispatch_attempts_total"))
	flow := d.Figures().Flow()
	require.Equal(t, []uint64{2, 2, 1, 1, 0}, []uint64{flow.Duration.Count, flow.Wait.Count, flow.Retried, flow.Failed,
		flow.Parked})
	require.Len(t, flow.Duration.Buckets, len(Bounds()))
	lint, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, lint)
	require.Equal(t, uint64(2), d.metrics.wait.count)
	_, err = New(Config{Threads: 1}, zerolog.Nop(), reg)
	require.Error(t, err, "registered twice")
}

// What each worker has done is known. In the metric few workers have a label of their own, and few of one owner,
// whatever the owners call them and however many there are.
func TestWorkersAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	d, err := New(Config{Threads: 1}, zerolog.Nop(), reg)
	require.NoError(t, err)
	l := &ledger{}
	d.Wire(l, l)
	attempts := func() (labels map[string]float64, all float64) {
		families, err := reg.Gather()
		require.NoError(t, err)
		labels = map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "pinwheel_worker_attempts_total" {
					labels[m.GetLabel()[1].GetValue()] += m.GetCounter().GetValue()
					all += m.GetCounter().GetValue()
				}
			}
		}
		return labels, all
	}
	runs := 0
	run := func(owner, name string, failure *events.Failure) {
		t.Helper()
		runs++
		d.Install(workers.Only(worker(owner, name)))
		d.Submit([]*lifecycle.Delivery{task(owner, name, runs)})
		a := d.Next(0, 1)[0]
		d.Report(0, []lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true, NoRetry: true, Failure: failure}}})
	}
	for n := range 2 * maxOwnerLabels {
		run("hostile", fmt.Sprint("w", n), nil)
	}
	labels, all := attempts()
	require.Len(t, labels, maxOwnerLabels+1)
	require.InDelta(t, maxOwnerLabels, labels["other"], 0)
	require.InDelta(t, runs, all, 0)
	for range 3 {
		run("good", "w", events.Fail(events.ReasonException, "x"))
	}
	for n := range 2 * maxWorkerLabels {
		run(fmt.Sprint("o", n), "w", nil)
	}
	labels, all = attempts()
	require.Len(t, labels, maxWorkerLabels+1)
	require.InDelta(t, 3, labels["good/w"], 0)
	require.InDelta(t, runs, all, 0)

	busy := d.Figures().BusyWorkers("", "", 5).Workers
	require.Len(t, busy, 5)
	require.Equal(t, []any{"good", "w", uint64(3), uint64(3), uint64(3), WorkerOffline},
		[]any{busy[0].Owner, busy[0].Worker, busy[0].Ended, busy[0].Failed, busy[0].Duration.Count, busy[0].State})
	require.False(t, busy[0].Last.IsZero())
	d.Submit([]*lifecycle.Delivery{task("good", "w", 1000)})
	a := d.Next(0, 1)[0]
	require.Equal(t, WorkerActive, d.Figures().BusyWorkers("", "", 1).Workers[0].State)
	d.Report(0, []lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true}}})
	require.Equal(t, WorkerIdle, d.Figures().BusyWorkers("", "", 1).Workers[0].State)

	good := d.Figures().BusyWorkers("good", "", 5)
	require.Equal(t, OwnerStats{Owner: "good"}, good.OwnerStats)
	require.Equal(t, []any{uint64(4), uint64(3), uint64(4)}, []any{good.Ended, good.Failed, good.Duration.Count})
	require.Equal(t, d.Figures().BusyWorkers("", "", 1).Workers, good.Workers, "and none of others")
	require.Empty(t, d.Figures().BusyWorkers("good", "none", 5).Workers)
	require.Empty(t, d.Figures().BusyWorkers("none", "", 5).Workers)
	hostile := d.Figures().BusyWorkers("hostile", "", 3)
	require.Len(t, hostile.Workers, 3)
	require.EqualValues(t, 2*maxOwnerLabels, hostile.Ended, "the sum is that of all of them")
	require.Equal(t, hostile.Workers[2:], d.Figures().BusyWorkers("hostile", hostile.Workers[2].Worker, 3).Workers)
	require.EqualValues(t, 1, d.Figures().BusyWorkers("hostile", hostile.Workers[2].Worker, 3).Ended)

	owners := d.Figures().OwnersWork(2)
	require.Len(t, owners, 2)
	require.Equal(t, []any{"hostile", uint64(2 * maxOwnerLabels), "good", uint64(4), uint64(3), uint64(4)},
		[]any{owners[0].Owner, owners[0].Ended, owners[1].Owner, owners[1].Ended, owners[1].Failed, owners[1].Duration.Count})
	require.Empty(t, d.Figures().OwnersWork(0))

	d.Remove("good", "w") // another worker gets its label
	run("last", "w", nil)
	labels, _ = attempts()
	require.NotContains(t, labels, "good/w")
	require.InDelta(t, 1, labels["last/w"], 0)
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Threads: 4}, ""},
		{Config{}, "dispatch: Threads is 0: it is 1 to 64"},
		{Config{Threads: 65}, "dispatch: Threads is 65: it is 1 to 64"},
		{Config{Threads: 1, Slots: -1}, "dispatch: Slots is -1: it is 1 to 10000"},
		{Config{Threads: 1, OwnerMaxRunning: -1}, "dispatch: OwnerMaxRunning is -1: it is 1 to 640000"},
		{Config{Threads: 1, OwnerMaxQueued: -1}, "dispatch: OwnerMaxQueued is -1: it is 1 to 1000000"},
	} {
		err := c.cfg.Validate()
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.want)
	}
	require.Equal(t, 192, Config{Threads: 4}.OrDefault().OwnerMaxRunning)
}

// A settlement says that its attempt was cheaper than parking, and did not wait for anything: slots let only so many
// wait at once.
func TestBriefAttempts(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("acme", "w")))
	for _, c := range []struct {
		end   lifecycle.End
		brief bool
	}{
		{lifecycle.End{Started: true, CPU: briefCPU}, true},
		{lifecycle.End{Started: true, CPU: briefCPU + 1}, false},
		{lifecycle.End{Started: true, Waited: true}, false},
	} {
		d.Submit(tasks("acme", "w", 1))
		batch := d.Next(0, 1)
		require.Len(t, batch, 1)
		d.Report(0, []lifecycle.Report{{Attempt: batch[0], End: &c.end}})
		settled := l.take()
		require.Len(t, settled, 1)
		require.Equal(t, c.brief, settled[0].Brief, "%+v", c)
	}
}
