package consumer

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A lane whose events end at once asks for at most LaneHeld events, and only for as many as are worth a request.
func TestBriefEventsAreHeldBack(t *testing.T) {
	t.Parallel()
	p, l := flowing(64)
	require.Equal(t, 64, p.room(l))
	l.credits = 30
	l.src.flow.held.Store(10)
	require.Equal(t, 24, p.room(l))
	require.False(t, p.full)
	l.credits = 47
	require.Zero(t, p.room(l), "seven are not worth a request")
	require.True(t, p.full)
	l.src.flow.held.Store(0)
	require.Equal(t, 17, p.room(l))

	p.c.cfg.LaneHeld = 0
	require.Equal(t, p.c.cfg.Window, p.room(l), "nothing is held back")
}

// A lane with slow events asks for them until there are too many, which are parked: others wait behind them.
func TestSlowEventsAreNotHeldBack(t *testing.T) {
	t.Parallel()
	p, l := flowing(64)
	l.src.flow.held.Store(64)
	for range 64 {
		l.src.flow.ended(false)
		l.src.flow.ended(true)
	}
	require.Zero(t, p.room(l), "a few slow ones among many are no matter")
	for range 128 {
		l.src.flow.ended(false)
	}
	require.Equal(t, 64, p.room(l), "twice as many as of brief ones")
	l.src.flow.held.Store(128)
	require.Zero(t, p.room(l), "what comes next waits behind those that are parked")
	l.src.flow.held.Store(64)
	for range 256 {
		l.src.flow.ended(true)
	}
	require.Zero(t, p.room(l))
}

// Events that do not end count as slow, too.
func TestStuckEventsAreNotHeldBack(t *testing.T) {
	t.Parallel()
	p, l := flowing(64)
	f := &l.src.flow
	hold(f, 64)
	require.Zero(t, p.room(l))
	p.active.total = stuckAfter - 1
	require.Zero(t, p.room(l))
	p.active.total = stuckAfter
	require.Equal(t, 64, p.room(l))
	f.ended(true)
	require.Zero(t, p.room(l), "one has ended")
	f.leaves(true)
	f.leaves(false)
	p.active.total += stuckAfter
	require.Zero(t, p.room(l), "one has left, and two are not worth a request")
	for range 62 {
		f.ended(true)
	}
	require.Zero(t, p.room(l))
	p.active.total += stuckAfter
	require.Zero(t, p.room(l), "all that is missing is the word of NATS")
	for range 62 {
		f.leaves(true)
	}
	require.Zero(t, f.acking.Load())
	require.Zero(t, f.held.Load())
	require.Equal(t, 64, p.room(l))
	p.active.total += time.Hour
	hold(f, 64)
	require.Zero(t, p.room(l), "they have just come")
}

func hold(f *flow, n int) {
	for range n {
		f.comes()
	}
}

// Events that end late because this process could not run them do not count as slow: it stood still, or the threads
// that run events waited for a processor.
func TestStarvedProcessTakesNobodyForStuck(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	passed := func(delays ...[]time.Duration) time.Duration {
		a := activeTime{}
		now := begin
		a.count(now)
		zero := a.total
		i := 0
		a.delays = func(into []time.Duration) []time.Duration { return append(into, delays[i]...) }
		for i = range delays {
			now = now.Add(activeCheck)
			a.count(now)
		}
		return a.total - zero
	}
	const ms = time.Millisecond
	require.Equal(t, 2*activeCheck, passed([]time.Duration{0, 0}, []time.Duration{0, 0}))
	require.Equal(t, 2*activeCheck-60*ms, passed([]time.Duration{time.Hour, time.Minute},
		[]time.Duration{time.Hour + 60*ms, time.Minute + 70*ms}),
		"all have waited")
	require.Equal(t, 2*activeCheck, passed([]time.Duration{0, 0}, []time.Duration{0, 70 * ms}), "one slept, or ran")
	require.Equal(t, 2*activeCheck, passed([]time.Duration{time.Hour}, []time.Duration{0}), "a thread was replaced")
	require.Equal(t, 2*activeCheck, passed(nil, nil), "it is not known")

	stopped := activeTime{looked: begin}
	stopped.count(begin.Add(10 * time.Second))
	require.Equal(t, activeMost, stopped.total)
	stopped.count(begin.Add(10*time.Second + activeCheck/2 - 1))
	require.Equal(t, activeMost, stopped.total, "it was looked a moment ago")
}

// Large messages come a few at a time: nats-server closes a connection with too much unread data.
func TestLargeMessagesComeAFewAtATime(t *testing.T) {
	t.Parallel()
	p, l := flowing(64)
	for range 100 {
		l.weigh(1 << 10)
	}
	require.Equal(t, 64, p.room(l), "small ones are not bounded by bytes")
	for range 16 { // a reserve of them
		l.weigh(1 << 20)
	}
	require.InDelta(t, laneBytes>>20, p.room(l), 1)
	l.credits = 2
	require.Positive(t, p.room(l))
	l.credits = 3
	require.Zero(t, p.room(l), "more when half of them are there")
	l.credits = 0
	for range 50 {
		l.weigh(60 << 20)
	}
	require.Equal(t, 1, p.room(l), "one may always come")
	for range 2000 {
		l.weigh(1 << 10)
	}
	require.Equal(t, 64, p.room(l), "it is forgotten when small ones come again")
}

// Large messages of all lanes together are limited too, though each lane may have a few. A lane that has none on its
// way may always ask for one.
func TestLargeMessagesOfAllLanesAreBounded(t *testing.T) {
	t.Parallel()
	p, _ := flowing(0)
	for i := range 16 {
		p.lanes = append(p.lanes, newLane(events.StreamEvents, laneName(i), 1000))
	}
	p.expect(1 << 20)
	asked := 0
	for _, l := range p.lanes {
		n := p.room(l)
		require.Positive(t, n)
		l.credits += n
		asked += n
		p.coming = p.onTheirWay()
	}
	require.InDelta(t, allBytes>>20, asked, 8)
	for _, l := range p.lanes {
		require.Zero(t, p.room(l))
	}
	p.lanes[15].credits, p.coming = 0, p.onTheirWay()
	require.Equal(t, 1, p.room(p.lanes[15]))
}

// Their size is known before the first ones come.
func TestSizeOfWaitingEventsIsKnownAtStart(t *testing.T) {
	t.Parallel()
	js, err := jetstream.New(natstest.Connect(t, natstest.Start(t)))
	require.NoError(t, err)
	c := &Consumer{js: js}
	require.Zero(t, c.meanSize(t.Context()), "no stream")
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: events.StreamEvents, Subjects: []string{"x"}})
	require.NoError(t, err)
	require.Zero(t, c.meanSize(t.Context()), "no events")
	for _, n := range []int{100_000, 300_000} {
		_, err = js.Publish(t.Context(), "x", make([]byte, n))
		require.NoError(t, err)
	}
	require.InDelta(t, 200_000, c.meanSize(t.Context()), 1000)
}

func flowing(laneHeld int) (*puller, *lane) {
	cfg := DefaultConfig()
	cfg.Window, cfg.LaneHeld = 128, laneHeld
	return &puller{c: &Consumer{cfg: cfg}}, newLane(events.StreamEvents, laneName(0), 1)
}

// A lane with more messages in the stream than it asked for gets more than the reserve, although it first gets the
// reserve again.
func TestBacklogIsAskedForInLargeRequests(t *testing.T) {
	t.Parallel()
	p, l := flowing(0)
	p.c.cfg.Window, p.lanes = 1024, []*lane{l}
	l.target, l.credits, l.pending = p.reserve(), p.reserve()/2, 1000
	now := time.Now()
	l.asked = now.Add(-time.Second)
	for most := p.c.cfg.Window; l.target < most; {
		was := l.target
		p.raise(l, now)
		require.Equal(t, min(2*was, most), l.target)
		l.credits = p.reserve()
		require.Positive(t, p.more(l, now))
	}
	l.credits, l.pending = p.c.cfg.Window/2+1, 1
	require.Zero(t, p.more(l, now))

	quiet := newLane(events.StreamEvents, laneName(1), p.reserve())
	quiet.asked = now.Add(-time.Second)
	p.raise(quiet, now)
	require.Equal(t, p.reserve(), quiet.target, "an event now and then")
	require.Zero(t, p.more(quiet, now))
}
