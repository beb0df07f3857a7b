package consumer_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const backlog = 4000

// jam is a fleet in whose only busy lane the events of owner noisy end one after the other, as fast as the test likes.
type jam struct {
	t     *testing.T
	srv   *natsd.Server
	nc    *nats.Conn
	js    jetstream.JetStream
	held  chan *lifecycle.Delivery // noisy's
	flows atomic.Bool              // noisy's events end as they come

	mu  sync.Mutex
	ran map[string][]*lifecycle.Delivery // the others', by body
}

func newJam(t *testing.T) *jam {
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	return &jam{t: t, srv: srv, nc: nc, js: jetStream(t, nc), held: make(chan *lifecycle.Delivery, 2*backlog),
		ran: map[string][]*lifecycle.Delivery{}}
}

func (j *jam) handle(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
	if e.Owner == "noisy" {
		if j.flows.Load() {
			return ack(e)
		}
		j.held <- e
		return lifecycle.Settlement{}, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ran[string(e.Body)] = append(j.ran[string(e.Body)], e)
	return ack(e)
}

// runs is how often the event with this body ran.
func (j *jam) runs(body string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.ran[body])
}

// fill stores noisy's backlog.
func (j *jam) fill(n int) {
	j.t.Helper()
	for i := range n {
		_, err := j.js.PublishAsync(subjects.Event(events.Task, "noisy", "w"), nil)
		require.NoError(j.t, err)
		if i%1000 == 999 || i == n-1 { // a slow server would fall behind by more than the client takes
			j.published()
		}
	}
}

// published waits until what was published is stored.
func (j *jam) published() {
	j.t.Helper()
	select {
	case <-j.js.PublishAsyncComplete():
	case <-time.After(patience):
		j.t.Fatal("the backlog could not be stored")
	}
}

// dripUntil lets some events of noisy end every few milliseconds until the condition holds. That must be before the
// backlog is over.
func (j *jam) dripUntil(d *dispatcher, what string, so func() bool) {
	j.t.Helper()
	const some = 16
	tick := time.NewTicker(some * patience / backlog)
	defer tick.Stop()
	for n := 0; !so(); n += some {
		require.Less(j.t, n, backlog/2, "%s while most of the backlog is still there", what)
		<-tick.C
		var done []lifecycle.Settlement
		for range some {
			s, _ := ack(<-j.held)
			done = append(done, s)
		}
		d.settle(done)
	}
}

// flow lets all of noisy's events end.
func (j *jam) flow(d *dispatcher) {
	j.flows.Store(true)
	for {
		select {
		case e := <-j.held:
			s, _ := ack(e)
			d.settle([]lifecycle.Settlement{s})
		case <-time.After(10 * time.Millisecond):
			if stored(j.t, j.js, events.StreamEvents) == 0 {
				return
			}
		}
	}
}

// mate is an owner in noisy's lane.
func mate(i int) string {
	lane := func(owner string) uint32 { // as JetStream computes it
		h := fnv.New32a()
		_, _ = h.Write([]byte(owner))
		return h.Sum32() % events.Lanes
	}
	for n := 0; ; n++ {
		if owner := fmt.Sprintf("quiet%d", n); lane(owner) == lane("noisy") {
			if i == 0 {
				return owner
			}
			i--
		}
	}
}

// An owner with a few events does not wait for the backlog of another one in its lane, and its events run once. Those
// that must not leave their stream wait.
func TestFewOvertakeABacklog(t *testing.T) {
	t.Parallel()
	j := newJam(t)
	cfg := testConfig()
	cfg.Overtake = 640
	start(t, natstest.Connect(t, j.srv), cfg, &dispatcher{forget: true, handle: j.handle}).stop() // has made the streams
	j.fill(backlog)
	stay := []uint64{
		publish(t, j.nc, events.Task, mate(0), nats.Header{"Content-Type": {"application/json"}}, "no JSON"),
		publish(t, j.nc, events.Task, mate(0), nats.Header{"Deliver-After": {"10ms"}}, "later"),
	}
	for i := range 3 {
		publish(t, j.nc, events.Task, mate(i), nil, fmt.Sprint("few ", i))
	}
	for range 30 { // more than a 64th of 640
		publish(t, j.nc, events.Task, mate(3), nil, "many")
	}
	d := &dispatcher{forget: true, handle: j.handle} // looks at the lane when all of that is in it
	start(t, natstest.Connect(t, j.srv), cfg, d)
	j.dripUntil(d, "three owners' events run", func() bool { return j.runs("few 0")+j.runs("few 1")+j.runs("few 2") == 3 })
	s, err := j.js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	for _, seq := range stay {
		_, err := s.GetMsg(t.Context(), seq)
		require.NoError(t, err)
	}
	require.Zero(t, j.runs("later"))
	require.Zero(t, j.runs("many"), "that owner has a backlog itself")
	j.flow(d)
	require.Eventually(t, func() bool { return j.runs("later") == 1 }, patience, time.Millisecond)
	eventuallyStored(t, j.js, events.StreamParked, 0)
	eventuallyStored(t, j.js, events.StreamDead, 1)
	require.Equal(t, 30, j.runs("many"))
	for i := range 3 {
		ran := j.ran[fmt.Sprint("few ", i)]
		require.Len(t, ran, 1)
		require.Equal(t, []any{mate(i), 1, events.StreamParked}, []any{ran[0].Owner, ran[0].Attempt, ran[0].Origin.Stream})
	}
}

// An owner that stores events for very many workers that do not exist does not keep others from overtaking, and is
// counted rarely.
func TestFewOvertakeAFloodOfSubjects(t *testing.T) {
	t.Parallel()
	j := newJam(t)
	cfg := testConfig()
	cfg.Overtake = 640
	d := &dispatcher{forget: true, handle: j.handle}
	f := start(t, natstest.Connect(t, j.srv), cfg, d)
	for _, owner := range []string{"noisy", mate(0), mate(1)} {
		f.catalog.Install(workers.Only(&workers.Worker{Owner: owner, Name: "w"}))
	}
	for i := range 20_000 {
		_, err := j.js.PublishAsync(fmt.Sprintf("%sx%d", subjects.Event(events.Task, "noisy", "w"), i), nil)
		require.NoError(t, err)
		if i%1000 == 999 {
			j.published()
		}
	}
	var named, counted atomic.Int64 // answers that name subjects, and that only count noisy's
	spy := natstest.Connect(t, j.srv)
	_, err := spy.Subscribe("$JS.API.STREAM.INFO."+events.StreamEvents, func(m *nats.Msg) {
		var ask struct {
			Filter string `json:"subjects_filter"`
			Offset int
		}
		if json.Unmarshal(m.Data, &ask) != nil || !strings.HasSuffix(ask.Filter, ".*") {
			if ask.Filter == subjects.Lane(events.LaneOf("noisy")) {
				named.Add(1)
			}
		} else if strings.Contains(ask.Filter, "noisy") && ask.Offset == 0 {
			named.Add(1)
		} else if strings.Contains(ask.Filter, "noisy") {
			counted.Add(1)
		}
	})
	require.NoError(t, err)
	require.NoError(t, spy.Flush())
	publish(t, j.nc, events.Task, mate(0), nil, "few 0")
	publish(t, j.nc, events.Task, mate(1), sayings(1, "noisy"), "few 1")
	j.dripUntil(d, "both owners' events run", func() bool { return j.runs("few 0")+j.runs("few 1") == 2 })
	require.LessOrEqual(t, named.Load(), int64(1), "a look that began before")
	require.LessOrEqual(t, counted.Load(), int64(1))
	require.Equal(t, []any{mate(1), events.StreamParked}, []any{j.ran["few 1"][0].Owner, j.ran["few 1"][0].Origin.Stream})
}

// A process dies after it parked a copy and before it deleted the event in the lane. Another process completes that,
// and the event runs once.
func TestOvertakingIsGoneOnWith(t *testing.T) {
	t.Parallel()
	j := newJam(t)
	cfg := testConfig()
	cfg.Overtake, cfg.AckWait = 640, 10*time.Second // so long the events of the dead process wait
	doomed := natstest.Connect(t, j.srv)
	dying := cfg
	died := make(chan struct{})
	dying.Step = func(s consumer.Step) {
		if s == consumer.StepOvertaken {
			doomed.Close()
			close(died)
		}
	}
	first := &dispatcher{forget: true, handle: j.handle}
	start(t, doomed, dying, first)
	j.fill(backlog)
	seq := publish(t, j.nc, events.Task, mate(0), sayings(1, "noisy"), "few")
	j.dripUntil(first, "the process dies", func() bool {
		select {
		case <-died:
			return true
		default:
			return false
		}
	})
	for len(j.held) > 0 {
		<-j.held
	}
	s, err := j.js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	_, err = s.GetMsg(t.Context(), seq)
	require.NoError(t, err, "it is in its lane")
	require.Equal(t, 1, stored(t, j.js, events.StreamParked), "and among the parked")

	second := &dispatcher{forget: true, handle: j.handle}
	start(t, natstest.Connect(t, j.srv), cfg, second)
	j.dripUntil(second, "it is deleted in its lane", func() bool {
		_, err := s.GetMsg(t.Context(), seq)
		return err != nil
	})
	j.flow(second)
	eventuallyStored(t, j.js, events.StreamParked, 0)
	require.Equal(t, 1, j.runs("few"))
}

// Three processes bring events past a backlog that they park meanwhile. Each event ends, and leaves nothing.
func TestOvertakingLosesNothing(t *testing.T) {
	t.Parallel()
	const mates, each = 20, 10
	j := newJam(t)
	cfg := testConfig()
	cfg.Overtake = 640
	handle := func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Owner == "noisy" && !e.Parked {
			time.Sleep(100 * time.Millisecond)
			return park(e)
		}
		return j.handle(e)
	}
	j.flows.Store(true)
	start(t, natstest.Connect(t, j.srv), cfg, &dispatcher{forget: true, handle: handle}).stop() // the streams are there
	j.fill(2 * backlog)
	for i := range mates * each {
		var said nats.Header
		if i%2 == 1 { // that it is the one before
			said = sayings(uint64(2*backlog+i), mate((i-1)%mates))
		}
		publish(t, j.nc, events.Task, mate(i%mates), said, fmt.Sprint(i))
	}
	var fleets []*fleet
	for range 3 {
		fleets = append(fleets, start(t, natstest.Connect(t, j.srv), cfg, &dispatcher{forget: true, handle: handle}))
	}
	eventuallyStored(t, j.js, events.StreamEvents, 0)
	require.Eventually(t, func() bool {
		for _, f := range fleets {
			f.Room("noisy", 64)
		}
		return stored(t, j.js, events.StreamParked) == 0
	}, patience, 10*time.Millisecond)
	brought, again := 0, 0
	for i := range mates * each {
		ran := j.ran[fmt.Sprint(i)]
		require.NotEmpty(t, ran, "event %d", i)
		again += len(ran) - 1
		if ran[0].Origin.Stream == events.StreamParked {
			brought++
		}
	}
	t.Logf("%d of %d events were brought past the backlog; %d ran again", brought, mates*each, again)
	require.Positive(t, brought)
}
