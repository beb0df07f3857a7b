package schedule

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/cron"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// simulation is a NATS and a clock of its own.
type simulation struct {
	t   *testing.T
	srv *natsd.Server
	nc  *nats.Conn
	js  jetstream.JetStream
	now time.Time

	policy workers.Policy // of the owner
}

func newSimulation(t *testing.T, start string) *simulation {
	at, err := time.Parse(time.RFC3339, start)
	require.NoError(t, err)
	srv := natstest.Start(t)
	s := &simulation{t: t, srv: srv, nc: natstest.Connect(t, srv), now: at}
	s.js, err = jetstream.New(s.nc)
	require.NoError(t, err)
	_, err = s.js.CreateStream(t.Context(), Stream(events.DefaultPrefix, 1, 5*time.Minute))
	require.NoError(t, err)
	return s
}

// ticker makes one whose clock is wrong by skew.
func (s *simulation) ticker(node string, skew time.Duration) *Ticker {
	return NewTicker(s.nc, events.DefaultPrefix, node, func() time.Time { return s.now.Add(skew) },
		func(context.Context, string) bool { return false },
		func(_, worker string) bool { return s.policy.SkipsTicks(worker) },
		zerolog.Nop())
}

func (s *simulation) worker(number int, schedules ...workers.Schedule) *workers.Worker {
	for i := range schedules {
		if schedules[i].Name == "" {
			schedules[i].Name = fmt.Sprint(i + 1)
		}
	}
	return &workers.Worker{Owner: "acme", Name: "w", Number: number, Spec: workers.Spec{Schedules: schedules},
		DeployedAt: s.now}
}

// settle steps until there is nothing to do at the moment.
func (s *simulation) settle(t *Ticker) {
	for t.step(s.t.Context()).Sub(t.now()) <= 2*tickStandby {
		s.now = s.now.Add(tickStandby)
	}
}

// take removes the events that were made and returns the times of their ticks, as seconds after a time, by schedule.
func (s *simulation) take(since time.Time) map[string][]int64 {
	s.t.Helper()
	got := map[string][]int64{}
	stream, err := s.js.Stream(s.t.Context(), events.StreamSchedules)
	require.NoError(s.t, err)
	decoder := events.Decoder{Subjects: events.DefaultPrefix}
	for seq := uint64(1); ; seq++ {
		m, err := stream.GetMsg(s.t.Context(), seq, jetstream.WithGetMsgSubject("pinwheel.schedules.due.>"))
		if err != nil {
			require.ErrorIs(s.t, err, jetstream.ErrMsgNotFound)
			return got
		}
		seq = m.Sequence
		e, _, f := decoder.DecodeParked(events.Origin{Stream: events.StreamSchedules, Seq: seq, Subject: m.Subject},
			events.Header(m.Header), m.Data, m.Time)
		require.Nil(s.t, f)
		name := strings.Split(e.ID, ":")[3]
		require.Equal(s.t, events.TickID(e.Owner, e.Worker, name, time.UnixMilli(e.ScheduledTime)), e.ID)
		got[name] = append(got[name], e.ScheduledTime/1000-since.Unix())
		require.NoError(s.t, stream.DeleteMsg(s.t.Context(), seq))
	}
}

// A day of ticks, made by four processes whose clocks are wrong by up to five seconds either way and which die at any
// moment: each tick once. The day is one on which clocks are put forward.
func TestADayOfTicks(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newSimulation(t, "2026-03-28T18:00:00Z")
	start := s.now
	w := s.worker(1,
		workers.Schedule{Cron: "*/5 * * * *", TimeZone: "Europe/Berlin", Misfire: workers.MisfireAll},
		workers.Schedule{Cron: "30 2 * * *", TimeZone: "Europe/Berlin", Misfire: workers.MisfireAll},
		workers.Schedule{Cron: "@every 90s", Misfire: workers.MisfireAll},
		workers.Schedule{Cron: "20 1/4 * * * *", TimeZone: "Asia/Kathmandu", Misfire: workers.MisfireAll})
	type process struct {
		*Ticker
		wake time.Time // true time
		skew time.Duration
	}
	processes := make([]*process, 4)
	born := 0
	reborn := func(i int, after time.Duration) {
		skew := time.Duration(random.Int64N(int64(10*time.Second))) - 5*time.Second
		born++
		p := &process{s.ticker(fmt.Sprintf("p%d", born), skew), s.now.Add(after), skew}
		p.store.nc = natstest.Connect(t, s.srv)
		p.Install(workers.Only(w))
		if processes[i] != nil {
			processes[i].store.nc.Close()
		}
		processes[i] = p
	}
	for i := range processes {
		reborn(i, 0)
	}
	end, deaths := start.Add(24*time.Hour), 0
	for s.now.Before(end) {
		first := slices.MinFunc(processes, func(a, b *process) int { return a.wake.Compare(b.wake) })
		if first.wake.After(s.now) {
			s.now = first.wake
		}
		var together sync.WaitGroup // those that wake at about the same time race
		for i, p := range processes {
			if p.wake.After(s.now.Add(time.Second)) {
				continue
			}
			if random.IntN(60) == 0 { // it dies in the middle of what it does
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(1500))*time.Microsecond)
				p.step(ctx)
				cancel()
				after := time.Duration(random.Int64N(int64(time.Minute)))
				if random.IntN(10) == 0 {
					after = time.Duration(random.Int64N(int64(40 * time.Minute)))
				}
				reborn(i, after)
				deaths++
				continue
			}
			together.Go(func() { p.wake = p.step(t.Context()).Add(-p.skew) })
		}
		together.Wait()
		if random.IntN(400) == 0 { // all die
			for i := range processes {
				reborn(i, time.Duration(random.Int64N(int64(20*time.Minute))))
			}
			deaths += len(processes)
		}
	}
	s.now = s.now.Add(10 * time.Second) // more than any clock is fast
	last := s.ticker("last", 0)
	last.Install(workers.Only(w))
	s.settle(last)
	got, total := s.take(start), 0
	for _, sched := range w.Schedules {
		spec, err := cron.Parse(sched.Cron, sched.TimeZone)
		require.NoError(t, err)
		var want []int64
		for at := spec.Next(start); !at.After(s.now); at = spec.Next(at) {
			want = append(want, at.Unix()-start.Unix())
		}
		require.Equal(t, want, got[sched.Name], sched.Cron)
		total += len(want)
	}
	t.Logf("%d ticks, %d deaths", total, deaths)
}

func TestMisfire(t *testing.T) {
	t.Parallel()
	s := newSimulation(t, "2026-01-01T00:00:00Z")
	start := s.now
	tick := s.ticker("a", 0)
	tick.Install(workers.Only(s.worker(1,
		workers.Schedule{Name: "skip", Cron: "*/10 * * * *", Misfire: workers.MisfireSkip},
		workers.Schedule{Name: "once", Cron: "*/10 * * * *"},
		workers.Schedule{Name: "all", Cron: "*/10 * * * *", Misfire: workers.MisfireAll},
		workers.Schedule{Name: "many", Cron: "* * * * * *", Misfire: workers.MisfireAll})))
	s.settle(tick)
	require.Empty(t, s.take(start))
	s.now = start.Add(34 * time.Minute) // no process was there
	s.settle(tick)
	got := s.take(start)
	require.Empty(t, got["skip"])
	require.Equal(t, []int64{1800}, got["once"])
	require.Equal(t, []int64{600, 1200, 1800}, got["all"])
	require.GreaterOrEqual(t, len(got["many"]), workers.MaxMissed)
	require.LessOrEqual(t, len(got["many"]), workers.MaxMissed+2)
	require.IsIncreasing(t, got["many"])
	s.now = start.Add(40*time.Minute + 20*time.Second) // late, but in time
	s.settle(tick)
	got = s.take(start)
	for _, name := range []string{"skip", "once", "all"} {
		require.Equal(t, []int64{2400}, got[name])
	}
	s.now = start.Add(60*time.Minute + 20*time.Second) // one is missed, one is not
	s.settle(tick)
	got = s.take(start)
	require.Equal(t, []int64{3600}, got["skip"])
	require.Equal(t, []int64{3600}, got["once"])
	require.Equal(t, []int64{3000, 3600}, got["all"])
}

// An owner that has too many events waiting gets no more ticks until it has fewer.
func TestTicksOfAnOwnerThatHasTooMany(t *testing.T) {
	t.Parallel()
	s := newSimulation(t, "2026-01-01T00:00:00Z")
	start := s.now
	tick := s.ticker("a", 0)
	full := true
	tick.full = func(_ context.Context, owner string) bool { return full && owner == "acme" }
	tick.Install(workers.Only(s.worker(1, workers.Schedule{Name: "s", Cron: "* * * * *"})))
	for minute := range 6 {
		full = minute < 3
		s.now = start.Add(time.Duration(minute) * time.Minute)
		s.settle(tick)
	}
	require.Equal(t, map[string][]int64{"s": {180, 240, 300}}, s.take(start))
}

// A paused worker whose ticks are skipped gets none, and none is made up for when it is resumed.
func TestTicksOfAPausedWorker(t *testing.T) {
	t.Parallel()
	s := newSimulation(t, "2026-01-01T00:00:00Z")
	start := s.now
	tick := s.ticker("a", 0)
	tick.Install(workers.Only(s.worker(1,
		workers.Schedule{Name: "s", Cron: "* * * * *", Misfire: workers.MisfireAll})))
	for minute := range 6 {
		s.policy.Paused = nil
		if minute < 3 {
			s.policy.Paused = map[string]workers.Pause{workers.EveryWorker: {SkipTicks: true}}
		}
		s.now = start.Add(time.Duration(minute) * time.Minute)
		s.settle(tick)
	}
	require.Equal(t, map[string][]int64{"s": {180, 240, 300}}, s.take(start))
	require.InDelta(t, 2, testutil.ToFloat64(tick.skipped.WithLabelValues(string(skipPause))), 0, "after the first minute")
}

// Ticks that are left out are counted and logged once, by the process that leaves them out.
func TestSkippedTicks(t *testing.T) {
	t.Parallel()
	s := newSimulation(t, "2026-01-01T00:00:00Z")
	start := s.now
	var log bytes.Buffer
	tick, other := s.ticker("a", 0), s.ticker("b", 0)
	tick.log = zerolog.New(zerolog.SyncWriter(&log))
	full := false
	tick.full = func(context.Context, string) bool { return full }
	in := workers.Only(s.worker(1,
		workers.Schedule{Name: "skip", Cron: "*/10 * * * *", Misfire: workers.MisfireSkip},
		workers.Schedule{Name: "once", Cron: "*/10 * * * *"},
		workers.Schedule{Name: "all", Cron: "*/10 * * * *", Misfire: workers.MisfireAll},
		workers.Schedule{Name: "latest", Cron: "*/10 * * * *", Misfire: workers.MisfireAll, Overlap: events.OverlapReplace},
		workers.Schedule{Name: "forbid", Cron: "*/10 * * * *", Overlap: events.OverlapForbid}))
	counts := func(of *Ticker) (made float64, skipped [3]float64) {
		for i, why := range []skip{skipMisfire, skipOverlap, skipShare} {
			skipped[i] = testutil.ToFloat64(of.skipped.WithLabelValues(string(why)))
		}
		return testutil.ToFloat64(of.ticks), skipped
	}
	tick.Install(in)
	other.Install(in)
	s.settle(tick)
	s.now = start.Add(34 * time.Minute) // no process was there: three ticks are late
	s.settle(tick)
	s.settle(other)
	made, skipped := counts(tick)
	require.Equal(t, [3]float64{3 + 2 + 2, 2, 0}, skipped)
	require.InDelta(t, 0+1+3+1+1, made, 0)
	require.Contains(t, log.String(), `"worker":"acme/w","schedule":"skip","ticks":3,"tick":"2026-01-01T00:30:00Z","message":"ticks are left out: `+
		`no process made them in time, and the schedule's misfire does not make up for them"`)
	s.now = start.Add(40 * time.Minute)
	full = true
	s.settle(tick)
	_, skipped = counts(tick)
	require.Equal(t, [3]float64{7, 2, 5}, skipped)
	require.Contains(t, log.String(), `"schedule":"all","ticks":1,"tick":"2026-01-01T00:40:00Z","message":"ticks are left out: their owner has more events`)
	s.now = start.Add(50 * time.Minute)
	full = false
	s.settle(tick)
	s.settle(other)
	made, skipped = counts(tick)
	require.Equal(t, [3]float64{7, 3, 5}, skipped, "the event of forbid has not ended")
	require.InDelta(t, 6+4, made, 0)
	require.Contains(t, log.String(), `"schedule":"forbid","ticks":1,"tick":"2026-01-01T00:50:00Z","message":"ticks are left out: the event of the one before has not ended"`)
	made, skipped = counts(other)
	require.Zero(t, made)
	require.Zero(t, skipped)
}

func TestForbiddenOverlap(t *testing.T) {
	t.Parallel()
	s := newSimulation(t, "2026-01-01T00:00:00Z")
	start := s.now
	tick := s.ticker("a", 0)
	tick.Install(workers.Only(s.worker(1, workers.Schedule{Name: "f", Cron: "* * * * *", Overlap: events.OverlapForbid})))
	s.settle(tick)
	for minute := range 5 {
		s.now = start.Add(time.Duration(minute+1) * time.Minute)
		s.settle(tick)
	}
	require.Equal(t, map[string][]int64{"f": {60}}, s.take(start), "the first has not ended")
	st, _, err := tick.store.read(t.Context(), "acme", "w", "f")
	require.NoError(t, err)
	require.Equal(t, start.Unix()+300, st.Skipped)
	s.now = start.Add(6 * time.Minute)
	s.settle(tick)
	require.Equal(t, map[string][]int64{"f": {360}}, s.take(start), "it has")
}

// A redeploy loses no tick and doubles none; a change of the expression, and a removal, begin again.
func TestRedeployedSchedules(t *testing.T) {
	t.Parallel()
	s := newSimulation(t, "2026-01-01T00:00:00Z")
	start := s.now
	a, b := s.ticker("a", 0), s.ticker("b", 0)
	hourly := workers.Schedule{Name: "s", Cron: "@hourly", Misfire: workers.MisfireAll}
	first := s.worker(1, hourly)
	a.Install(workers.Only(first))
	b.Install(workers.Only(first))
	s.now = start.Add(time.Hour)
	s.settle(a)
	s.settle(b)
	require.Equal(t, map[string][]int64{"s": {3600}}, s.take(start))
	s.now = start.Add(2*time.Hour + time.Minute) // a tick was missed, and then the worker is deployed again
	second := s.worker(2, hourly)
	b.Install(workers.Only(second))
	s.settle(b)
	s.settle(a) // which does not know it yet
	require.Equal(t, map[string][]int64{"s": {7200}}, s.take(start))
	s.now = start.Add(3 * time.Hour)
	s.settle(a)
	require.Empty(t, s.take(start), "an older version does not tick any more")
	s.settle(b)
	a.Install(workers.Only(second))
	s.settle(a)
	require.Equal(t, map[string][]int64{"s": {3 * 3600}}, s.take(start))

	s.now = start.Add(6*time.Hour + time.Minute)
	third := s.worker(3, workers.Schedule{Name: "s", Cron: "30 * * * *", Misfire: workers.MisfireAll})
	a.Install(workers.Only(third))
	b.Install(workers.Only(third))
	s.settle(a)
	require.Empty(t, s.take(start), "another expression ticks from its deploy on")
	s.now = start.Add(6*time.Hour + 30*time.Minute)
	s.settle(a)
	require.Equal(t, map[string][]int64{"s": {6*3600 + 1800}}, s.take(start))

	a.Remove("acme", "w")
	b.Remove("acme", "w")
	s.now = start.Add(20 * time.Hour)
	s.settle(a)
	s.settle(b)
	require.Empty(t, s.take(start), "a removed worker does not tick")
	s.now = start.Add(25*time.Hour + time.Minute)
	fourth := s.worker(1, third.Schedules...)
	a.Install(workers.Only(fourth))
	s.settle(a)
	require.Empty(t, s.take(start), "nor is made up for what was while it was gone")
	s.now = start.Add(25*time.Hour + 30*time.Minute)
	s.settle(a)
	require.Equal(t, map[string][]int64{"s": {25*3600 + 1800}}, s.take(start))
	s.now = start.Add(30 * time.Hour) // removed and deployed while no process was there
	fresh := s.ticker("c", 0)
	fresh.Install(workers.Only(s.worker(1, third.Schedules...)))
	s.settle(fresh)
	require.Empty(t, s.take(start))
}

// A rollback ticks with the schedules of the older version, and makes up for what was missed as a redeploy does.
func TestSchedulesAfterARollback(t *testing.T) {
	t.Parallel()
	s := newSimulation(t, "2026-01-01T00:00:00Z")
	start := s.now
	tick := s.ticker("a", 0)
	hourly := workers.Schedule{Name: "s", Cron: "@hourly", Misfire: workers.MisfireAll}
	in := workers.Only(s.worker(1, hourly))
	tick.Install(in)
	s.now = start.Add(time.Hour)
	s.settle(tick)
	require.Equal(t, map[string][]int64{"s": {3600}}, s.take(start))
	first, second := in.Versions[0], s.worker(2, hourly)
	first.Version, second.Version = "1-aaaaaaaaaaaa", "2-bbbbbbbbbbbb"
	in.Versions = []*workers.Worker{first, second}
	all := func(w *workers.Worker) []workers.Share { return []workers.Share{{Version: w.Version, Percent: 100}} }
	in.Deployment = workers.Deployment{Number: 2, At: s.now, Split: all(second)}
	tick.Install(in)
	s.now = start.Add(2 * time.Hour)
	s.settle(tick)
	require.Equal(t, map[string][]int64{"s": {7200}}, s.take(start))

	s.now = start.Add(3*time.Hour + time.Minute) // a tick was missed
	in.Deployment = workers.Deployment{Number: 3, At: s.now, Split: all(first)}
	tick.Install(in)
	s.settle(tick)
	require.Equal(t, map[string][]int64{"s": {3 * 3600}}, s.take(start))
	s.now = start.Add(4 * time.Hour)
	s.settle(tick)
	require.Equal(t, map[string][]int64{"s": {4 * 3600}}, s.take(start))

	in.Deployment = workers.Deployment{Number: 4, At: s.now}
	tick.Install(in)
	s.now = start.Add(6 * time.Hour)
	s.settle(tick)
	require.Empty(t, s.take(start), "no version is active")
}
