package dispatch

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// limitedTo is a worker of which so many events may run at once.
func limitedTo(n int, owner, name string) workers.Installation {
	w := worker(owner, name)
	w.Concurrency, w.Hash = n, fmt.Sprint(n)
	return workers.Only(w)
}

// starts has a thread start all it may, and returns the IDs of the events with their workers.
func starts(d *Dispatcher, thread int) (list []*lifecycle.Attempt, names []string) {
	for {
		batch := d.Next(thread, 100)
		if len(batch) == 0 {
			return list, names
		}
		for _, a := range batch {
			list, names = append(list, a), append(names, a.Event.Worker+a.Event.ID)
		}
	}
}

func ends(d *Dispatcher, thread int, list ...*lifecycle.Attempt) {
	for _, a := range list {
		d.Report(thread, []lifecycle.Report{done(a, time.Millisecond)})
	}
}

// As many events of a worker run at once as it allows. Others of its owner go past those that wait, and those that wait
// keep their order.
func TestConcurrencyOfAWorker(t *testing.T) {
	t.Parallel()
	d, _ := newDispatcher(t, Config{Threads: 1, Slots: 100})
	d.Install(limitedTo(2, "acme", "slow"))
	d.Install(limitedTo(0, "acme", "free"))
	d.Submit(tasks("acme", "slow", 5))
	d.Submit(tasks("acme", "free", 3))
	first, names := starts(d, 0)
	require.Equal(t, []string{"slow0", "slow1", "free0", "free1", "free2"}, names)
	require.Equal(t, 3, d.Figures().Stats().Queued)
	d.Submit(tasks("acme", "free", 1))
	ends(d, 0, first[0])
	second, names := starts(d, 0)
	require.Equal(t, []string{"slow2", "free0"}, names, "the older one goes first")
	ends(d, 0, first[1], second[0])
	_, names = starts(d, 0)
	require.Equal(t, []string{"slow3", "slow4"}, names)
}

// Events that wait for their worker take room of their owner, and are parked beyond it.
func TestWaitingForAWorkerTakesRoomOfItsOwner(t *testing.T) {
	t.Parallel()
	d, l := newDispatcher(t, Config{Threads: 1, Slots: 100, OwnerMaxQueued: 10})
	d.Install(limitedTo(1, "acme", "slow"))
	d.Submit(tasks("acme", "slow", 12))
	parked := 0
	for _, s := range l.take() {
		require.Equal(t, lifecycle.Park, s.Order)
		parked++
	}
	require.Equal(t, 2, parked)
	require.Equal(t, 10, d.Figures().BusyOwners()[0].Queued)
}

// A retry waits before all others of its worker, and takes no more than the limit either.
func TestRetryOfALimitedWorker(t *testing.T) {
	t.Parallel()
	d, _ := newDispatcher(t, Config{Threads: 1, Slots: 100})
	d.Install(limitedTo(1, "acme", "slow"))
	d.Submit(tasks("acme", "slow", 3))
	first, _ := starts(d, 0)
	again := task("acme", "slow", 9)
	again.Attempt = 2
	d.Submit([]*lifecycle.Delivery{again})
	ends(d, 0, first...)
	_, names := starts(d, 0)
	require.Len(t, names, 1)
	back, _ := starts(d, 0)
	require.Empty(t, back)
}

// A limit that is lowered holds for the next event; one that is raised or removed lets those start that wait.
func TestLimitThatChanges(t *testing.T) {
	t.Parallel()
	d, _ := newDispatcher(t, Config{Threads: 1, Slots: 100})
	d.Install(limitedTo(0, "acme", "w"))
	d.Submit(tasks("acme", "w", 4))
	running, _ := starts(d, 0)
	require.Len(t, running, 4)
	d.Submit(tasks("acme", "w", 6))
	d.Install(limitedTo(2, "acme", "w"))
	more, _ := starts(d, 0)
	require.Empty(t, more, "four run")
	ends(d, 0, running[:3]...)
	more, _ = starts(d, 0)
	require.Len(t, more, 1)
	d.Install(limitedTo(4, "acme", "w"))
	more, _ = starts(d, 0)
	require.Len(t, more, 2)
	d.Install(limitedTo(0, "acme", "w"))
	more, _ = starts(d, 0)
	require.Len(t, more, 3)
}

// In a split, the lower limit holds for both versions.
func TestConcurrencyOfASplit(t *testing.T) {
	t.Parallel()
	d, _ := newDispatcher(t, Config{Threads: 1, Slots: 100})
	base, next := worker("acme", "w"), worker("acme", "w")
	base.Concurrency, next.Concurrency = 5, 3
	next.Number, next.Version = 2, "2-def"
	d.Install(workers.Installation{Owner: "acme", Name: "w", Versions: []*workers.Worker{base, next},
		Deployment: workers.Deployment{
			Number: 2, Split: []workers.Share{{Version: base.Version, Percent: 50}, {Version: next.Version, Percent: 50}},
		}})
	d.Submit(tasks("acme", "w", 20))
	running, _ := starts(d, 0)
	require.Len(t, running, 3)
}

// Events that wait for a worker that is removed fail. One that is installed again counts those that still run.
func TestLimitedWorkerThatIsRemoved(t *testing.T) {
	t.Parallel()
	d, l := newDispatcher(t, Config{Threads: 1, Slots: 100})
	d.Install(limitedTo(2, "acme", "w"))
	d.Submit(tasks("acme", "w", 5))
	running, _ := starts(d, 0)
	require.Len(t, running, 2)
	d.Remove("acme", "w")
	more, _ := starts(d, 0)
	require.Empty(t, more)
	settled := l.take()
	require.Len(t, settled, 3)
	for _, s := range settled {
		require.Equal(t, events.ReasonNoWorker, s.Outcome.Failure.Reason)
	}
	d.Install(limitedTo(2, "acme", "w"))
	d.Submit(tasks("acme", "w", 5))
	more, _ = starts(d, 0)
	require.Empty(t, more, "two of before run")
	ends(d, 0, running...)
	more, _ = starts(d, 0)
	require.Len(t, more, 2)
}

// Deadlines pass while events wait for their worker, and a process that drains gives them back.
func TestWaitingForAWorkerEnds(t *testing.T) {
	t.Parallel()
	d, l := newDispatcher(t, Config{Threads: 1, Slots: 100})
	d.Install(limitedTo(1, "acme", "w"))
	batch := tasks("acme", "w", 4)
	batch[2].Deadline = time.Now().Add(time.Hour)
	d.Submit(batch)
	running, _ := starts(d, 0)
	require.Len(t, running, 1)
	d.lockedAt(time.Now().Add(2*time.Hour), d.expire)
	settled := l.take()
	require.Len(t, settled, 1)
	require.Same(t, batch[2], settled[0].Event)
	require.Equal(t, 2, d.Figures().Stats().Queued)
	d.Drain()
	for _, s := range l.take() {
		require.Equal(t, lifecycle.Return, s.Order)
	}
	require.Zero(t, d.Figures().Stats().Queued)
	ends(d, 0, running...)
}

// The processes of a fleet share a limit.
func TestConcurrencyIsSharedByProcesses(t *testing.T) {
	t.Parallel()
	d, _ := newDispatcher(t, Config{Threads: 1, Slots: 100})
	d.Install(limitedTo(7, "acme", "w"))
	d.SetProcesses(3)
	d.Submit(tasks("acme", "w", 10))
	running, _ := starts(d, 0)
	require.Len(t, running, 2)
	d.SetProcesses(2)
	more, _ := starts(d, 0)
	require.Len(t, more, 1)
}

// desk is Leases that records the calls.
type desk struct {
	Lessee
	mu    sync.Mutex
	calls []string
}

func (k *desk) add(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, fmt.Sprintf(format, args...))
}

func (k *desk) take() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	calls := k.calls
	k.calls = nil
	return calls
}

func (k *desk) Want(owner, worker string)              { k.add("want %s/%s", owner, worker) }
func (k *desk) Idle(owner, worker string, term uint64) { k.add("idle %s/%s %d", owner, worker, term) }
func (k *desk) GivenBack(owner, worker string, term uint64) {
	k.add("back %s/%s %d", owner, worker, term)
}

// withLeases is a dispatcher with a worker that needs a lease.
func withLeases(t *testing.T) (*Dispatcher, *ledger, *desk) {
	d, l := newDispatcher(t, Config{Threads: 1, Slots: 100})
	k := &desk{}
	k.Lessee = d.SetLeases(k)
	d.Install(limitedTo(1, "acme", "one"))
	return d, l, k
}

// An event of a worker with an exact limit waits for the lease. The process that has it runs one after another.
func TestLeaseIsWantedAndGranted(t *testing.T) {
	t.Parallel()
	d, _, k := withLeases(t)
	require.Empty(t, k.take(), "no event needs it")
	d.Submit(tasks("acme", "one", 3))
	require.Equal(t, []string{"want acme/one"}, k.take())
	running, _ := starts(d, 0)
	require.Empty(t, running)
	require.True(t, k.Grant("acme", "one", 7))
	for range 3 {
		running, _ = starts(d, 0)
		require.Len(t, running, 1)
		ends(d, 0, running...)
	}
	require.Equal(t, []string{"idle acme/one 7"}, k.take())
	d.Submit(tasks("acme", "one", 1))
	running, _ = starts(d, 0)
	require.Len(t, running, 1, "it still has the lease")
}

// What Withdraw takes is given back when the run has ended, and wanted again for those that wait.
func TestLeaseIsWithdrawn(t *testing.T) {
	t.Parallel()
	d, _, k := withLeases(t)
	d.Submit(tasks("acme", "one", 2))
	require.True(t, k.Grant("acme", "one", 7))
	running, _ := starts(d, 0)
	k.take()
	require.False(t, k.Withdraw("acme", "one", 7, true), "it is not idle")
	require.False(t, k.Withdraw("acme", "one", 7, false))
	require.Empty(t, k.take())
	ends(d, 0, running...)
	require.Equal(t, []string{"back acme/one 7", "want acme/one"}, k.take())
	running, _ = starts(d, 0)
	require.Empty(t, running)
	require.True(t, k.Grant("acme", "one", 8))
	running, _ = starts(d, 0)
	ends(d, 0, running...)
	require.True(t, k.Withdraw("acme", "one", 8, true))
	require.True(t, k.Withdraw("acme", "one", 8, false), "it is gone")
}

// A grant that comes too late is refused.
func TestGrantThatNothingNeeds(t *testing.T) {
	t.Parallel()
	d, l, k := withLeases(t)
	batch := tasks("acme", "one", 1)
	batch[0].Deadline = time.Now().Add(time.Hour)
	d.Submit(batch)
	require.Equal(t, []string{"want acme/one"}, k.take())
	d.lockedAt(time.Now().Add(2*time.Hour), d.expire)
	require.Len(t, l.take(), 1)
	require.False(t, k.Grant("acme", "one", 7))
	require.False(t, k.Grant("acme", "two", 7))
	d.Submit(tasks("acme", "one", 1))
	require.Equal(t, []string{"want acme/one"}, k.take(), "it is wanted anew")
}

// A lease that lapses halts its runs.
func TestLeaseThatLapses(t *testing.T) {
	t.Parallel()
	d, _, k := withLeases(t)
	d.Submit(tasks("acme", "one", 2))
	require.True(t, k.Grant("acme", "one", 7))
	running, _ := starts(d, 0)
	k.take()
	require.False(t, running[0].Halt.Fired())
	k.Lapse("acme", "one", 6)
	require.False(t, running[0].Halt.Fired(), "that was an earlier one")
	k.Lapse("acme", "one", 7)
	require.True(t, running[0].Halt.Fired())
	require.Equal(t, []string{"want acme/one"}, k.take())
	require.True(t, k.Grant("acme", "one", 9))
	more, _ := starts(d, 0)
	require.Empty(t, more, "the halted one still runs")
	ends(d, 0, running...)
	more, _ = starts(d, 0)
	require.Len(t, more, 1)
}

// An event during whose run a process died needs the lease as well.
func TestSuspectOfAWorkerWithALease(t *testing.T) {
	t.Parallel()
	d, l, k := withLeases(t)
	e := task("acme", "one", 1)
	e.Attempt, e.Crashes = 2, 1
	d.Submit([]*lifecycle.Delivery{e})
	require.Equal(t, []string{"want acme/one"}, k.take())
	require.Empty(t, l.take(), "it is not recorded before it can run")
	require.True(t, k.Grant("acme", "one", 7))
	settled := l.take()
	require.Len(t, settled, 1)
	require.Equal(t, lifecycle.Watch, settled[0].Order)
	require.True(t, k.Withdraw("acme", "one", 7, true))
	k.take()
	e.Watched = true
	d.Submit([]*lifecycle.Delivery{e})
	require.Equal(t, []string{"want acme/one"}, k.take(), "another process had it meanwhile")
	running, _ := starts(d, 0)
	require.Empty(t, running)
	require.True(t, k.Grant("acme", "one", 8))
	running, _ = starts(d, 0)
	require.Len(t, running, 1)
	ends(d, 0, running...)
}

// Events that wait for a place are inserted by age, but at most maxOvertaken from the front.
func TestInsertByAge(t *testing.T) {
	t.Parallel()
	at := func(n int) item {
		return item{event: &lifecycle.Delivery{Event: events.Event{ID: fmt.Sprint(n)}}, since: time.Unix(int64(n), 0)}
	}
	var q queue
	for i := range 5 {
		q.pushBack(at(10 * i))
	}
	for _, n := range []int{25, 0, -5, 99} {
		q.insert(at(n))
	}
	var ids []string
	for q.n > 0 {
		ids = append(ids, q.popFront().event.ID)
	}
	require.Equal(t, []string{"-5", "0", "0", "10", "20", "25", "30", "40", "99"}, ids)
	for i := range 2 * maxOvertaken {
		q.pushBack(at(i))
	}
	q.insert(at(1000))
	for range maxOvertaken {
		q.popFront()
	}
	require.Equal(t, "1000", q.front().event.ID)
}

// What a limit holds back here is what waits of the worker, wherever: those with most of it first.
func TestLimitsOfWorkersAreListed(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1, OwnerMaxRunning: 20})
	d.Install(limitedTo(2, "o", "some"))
	d.Install(limitedTo(1, "p", "many"))
	d.Install(limitedTo(3, "q", "none"))
	d.Install(workers.Only(worker("o", "free")))
	d.Submit(tasks("o", "some", 5))
	d.Submit(tasks("p", "many", 9))
	d.Submit(tasks("o", "free", 20))
	require.Equal(t, []LimitStats{{"p", "many", 1, 9, 0}, {"o", "some", 2, 5, 0}}, d.Figures().Limited(9))
	running, _ := starts(d, 0)
	require.Equal(t, []LimitStats{{"p", "many", 1, 8, 1}, {"o", "some", 2, 3, 2}}, d.Figures().Limited(9))
	require.Len(t, d.Figures().Limited(1), 1)
	ends(d, 0, running...)
}
