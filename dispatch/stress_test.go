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
	wake    []chan struct{}
	running map[string]*atomic.Int64

	mu     sync.Mutex
	finals map[*lifecycle.Delivery]int
	parked map[string][]*lifecycle.Delivery
	room   map[string]int
	left   int
	done   chan struct{}
	faults []string
}

func newFleet(t *testing.T, threads, owners, queued int) *fleet {
	d, err := New(Config{Threads: threads, Slots: 8, OwnerMaxRunning: stressLimit, OwnerMaxQueued: queued}, zerolog.Nop(),
		prometheus.NewRegistry())
	require.NoError(t, err)
	f := &fleet{
		d: d, running: make(map[string]*atomic.Int64), done: make(chan struct{}),
		finals: make(map[*lifecycle.Delivery]int), parked: make(map[string][]*lifecycle.Delivery), room: make(map[string]int),
	}
	for range threads {
		f.wake = append(f.wake, make(chan struct{}, 1))
	}
	for i := range owners {
		owner := fmt.Sprint("owner", i)
		f.running[owner] = &atomic.Int64{}
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
	var held []*lifecycle.Attempt
	for ctx.Err() == nil {
		free := 8 - len(held)
		batch := f.d.Next(thread, free)
		if len(batch) > free {
			f.fault("thread %d asked for %d and got %d", thread, free, len(batch))
		}
		for _, a := range batch {
			if n := f.running[a.Event.Owner].Add(1); n > stressLimit {
				f.fault("%d of %s run", n, a.Event.Owner)
			}
		}
		held = append(held, batch...)
		if len(held) == 0 {
			select {
			case <-f.wake[thread]:
			case <-ctx.Done():
			}
			continue
		}
		rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		n := 1 + rng.IntN(len(held))
		var reports []lifecycle.Report
		for _, a := range held[:n] {
			reports = f.end(rng, a, reports)
		}
		held = append(held[:0:0], held[n:]...)
		f.d.Report(thread, reports)
	}
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
	t.Run("parking", func(t *testing.T) { stress(t, 40) })
	t.Run("without", func(t *testing.T) { stress(t, 100_000) })
}

func stress(t *testing.T, queued int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const threads, owners, submitters, each = 4, 9, 3, 7000
	f := newFleet(t, threads, owners, queued)
	f.left = submitters * each
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.d.Run(ctx) })
	if queued < 1000 { // else it would hide lost wake-ups
		wg.Go(func() { f.look(ctx) })
	}
	for thread := range threads {
		wg.Go(func() { f.run(ctx, thread, seed) })
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
	f := newFleet(t, 3, 2, 100_000)
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
