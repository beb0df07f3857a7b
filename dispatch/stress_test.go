package dispatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const stressLimit = 5

// fleet plays consumer and threads with goroutines. A thread blocks on its wake channel only, so a
// lost wake-up is a test that never ends.
type fleet struct {
	d       *Dispatcher
	wake    map[int]chan struct{}
	running map[string]*atomic.Int64
	poolOf  map[string]*atomic.Int64
	cells   []*cell // by the number of their pools

	mu     sync.Mutex
	finals map[*lifecycle.Delivery]int
	parked map[string][]*lifecycle.Delivery
	room   map[string]int
	left   int
	done   chan struct{}
	faults []string
}

// cell is the process of a pool: it holds the attempts of its threads. Pool 0 has one that does not end.
type cell struct {
	mu      sync.RWMutex // held for writing while it ends
	threads []cellThread
}

type cellThread struct {
	held   []*lifecycle.Attempt
	asleep bool // it has to be woken first
}

func newFleet(t *testing.T, pools, threads, owners, queued int) *fleet {
	f := &fleet{
		wake: make(map[int]chan struct{}), running: make(map[string]*atomic.Int64), poolOf: make(map[string]*atomic.Int64),
		done:   make(chan struct{}),
		finals: make(map[*lifecycle.Delivery]int), parked: make(map[string][]*lifecycle.Delivery), room: make(map[string]int),
	}
	d, err := New(Config{Threads: threads, Slots: 8, OwnerMaxRunning: stressLimit, OwnerMaxQueued: queued,
		PoolOf: func(owner string) int { return int(f.poolOf[owner].Load()) }}, zerolog.Nop(), prometheus.NewRegistry())
	require.NoError(t, err)
	f.d = d
	for pool := range pools {
		f.cells = append(f.cells, &cell{threads: make([]cellThread, threads)})
		for index := range threads {
			f.wake[ThreadOf(pool, index)] = make(chan struct{}, 1)
			f.cells[pool].threads[index].asleep = pool > 0
		}
	}
	for i := range owners {
		owner := fmt.Sprint("owner", i)
		f.running[owner], f.poolOf[owner] = &atomic.Int64{}, &atomic.Int64{}
		f.poolOf[owner].Store(int64(i % pools))
		d.Install(workers.Only(worker(owner, "w")))
		d.Install(workers.Only(worker(owner, "v")))
	}
	d.Wire(f, f)
	return f
}

func (f *fleet) Wake(thread int) {
	select {
	case f.wake[thread] <- struct{}{}:
	default:
	}
}

func (f *fleet) CloseContexts(int, *workers.Worker) {}

func (f *fleet) Cancel(*lifecycle.Delivery) {}

func (f *fleet) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

func (f *fleet) Settle(batch []lifecycle.Settlement) {
	var again []*lifecycle.Delivery
	f.mu.Lock()
	for _, s := range batch {
		switch s.Outcome.Verdict {
		case lifecycle.Ack, lifecycle.Dead:
			f.finals[s.Event]++
			if f.left--; f.left == 0 {
				close(f.done)
			}
		case lifecycle.Retry:
			s.Event.Attempt++
			again = append(again, s.Event)
		}
		if s.Order == lifecycle.Park {
			f.parked[s.Event.Owner] = append(f.parked[s.Event.Owner], s.Event)
		}
	}
	f.mu.Unlock()
	f.d.Submit(again)
}

func (f *fleet) Room(owner string, n int) {
	f.mu.Lock()
	f.room[owner] = n
	batch := f.unpark(owner)
	f.mu.Unlock()
	f.d.Submit(batch)
}

// unpark takes what there is room for. d.mu must be held.
func (f *fleet) unpark(owner string) []*lifecycle.Delivery {
	batch := f.parked[owner]
	n := min(f.room[owner], len(batch))
	f.parked[owner] = batch[n:]
	f.room[owner] -= n
	for _, e := range batch[:n] {
		e.Parked = true
	}
	return batch[:n:n]
}

// look brings back parked events a few at a time, as the consumer does when no room is reported.
func (f *fleet) look(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		for owner := range f.running {
			f.mu.Lock()
			f.room[owner] = max(1, f.room[owner])
			batch := f.unpark(owner)
			f.mu.Unlock()
			f.d.Submit(batch)
		}
	}
}

// run is one thread: it holds attempts for a while, as if they waited for I/O.
func (f *fleet) run(ctx context.Context, thread int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(thread)))
	pool, index := PoolOfThread(thread)
	for ctx.Err() == nil {
		c := f.cells[pool]
		c.mu.RLock()
		asleep := f.turn(thread, &c.threads[index], rng)
		c.mu.RUnlock()
		if !asleep {
			continue
		}
		select {
		case <-f.wake[thread]:
			c.mu.RLock() // only endCell changes it beside this goroutine
			c.threads[index].asleep = false
			c.mu.RUnlock()
		case <-ctx.Done():
		}
	}
}

// turn has a thread take events and end some. It returns true if the thread has nothing to do until it is woken.
func (f *fleet) turn(thread int, t *cellThread, rng *rand.Rand) (asleep bool) {
	if t.asleep {
		return true
	}
	free := 8 - len(t.held)
	batch := f.d.Next(thread, free)
	if len(batch) > free {
		f.fault("thread %d asked for %d and got %d", thread, free, len(batch))
	}
	for _, a := range batch {
		if n := f.running[a.Event.Owner].Add(1); n > stressLimit {
			f.fault("%d of %s run", n, a.Event.Owner)
		}
		if pool, _ := PoolOfThread(thread); a.Slot.(*run).pool.number != pool {
			f.fault("an event of pool %d starts on thread %d", a.Slot.(*run).pool.number, thread)
		}
	}
	t.held = append(t.held, batch...)
	if t.asleep = len(t.held) == 0; t.asleep {
		return true
	}
	rng.Shuffle(len(t.held), func(i, j int) { t.held[i], t.held[j] = t.held[j], t.held[i] })
	n := 1 + rng.IntN(len(t.held))
	var reports []lifecycle.Report
	for _, a := range t.held[:n] {
		reports = f.end(rng, a, reports)
	}
	t.held = append(t.held[:0:0], t.held[n:]...)
	f.d.Report(thread, reports)
	return false
}

// disturb moves owners between pools and ends the processes of pools, until ctx is done.
func (f *fleet) disturb(ctx context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		owner := fmt.Sprint("owner", rng.IntN(len(f.poolOf)))
		f.poolOf[owner].Store(int64(rng.IntN(len(f.cells))))
		f.d.PolicySet(owner)
		if pool := rng.IntN(8 * len(f.cells)); pool > 0 && pool < len(f.cells) {
			f.endCell(rng, pool)
		}
	}
}

// endCell ends the process of a pool. Its threads call Next again when they are woken.
func (f *fleet) endCell(rng *rand.Rand, pool int) {
	c := f.cells[pool]
	c.mu.Lock()
	defer c.mu.Unlock()
	for index := range c.threads {
		t := &c.threads[index]
		var reports []lifecycle.Report
		for _, a := range t.held {
			f.running[a.Event.Owner].Add(-1)
			end := &lifecycle.End{Started: rng.IntN(2) == 0, Interrupted: true}
			reports = append(reports, lifecycle.Report{Attempt: a, End: end})
		}
		t.held, t.asleep = nil, true
		f.d.Report(ThreadOf(pool, index), reports)
	}
	for index := range c.threads {
		select {
		case <-f.wake[ThreadOf(pool, index)]: // it was for the process that has ended
		default:
		}
	}
	f.d.PoolEnded(pool)
}

func (f *fleet) end(rng *rand.Rand, a *lifecycle.Attempt, reports []lifecycle.Report) []lifecycle.Report {
	f.running[a.Event.Owner].Add(-1)
	cpu := time.Duration(rng.IntN(600_000))
	switch rng.IntN(12) {
	case 0:
		return append(reports, notStarted(a))
	case 1:
		return append(reports, lifecycle.Report{Attempt: a, End: &lifecycle.End{Started: true, Interrupted: true, CPU: cpu}})
	case 2:
		return append(reports,
			lifecycle.Report{Attempt: a, End: &lifecycle.End{Started: true, CPU: cpu,
				Failure: events.Fail(events.ReasonException, "x")}})
	case 3:
		return append(reports, lifecycle.Report{Attempt: a, End: &lifecycle.End{Started: true, CPU: cpu, Retry: true}})
	case 4:
		return append(reports, lifecycle.Report{Attempt: a, Reply: &events.Reply{}},
			lifecycle.Report{Attempt: a, End: &lifecycle.End{Started: true, CPU: cpu}})
	}
	return append(reports, done(a, cpu))
}

func TestStress(t *testing.T) {
	t.Run("parking", func(t *testing.T) { stress(t, 1, 4, 40) })
	t.Run("without", func(t *testing.T) { stress(t, 1, 4, 100_000) })
	t.Run("pools", func(t *testing.T) { stress(t, 3, 2, 100_000) })
	t.Run("pools, parking", func(t *testing.T) { stress(t, 3, 2, 40) })
}

func stress(t *testing.T, pools, threads, queued int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const owners, submitters, each = 9, 3, 7000
	f := newFleet(t, pools, threads, owners, queued)
	f.left = submitters * each
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.d.Run(ctx) })
	if queued < 1000 { // else it would hide lost wake-ups
		wg.Go(func() { f.look(ctx) })
	}
	for thread := range f.wake {
		wg.Go(func() { f.run(ctx, thread, seed) })
	}
	if pools > 1 {
		wg.Go(func() { f.disturb(ctx, seed) })
	}
	for s := range submitters {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(100+s)))
			for sent := 0; sent < each; {
				n := min(1+rng.IntN(20), each-sent)
				batch := make([]*lifecycle.Delivery, n)
				for i := range batch {
					owner := fmt.Sprint("owner", min(rng.IntN(owners), rng.IntN(owners)))
					batch[i] = task(owner, []string{"w", "v"}[rng.IntN(2)], sent+i)
				}
				f.d.Submit(batch)
				sent += n
			}
		})
	}
	select {
	case <-f.done:
	case <-time.After(time.Minute):
		t.Errorf("a wake-up was lost: %d events left, %+v", f.left, f.d.Figures().Stats())
	}
	stop()
	wg.Wait()
	require.Empty(t, f.faults)
	require.Equal(t, submitters*each, len(f.finals))
	for e, n := range f.finals {
		require.Equal(t, 1, n, "event %s of %s", e.ID, e.Owner)
	}
	stats := f.d.Figures().Stats()
	require.Zero(t, stats.Queued+stats.Running+stats.Runnable)
}

// One event at a time through sleeping threads: each needs its wake-up.
func TestStressSparse(t *testing.T) {
	f := newFleet(t, 1, 3, 2, 100_000)
	const events = 20_000
	f.left = events
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for thread := range 3 {
		wg.Go(func() { f.run(ctx, thread, 1) })
	}
	for i := range events {
		f.d.Submit(tasks(fmt.Sprint("owner", i%2), "w", 1))
		for range i % 7 {
			f.d.Figures().Stats() // let others go first, now and then
		}
	}
	select {
	case <-f.done:
	case <-time.After(time.Minute):
		t.Errorf("a wake-up was lost: %d events left, %+v", f.left, f.d.Figures().Stats())
	}
	stop()
	wg.Wait()
	require.Empty(t, f.faults)
}
