package workerlease_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/workerlease"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

const patience = 60 * time.Second

func TestMain(m *testing.M) {
	natstest.BeServer()
	parallel.AtOnce(parallel.Fleets)
	os.Exit(m.Run())
}

// work is what the processes of a test do together.
type work struct {
	running, ended atomic.Int64

	mu   sync.Mutex
	most int64
}

func (w *work) atOnce() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

func (w *work) begin() {
	n := w.running.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = max(w.most, n)
}

func (w *work) end() {
	w.running.Add(-1)
	w.ended.Add(1)
}

// process is a dispatcher with its leases. Its thread runs an event for a moment.
type process struct {
	t      *testing.T
	d      *dispatch.Dispatcher
	leases *workerlease.Leases
	nc     *nats.Conn
	of     *work
	ran    atomic.Int64
	halted atomic.Int64
	wake   chan struct{}
	hang   chan struct{} // not nil: events run until they are halted or it is closed
	over   <-chan struct{}
	stop   func()
	ends   sync.WaitGroup
}

func (p *process) Settle([]lifecycle.Settlement)      {}
func (p *process) Room(string, int)                   {}
func (p *process) CloseContexts(int, *workers.Worker) {}
func (p *process) Cancel(*lifecycle.Delivery)         {}
func (p *process) Wake(int) {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func start(t *testing.T, url string, of *work, concurrency, processes int, hang chan struct{}) *process {
	t.Helper()
	nc, err := natstest.Dial(url, nats.NoReconnect())
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	reg := prometheus.NewRegistry()
	p := &process{t: t, nc: nc, of: of, wake: make(chan struct{}, 1), hang: hang}
	p.leases, err = workerlease.Open(t.Context(), js, workerlease.Config{Prefix: events.DefaultPrefix,
		TTL: 2 * time.Second, Turn: 100 * time.Millisecond}, zerolog.Nop(), reg)
	require.NoError(t, err)
	p.d, err = dispatch.New(dispatch.Config{Threads: 1, Slots: 64}, zerolog.Nop(), reg)
	require.NoError(t, err)
	p.d.Wire(p, p)
	lessee := p.d.SetLeases(p.leases)
	p.d.SetProcesses(processes)
	w := &workers.Worker{Owner: "acme", Name: "one", Version: "1-abc", Number: 1, Handlers: events.Kinds[:]}
	w.Concurrency = concurrency
	p.d.Install(workers.Only(w))
	ctx, stop := context.WithCancel(context.Background())
	p.over, p.stop = ctx.Done(), stop
	p.ends.Go(p.thread)
	p.ends.Go(func() { p.leases.Run(ctx, context.Background(), lessee) })
	t.Cleanup(func() {
		p.stop()
		p.ends.Wait()
		nc.Close()
	})
	return p
}

// thread starts what it may, until the process stops.
func (p *process) thread() {
	for {
		for _, a := range p.d.Next(0, 64) {
			p.ends.Go(func() { p.run(a) })
		}
		select {
		case <-p.wake:
		case <-p.over:
			return
		}
	}
}

func (p *process) run(a *lifecycle.Attempt) {
	p.of.begin()
	if p.hang != nil {
		halted := make(chan struct{})
		a.Halt.On(func() { close(halted) })
		select {
		case <-halted:
			p.halted.Add(1)
		case <-p.hang:
		case <-p.over:
		}
	} else {
		<-time.After(time.Millisecond) // what the event waits for
	}
	p.of.end()
	p.ran.Add(1)
	p.d.Report(0, []lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true}}})
	p.Wake(0)
}

func (p *process) submit(n int) {
	var batch []*lifecycle.Delivery
	for i := range n {
		batch = append(batch, &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: "acme",
			Worker: "one", ID: fmt.Sprint(i)}, Runs: events.Runs{Attempt: 1}})
	}
	p.d.Submit(batch)
}

// Three processes have events of one worker. Never more run at once than it allows, and all processes have their turn.
func TestProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t)
			var of work
			var all []*process
			for range 3 {
				all = append(all, start(t, srv.URL(), &of, most, 3, nil))
			}
			for _, p := range all {
				p.submit(400)
			}
			require.Eventually(t, func() bool { return of.ended.Load() == 1200 }, patience, time.Millisecond)
			require.EqualValues(t, most, of.atOnce())
			for _, p := range all {
				require.EqualValues(t, 400, p.ran.Load())
			}
		})
	}
}

// A process that has nothing to run lets go at once when another one asks, and a process that stops does so, too.
func TestLeaseGoesToWhoNeedsIt(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var of work
	a, b := start(t, srv.URL(), &of, 1, 2, nil), start(t, srv.URL(), &of, 1, 2, nil)
	for range 5 {
		for _, p := range []*process{a, b} {
			ran := p.ran.Load()
			p.submit(1)
			require.Eventually(t, func() bool { return p.ran.Load() == ran+1 }, patience, time.Millisecond)
		}
	}
	require.EqualValues(t, 1, of.atOnce())
	a.submit(1)
	require.Eventually(t, func() bool { return a.ran.Load() == 6 }, patience, time.Millisecond)
	a.stop()
	a.ends.Wait()
	js, err := jetstream.New(b.nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), workerlease.Bucket)
	require.NoError(t, err)
	_, err = kv.Get(t.Context(), "acme.one")
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound, "who stops gives back")
}

// The connection of the process that has the lease is cut. It ends its runs before another process gets the lease.
func TestProcessThatIsCutOffEndsItsRuns(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var of work
	a := start(t, srv.URL(), &of, 1, 2, make(chan struct{}))
	a.submit(1)
	require.Eventually(t, func() bool { return of.running.Load() == 1 }, patience, time.Millisecond)
	b := start(t, srv.URL(), &of, 1, 2, nil)
	b.submit(3)
	a.nc.Close()
	require.Eventually(t, func() bool { return b.ran.Load() == 3 }, patience, time.Millisecond)
	require.EqualValues(t, 1, a.halted.Load())
	require.EqualValues(t, 1, of.atOnce())
}

// A run that is longer than a lease keeps it: it is renewed.
func TestLongRunKeepsTheLease(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var of work
	hang := make(chan struct{})
	a := start(t, srv.URL(), &of, 1, 2, hang)
	a.submit(2)
	require.Eventually(t, func() bool { return of.running.Load() == 1 }, patience, time.Millisecond)
	b := start(t, srv.URL(), &of, 1, 2, nil)
	b.submit(1)
	js, err := jetstream.New(b.nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), workerlease.Bucket)
	require.NoError(t, err)
	first, err := kv.Get(t.Context(), "acme.one")
	require.NoError(t, err)
	require.Eventually(t, func() bool { // longer than the TTL of the key
		e, err := kv.Get(t.Context(), "acme.one")
		return err == nil && e.Created().Sub(first.Created()) > 3*time.Second && string(e.Value()) == string(first.Value())
	}, patience, 10*time.Millisecond)
	require.Zero(t, b.ran.Load())
	require.Zero(t, a.halted.Load())
	close(hang)
	require.Eventually(t, func() bool { return b.ran.Load() == 1 && a.ran.Load() == 2 }, patience, time.Millisecond)
	require.EqualValues(t, 1, of.atOnce())
}

// Another process's answer is lost with the bucket: whoever has a lease that is gone ends its runs.
func TestBucketIsEmptied(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var of work
	a := start(t, srv.URL(), &of, 1, 2, make(chan struct{}))
	a.submit(1)
	require.Eventually(t, func() bool { return of.running.Load() == 1 }, patience, time.Millisecond)
	js, err := jetstream.New(a.nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), workerlease.Bucket)
	require.NoError(t, err)
	require.NoError(t, kv.Purge(t.Context(), "acme.one"))
	require.Eventually(t, func() bool { return a.halted.Load() == 1 }, patience, time.Millisecond)
}
