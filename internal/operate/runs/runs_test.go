package runs

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// history is a run history with one process.
type history struct {
	*Recorder
	*Store
	js   jetstream.JetStream
	stop func() // stores what waits
}

func open(t *testing.T, rule workers.KeepRuns, policies map[string]workers.KeepRuns) *history {
	t.Helper()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	cfg := Config{Prefix: "pinwheel", Node: "n/1", Rule: rule, MaxBytes: 64 << 20, MaxAge: time.Hour}
	r, err := Open(t.Context(), cfg, Parts{
		NC: nc, JS: js, Metrics: prometheus.NewRegistry(), Log: zerolog.Nop(),
		Policy: func(owner string) *workers.Policy { return &workers.Policy{Runs: policies[owner]} },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	stop := sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return &history{r, NewStore(js, "pinwheel"), js, stop}
}

func (h *history) page(t *testing.T, f Filter, before uint64, limit int) Page {
	t.Helper()
	p, err := h.Newest(t.Context(), f, before, limit)
	require.NoError(t, err)
	return p
}

// run is an attempt that is made up.
type run struct {
	owner, worker, id string
	attempt           int
	end               lifecycle.End
}

func (x run) report() *lifecycle.Report {
	e := &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: x.owner, Worker: x.worker, ID: x.id,
		Stored: time.Now(), Body: []byte("four")}}
	w := &workers.Worker{}
	w.Owner, w.Version = x.owner, "12-0123456789ab"
	x.end.Started = true
	a := &lifecycle.Attempt{Event: e, Worker: w, Number: max(1, x.attempt), Start: time.Now()}
	return &lifecycle.Report{Attempt: a, End: &x.end}
}

func failed() lifecycle.End {
	return lifecycle.End{Failure: &events.Failure{Reason: events.ReasonException, Message: "no luck"}}
}

func names(list []*Record) (all []string) {
	for _, r := range list {
		all = append(all, fmt.Sprintf("%s/%s %s %s %d", r.Owner, r.Worker, r.Event, r.Outcome, r.Attempt))
	}
	return all
}

// The rule of an owner, or that of the fleet, chooses what is kept: all that did not succeed, successes after that, and
// a share of the others.
func TestRulesChooseWhatIsKept(t *testing.T) {
	t.Parallel()
	h := open(t, "failures", map[string]workers.KeepRuns{"all": "all", "none": "none", "half": "50%"})
	for _, owner := range []string{"plain", "all", "none"} {
		h.Ended(run{owner: owner, worker: "w", id: "good"}.report())
		h.Ended(run{owner: owner, worker: "w", id: "bad", end: failed()}.report())
		h.Ended(run{owner: owner, worker: "w", id: "bad", attempt: 2}.report())
		h.Ended(run{owner: owner, worker: "w", id: "again", end: lifecycle.End{Retry: true}}.report())
		h.Ended(run{owner: owner, worker: "w", id: "stopped", end: lifecycle.End{Interrupted: true}}.report())
	}
	for i := range 1000 {
		h.Ended(run{owner: "half", worker: "w", id: fmt.Sprint(i)}.report())
	}
	h.stop()
	kept := []string{"/w stopped interrupted 1", "/w again retry 1", "/w bad ok 2", "/w bad failed 1"}
	for i, s := range kept {
		kept[i] = "plain" + s
	}
	require.Equal(t, kept, names(h.page(t, Filter{Owner: "plain"}, 0, 100).Records))
	require.Len(t, h.page(t, Filter{Owner: "all"}, 0, 100).Records, 5)
	require.Empty(t, h.page(t, Filter{Owner: "none"}, 0, 100).Records)
	n := 0
	for p := h.page(t, Filter{Owner: "half"}, 0, 100); ; p = h.page(t, Filter{Owner: "half"}, p.Next, 100) {
		if n += len(p.Records); p.Next == 0 {
			break
		}
	}
	require.InDelta(t, 500, n, 80)
}

func TestOffKeepsNothing(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	r, err := Open(t.Context(), Config{Prefix: "pinwheel"}, Parts{NC: nc, JS: js})
	require.NoError(t, err)
	require.Nil(t, r)
	r.Log(&events.LogLine{})
	r.Run(t.Context())
	_, err = NewStore(js, "pinwheel").Newest(t.Context(), Filter{}, 0, 10)
	require.ErrorIs(t, err, ErrNoHistory)
	_, err = NewStore(js, "pinwheel").Get(t.Context(), 1)
	require.ErrorIs(t, err, ErrNoHistory)
}

// A record says what the fleet knows of the attempt, and has its lines.
func TestRecordHasTheLinesOfItsAttempt(t *testing.T) {
	t.Parallel()
	h := open(t, "all", nil)
	line := func(id string, attempt int, text string) {
		h.Log(&events.LogLine{Time: time.Now(), Owner: "acme", Worker: "w", Version: "12-0123456789ab", EventID: id,
			Attempt: attempt, Level: "info", Text: text})
	}
	line("e1", 1, "one <b>&</b>")
	line("e1", 2, "two")
	line("e2", 1, "other")
	for range 3 * MaxLines / 1000 {
		line("e3", 1, strings.Repeat("x", 1000))
	}
	line("e4", 1, strings.Repeat("y", 2*MaxLines))
	h.Log(&events.LogLine{Owner: "acme", Worker: "w", EventID: "e1", Attempt: 1, Text: "of no version: not of a run"})
	first := run{owner: "acme", worker: "w", id: "e1", end: failed()}.report()
	first.Attempt.Replied, first.Attempt.Sent = time.Millisecond, 7
	first.End.CPU = 1500 * time.Microsecond
	first.Attempt.Event.Trace = &events.TraceContext{TraceID: [16]byte{0xab}, Sampled: true}
	h.Ended(first)
	h.Ended(run{owner: "acme", worker: "w", id: "e1", attempt: 2}.report())
	h.Ended(run{owner: "acme", worker: "w", id: "e3"}.report())
	h.Ended(run{owner: "acme", worker: "w", id: "e4"}.report())
	h.stop()
	list := h.page(t, Filter{Owner: "acme", Event: "e1"}, 0, 10).Records
	require.Len(t, list, 2)
	require.Equal(t, "two", list[0].Lines[0].Text)
	r, err := h.Get(t.Context(), list[1].Seq)
	require.NoError(t, err)
	require.Equal(t, list[1], r)
	require.Len(t, r.Lines, 1)
	require.Equal(t, "one <b>&</b>", r.Lines[0].Text)
	require.Equal(t, []any{"failed", "exception", "no luck", 1.5, int64(4), int64(7), "n/1", "task",
		"ab" + strings.Repeat("0", 30)},
		[]any{r.Outcome, r.Reason, r.Message, r.CPUMs, r.BytesIn, r.BytesOut, r.Node, r.Kind, r.TraceID})
	require.False(t, r.Stored.IsZero() || r.Started.IsZero() || r.Replied.IsZero() || r.Ended.IsZero())
	long := h.page(t, Filter{Event: "e3"}, 0, 10).Records[0]
	require.Equal(t, 3*MaxLines/1000, len(long.Lines)+long.LinesLost)
	require.InDelta(t, MaxLines/1080, len(long.Lines), 2)
	require.Len(t, h.page(t, Filter{Event: "e4"}, 0, 10).Records[0].Lines, 1)
	require.Equal(t, int64(1), h.lines.n.Load(), "e2 has not ended")
	h.lines.sweep(time.Now().Add(2 * sweepEvery))
	require.Zero(t, h.lines.n.Load())
	require.Zero(t, h.lines.bytes)
	require.Empty(t, h.lines.owners)
}

// Only a reply that came before the end has a time of its own: something went on after it.
func TestRepliesThatComeWithTheEndHaveNoTime(t *testing.T) {
	t.Parallel()
	r := run{owner: "acme", worker: "w", id: "e"}.report()
	r.Attempt.Replied = time.Millisecond
	record := func() *Record { return of(r, r.Attempt.Event, 1, r.End, time.Now()) }
	require.Equal(t, r.Attempt.Start.Add(time.Millisecond), record().Replied)
	r.Reply = &events.Reply{}
	require.Zero(t, record().Replied)
}

// What a line has of its writer counts: its level too.
func TestLevelsOfLinesCount(t *testing.T) {
	t.Parallel()
	var l lines
	level := strings.Repeat("l", 1000)
	for range 2 * MaxLines / 1000 {
		l.add(&events.LogLine{Time: time.Now(), Owner: "acme", Worker: "w", EventID: "e", Attempt: 1, Level: level})
	}
	list, lost := l.take(run{owner: "acme", worker: "w", id: "e"}.report().Attempt.Event, 1)
	require.InDelta(t, MaxLines/(len(level)+lineOverhead), len(list), 1)
	require.Equal(t, 2*MaxLines/1000, len(list)+lost)
	require.Zero(t, l.bytes)
}

// Each event of a batch has a record.
func TestBatchesHaveARecordForEachEvent(t *testing.T) {
	t.Parallel()
	h := open(t, "all", nil)
	r := run{owner: "acme", worker: "w", id: "a"}.report()
	second := run{owner: "acme", worker: "w", id: "b"}.report().Attempt.Event
	second.Attempt = 3
	r.Attempt.Batch = []*lifecycle.Delivery{r.Attempt.Event, second}
	r.End.Items = []lifecycle.Item{{Decision: lifecycle.Acked}, {Decision: lifecycle.Failed, Failure: failed().Failure}}
	h.Ended(r)
	h.stop()
	list := h.page(t, Filter{Owner: "acme"}, 0, 10).Records
	require.Equal(t, []string{"acme/w b failed 3", "acme/w a ok 1"}, names(list))
	require.Equal(t, 2, list[0].Batch)
}

// While JetStream stores nothing, the end of an attempt does not wait. What has no room is counted.
func TestRecordsAreDroppedAndCountedWhileNothingIsStored(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	cfg := Config{Prefix: "pinwheel", Rule: "all", MaxBytes: 64 << 20, MaxAge: time.Hour}
	r, err := Open(t.Context(), cfg, Parts{NC: nc, JS: js, Metrics: prometheus.NewRegistry(), Log: zerolog.Nop(),
		Policy: func(string) *workers.Policy { return &workers.Policy{} }})
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), events.StreamRuns))
	for i := range 3 * waiting {
		r.Ended(run{owner: fmt.Sprintf("o%d", i%64), worker: "w", id: fmt.Sprint(i)}.report())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx)
	queue, store := testutil.ToFloat64(r.dropped.WithLabelValues(droppedQueue)),
		testutil.ToFloat64(r.dropped.WithLabelValues(droppedStore))
	require.Positive(t, queue)
	require.Positive(t, store)
	require.EqualValues(t, 3*waiting, queue+store)
	require.Zero(t, testutil.ToFloat64(r.recorded))
}

// An owner that fails all the time keeps others from nothing: its records are limited in bytes a second, and it has at
// most as much of what waits as is free.
func TestOneOwnerLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	h := open(t, "all", nil)
	h.Recorder.mu.Lock() // nothing is stored meanwhile
	long := failed()
	long.Failure.Message = strings.Repeat("m", 4096)
	for i := range 2 * ownerBytes / 4096 {
		h.Ended(run{owner: "hog", worker: "w", id: fmt.Sprint(i), end: long}.report())
	}
	h.Ended(run{owner: "quiet", worker: "w", id: "q", end: failed()}.report())
	h.Recorder.mu.Unlock()
	h.stop()
	require.Len(t, h.page(t, Filter{Owner: "quiet"}, 0, 10).Records, 1)
	require.Positive(t, testutil.ToFloat64(h.dropped.WithLabelValues(droppedQueue)))

	h.rates.Charge("hog", 100*ownerBytes, time.Now())
	h.Ended(run{owner: "hog", worker: "w", id: "x", end: long}.report())
	require.Positive(t, testutil.ToFloat64(h.dropped.WithLabelValues(droppedRate)))
}

// Lists find exactly what a look at all records finds, the newest first, page by page.
func TestPagesOfFilters(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h := open(t, "all", nil)
	var all []*Record
	for i := range 20_000 {
		end := lifecycle.End{}
		if random.IntN(50) == 0 {
			end = failed()
		}
		x := run{owner: []string{"acme", "beta"}[random.IntN(2)], worker: []string{"shop", "mail"}[random.IntN(2)],
			id: fmt.Sprintf("e%d", i/2), end: end}
		if random.IntN(500) == 0 {
			x.id = "needle"
		}
		rec := of(x.report(), x.report().Attempt.Event, 1, &x.end, time.Now())
		rec.Version = []string{"1-aaaaaaaaaaaa", "2-bbbbbbbbbbbb", "1-cccccccccccc"}[random.IntN(3)]
		if random.IntN(1000) == 0 {
			rec.Lines = []Line{{Text: "here is Gold"}}
		}
		all = append(all, rec)
		h.store(rec)
	}
	h.stop()
	for _, f := range []Filter{
		{}, {Owner: "acme"}, {Owner: "beta", Worker: "mail"}, {Worker: "shop"}, {Outcome: "failed"}, {Outcome: "broken"},
		{Owner: "acme", Outcome: "failed", Version: "1"}, {Version: "1-cccccccccccc"}, {Event: "needle"}, {Event: "e77"},
		{Text: "gOLD"}, {Text: "LUCK", Owner: "beta"}, {Text: "needl"}, {Text: "nothing has this"},
	} {
		var want, got []string
		text := strings.ToLower(f.Text)
		for i := len(all) - 1; i >= 0; i-- {
			r := all[i]
			if (f.Owner == "" || r.Owner == f.Owner) && (f.Worker == "" || r.Worker == f.Worker) &&
				(f.Outcome == "" || r.Outcome == f.Outcome) && (f.Version == "" || r.Version == f.Version ||
				number(r.Version) == f.Version) && f.admits(r, text) {
				want = append(want, fmt.Sprintf("%s/%s %s %s %s", r.Owner, r.Worker, r.Event, r.Outcome, r.Version))
			}
		}
		for before := uint64(0); ; {
			p := h.page(t, f, before, 1+random.IntN(MaxPage))
			for _, r := range p.Records {
				got = append(got, fmt.Sprintf("%s/%s %s %s %s", r.Owner, r.Worker, r.Event, r.Outcome, r.Version))
			}
			require.Less(t, p.Scanned, mostScanned+2*windowMost)
			if before = p.Next; before == 0 {
				break
			}
		}
		require.Equal(t, want, got, "%+v", f)
	}
}

func TestFiltersAreChecked(t *testing.T) {
	t.Parallel()
	for field, f := range map[string]Filter{
		"owner": {Owner: "a.b"}, "worker": {Worker: ">"}, "version": {Version: "*"}, "outcome": {Outcome: "good"},
		"event": {Event: strings.Repeat("e", 1025)}, "text": {Text: strings.Repeat("e", 257)},
	} {
		var wrong *FieldError
		require.ErrorAs(t, f.Check(), &wrong)
		require.Equal(t, field, wrong.Field)
	}
	require.NoError(t, Filter{Owner: "a", Worker: "b", Version: "1-0123456789ab", Outcome: "ok", Event: "x y.*"}.Check())
}

// manyRecords is how many records TestListOfManyRecords lays; -records 1000000 is what performance.md tells of.
var manyRecords = flag.Int("records", 100_000, "records of TestListOfManyRecords")

// Each filter of a long history reads a bounded number of records for a page, whatever it finds.
func TestListOfManyRecords(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	r, err := Open(t.Context(), Config{Prefix: "pinwheel", Node: "n/1", Rule: "all", MaxBytes: 4 << 30, MaxAge: time.Hour},
		Parts{NC: nc, JS: js, Metrics: prometheus.NewRegistry(), Log: zerolog.Nop()})
	require.NoError(t, err)
	n := *manyRecords
	for i := range n {
		x := run{owner: fmt.Sprintf("o%d", i%100), worker: fmt.Sprintf("w%d", i/100%10), id: fmt.Sprintf("e%d", i)}
		if i%1000 == 7 {
			x.end = failed()
		}
		if i == 17 {
			x.end = failed()
			x.end.Failure.Message = "the needle"
		}
		report := x.report()
		r.store(of(report, report.Attempt.Event, 1, &x.end, time.Now()))
	}
	r.flush()
	s := NewStore(js, "pinwheel")
	for _, c := range []struct {
		f     Filter
		found bool // on the first page, at this size
	}{
		{Filter{}, true}, {Filter{Owner: "o7"}, true}, {Filter{Owner: "o7", Worker: "w3"}, true},
		{Filter{Outcome: "failed"}, true}, {Filter{Owner: "o7", Outcome: "failed"}, true},
		{Filter{Outcome: "broken"}, false}, {Filter{Version: "11"}, false}, {Filter{Version: "12"}, true},
		{Filter{Owner: "o0", Event: "e100"}, true}, {Filter{Owner: "o1", Event: "e100"}, false},
		{Filter{Outcome: "failed", Text: "needle"}, n <= 1_000_000}, {Filter{Text: "not there"}, false},
	} {
		began := time.Now()
		p, err := s.Newest(t.Context(), c.f, 0, 100)
		require.NoError(t, err)
		for next := p; c.found && next.More && len(p.Records) == 0; { // a busy machine reads less in its time
			next, err = s.Newest(t.Context(), c.f, next.Next, 100)
			require.NoError(t, err)
			p.Records = next.Records
		}
		t.Logf("%+v: %d found, %d read, %s", c.f, len(p.Records), p.Scanned, time.Since(began).Round(time.Millisecond))
		if c.found {
			require.NotEmpty(t, p.Records, "%+v", c.f)
		} else {
			require.Empty(t, p.Records, "%+v", c.f)
		}
		require.Less(t, p.Scanned, mostScanned+2*windowMost)
	}
}
