package dispatch

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// model is a set of owners that a fairQueue serves, each with events of one cost.
type model struct {
	queue  fairQueue
	owners []*owner
	cost   map[*owner]time.Duration
	got    map[*owner]time.Duration
}

func newModel(t *rapid.T, most int) *model {
	m := &model{cost: make(map[*owner]time.Duration), got: make(map[*owner]time.Duration)}
	for i := range rapid.IntRange(1, most).Draw(t, "owners") {
		warm := threadSet(rapid.Uint64Range(0, 15).Draw(t, "warm"))
		o := modelOwner(i, warm)
		m.owners = append(m.owners, o)
		m.cost[o] = time.Duration(rapid.SampledFrom([]int{2_000, 5_000, 50_000, 400_000, 501_000, 5_000_000, 90_000_000}).
			Draw(t, "cost"))
	}
	return m
}

// modelOwner always has its event at the front of its queue.
func modelOwner(i int, warm threadSet) *owner {
	v := newVersion(&workers.Worker{Version: "1-a"})
	v.warm = warm
	o := &owner{name: fmt.Sprint(i), account: account{credit: quantum, quantum: quantum}}
	o.queue.pushBack(item{event: &lifecycle.Delivery{}, route: &route{split: split{base: v}, versions: []*version{v}}})
	return o
}

// serve lets a thread do what Next does for one owner.
func (m *model) serve(t require.TestingT, thread, waking threadSet, more func(*owner) bool) *owner {
	o := m.queue.pick(thread, waking)
	if o == nil {
		return nil
	}
	require.Positive(t, o.credit)
	require.LessOrEqual(t, o.credit, quantum)
	for spent := time.Duration(0); o.credit > 0 && spent < quantum; spent += m.cost[o] {
		o.credit -= m.cost[o]
		m.got[o] += m.cost[o]
	}
	m.queue.served(o, more(o))
	return o
}

func always(*owner) bool { return true }

// Owners that always have events get the same CPU time whatever each event costs, within two
// quanta and one event of each; warm contexts do not change that.
func TestTurnsShareCPU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, 12)
		for _, o := range m.owners {
			m.queue.enter(o)
		}
		for range rapid.IntRange(1, 2000).Draw(t, "steps") {
			thread := threadSet(1) << rapid.IntRange(0, 3).Draw(t, "thread")
			require.NotNil(t, m.serve(t, thread, 0, always))
			most, least := time.Duration(math.MinInt64), time.Duration(math.MaxInt64) // without, and with, an event
			for _, o := range m.owners {
				most, least = max(most, m.got[o]-m.cost[o]), min(least, m.got[o]+m.cost[o])
			}
			if most-least > 2*quantum { // for any two: require is slow
				require.LessOrEqual(t, most-least, 2*quantum)
			}
		}
	})
}

// While owners enter and leave, one is served whenever one waits, and none waits longer than until
// each of the others got two quanta and one event.
func TestTurnsStarveNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, 12)
		since := make(map[*owner]map[*owner]time.Duration) // of a waiting owner: what the others had when it began
		rounds := make(map[*owner]time.Duration)           // until its debt is paid, and one
		enter := func(o *owner) {
			m.queue.enter(o)
			rounds[o] = 2 + max(0, -o.credit)/quantum
			had := make(map[*owner]time.Duration)
			for _, other := range m.owners {
				had[other] = m.got[other]
			}
			since[o] = had
		}
		for range rapid.IntRange(1, 500).Draw(t, "steps") {
			o := m.owners[rapid.IntRange(0, len(m.owners)-1).Draw(t, "owner")]
			if o.list == nil {
				enter(o)
			}
			thread := threadSet(1) << rapid.IntRange(0, 3).Draw(t, "thread")
			served := m.serve(t, thread, 0, func(*owner) bool { return rapid.Bool().Draw(t, "more") })
			require.NotNil(t, served)
			delete(since, served)
			if served.list != nil {
				m.queue.leave(served) // come back as one that waits from now
				enter(served)
			}
			for waiting, had := range since {
				for _, other := range m.owners {
					require.LessOrEqual(t, m.got[other]-had[other], rounds[waiting]*quantum+m.cost[other])
				}
			}
		}
	})
}

// An owner whose turn it is may be passed over for warm owners only a limited number of times.
func TestTurnsPassOverBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, 12)
		for _, o := range m.owners {
			m.queue.enter(o)
		}
		for range 300 {
			thread := threadSet(1) << rapid.IntRange(0, 3).Draw(t, "thread")
			waking := threadSet(rapid.Uint64Range(0, 15).Draw(t, "waking")) &^ thread
			head := m.queue.next()
			was, left := head.passed, head.leftTo(waking, head.first())
			served := m.serve(t, thread, waking, always)
			if served != head {
				require.Equal(t, was+1, head.passed)
				require.True(t, left || head.passed <= maxPassed, "%d times", head.passed)
			}
		}
	})
}

func TestTurnsPreferWarm(t *testing.T) {
	m := &model{cost: make(map[*owner]time.Duration), got: make(map[*owner]time.Duration)}
	a, b := modelOwner(0, 0b01), modelOwner(1, 0b10)
	m.cost[a], m.cost[b] = quantum, quantum
	m.queue.enter(a)
	m.queue.enter(b)
	require.Equal(t, b, m.serve(t, 0b10, 0, always), "b is warm on the thread that asks")
	require.Equal(t, a, m.serve(t, 0b01, 0, always))

	require.Nil(t, m.queue.pick(0b100, 0b11), "both are left to the warm threads that are waking")
	require.Equal(t, a, m.queue.pick(0b100, 0b10), "no thread is waking for a")
}

// One owner deep in debt costs no counting down of rounds.
func TestTurnsForward(t *testing.T) {
	m := &model{cost: make(map[*owner]time.Duration), got: make(map[*owner]time.Duration)}
	for i := range 3 {
		o := modelOwner(i, 0)
		o.credit = -time.Duration(i+1) * time.Hour
		m.queue.enter(o)
		m.owners = append(m.owners, o)
	}
	require.Equal(t, m.owners[0], m.queue.next())
	require.Equal(t, int64(time.Hour/quantum)+1, m.queue.round)
}

func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []*lifecycle.Delivery
		t.Repeat(map[string]func(*rapid.T){
			"back": func(*rapid.T) {
				e := &lifecycle.Delivery{}
				q.pushBack(item{event: e})
				want = append(want, e)
			},
			"front": func(*rapid.T) {
				e := &lifecycle.Delivery{}
				q.pushFront(item{event: e})
				want = append([]*lifecycle.Delivery{e}, want...)
			},
			"pop": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				require.Same(t, want[0], q.front().event)
				require.Same(t, want[0], q.popFront().event)
				want = want[1:]
			},
			"filter": func(t *rapid.T) {
				drop := make(map[*lifecycle.Delivery]bool)
				var kept []*lifecycle.Delivery
				for _, e := range want {
					if drop[e] = rapid.Bool().Draw(t, "drop"); !drop[e] {
						kept = append(kept, e)
					}
				}
				q.filter(func(it *item) bool { return !drop[it.event] })
				want = kept
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(want), q.n)
				for i, e := range want {
					require.Same(t, e, q.at(i).event)
				}
				held := 0
				for _, it := range q.items {
					if it.event != nil {
						held++
					}
				}
				require.Equal(t, q.n, held, "no event is kept from the garbage collector")
			},
		})
	})
}
