package cells

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/calls"
	inside "github.com/pinwheel-run/pinwheel/internal/process/cells/cell"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/isolates"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/limits"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	inside.BeChild()
	os.Exit(m.Run())
}

// pair returns two connected sockets: one as a connection, and one as a file.
func pair(t testing.TB) (ours *net.UnixConn, theirs *os.File) {
	t.Helper()
	ours, theirs, err := spawn.Pair()
	require.NoError(t, err)
	return ours, theirs
}

// starter starts cells as children of this process.
func starter(t testing.TB, confined bool) func(context.Context) (*Process, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	s := spawn.Local(spawn.Starter{Executable: self, ConfineCells: confined})
	t.Cleanup(s.Close)
	return func(ctx context.Context) (*Process, error) {
		p, err := s.Cell(ctx)
		if err != nil {
			return nil, err
		}
		return Spawned(p), nil
	}
}

// house is a dispatcher with its pools, and what tests see of it.
type house struct {
	t        testing.TB
	dispatch *dispatch.Dispatcher
	pools    *Pools
	catalog  catalog.Catalog

	mu      sync.Mutex
	classes map[string]string // by owner; without: that of all
	seq     int
	logs    []events.LogLine
	onLog   func(events.LogLine) // takes lines instead of logs; nil = nothing does
	lies    []string
	waiting map[*lifecycle.Delivery]chan lifecycle.Settlement
}

// Settle implements dispatch.Settler.
func (h *house) Settle(batch []lifecycle.Settlement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range batch {
		if s.Outcome.Verdict == lifecycle.Retry {
			s.Event.Attempt++
			go h.dispatch.Submit([]*lifecycle.Delivery{s.Event})
			continue
		}
		if c := h.waiting[s.Event]; c != nil {
			c <- s
			if !s.ReplyOnly() {
				delete(h.waiting, s.Event)
			}
		}
	}
}

func (h *house) Room(string, int) {}

// Enqueue and Call implement isolates.Host.
func (h *house) Enqueue(context.Context, string, string, []isolates.Message) error { return nil }

func (h *house) Call(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
	return lifecycle.Answer{}, nil
}

func (h *house) Log(line events.LogLine) {
	if h.onLog != nil {
		h.onLog(line)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs = append(h.logs, line)
}

func (h *house) classOf(owner string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.classes[owner]; ok {
		return c
	}
	return "all"
}

func openHouse(t testing.TB, change ...func(*Config)) *house {
	t.Helper()
	h := &house{t: t, classes: map[string]string{}, waiting: map[*lifecycle.Delivery]chan lifecycle.Settlement{}}
	reg := prometheus.NewRegistry()
	pool := wire.Pool{Pool: limits.Pool{
		Threads: 2, Background: 1, Slots: 64,
		MaxIsolates: 100, OwnerMaxIsolates: 50,
		HeapMB: 1024, OwnerHeapMB: 512,
		MaxReply: 1 << 20, MaxParked: 1,
		ContextsPerIsolate: 8, ContextMaxReuses: 1000, ContextKeepMB: 16,
	}}
	cfg := Config{
		Start: starter(t, true), ClassOf: h.classOf, Catalog: &h.catalog, Pool: pool, Most: 100, HeapMax: 4 << 30,
		Calls:  calls.Config{Host: h, Egress: egress.New(nil, nil)},
		Caused: func(e End) { h.mu.Lock(); h.lies = append(h.lies, e.Why); h.mu.Unlock() },
		Log:    zerolog.New(zerolog.NewTestWriter(t)),
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	h.dispatch, err = dispatch.New(dispatch.Config{Threads: pool.Threads, Background: pool.Background, Slots: pool.Slots,
		Catalog: &h.catalog, PoolOf: func(owner string) int { return h.pools.PoolOf(owner) }}, zerolog.Nop(), reg)
	require.NoError(t, err)
	c := isolates.DefaultConfig(pool.Threads)
	c.Background, c.Slots = pool.Background, pool.Slots
	own, err := isolates.New(c, h.dispatch, h)
	require.NoError(t, err)
	h.pools, err = New(own, cfg, h.dispatch, h, reg)
	require.NoError(t, err)
	h.dispatch.Wire(h, h.pools)
	h.catalog.Follow(catalog.Follower{Installing: h.dispatch.Install, Removed: h.dispatch.Remove,
		PolicySet: func(owner string, _ workers.Policy) { h.dispatch.PolicySet(owner) }},
		catalog.Follower{Removed: h.pools.Retire, PolicySet: h.pools.SetPolicy})
	require.NoError(t, own.Open())
	ctx, end := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { h.dispatch.Run(ctx) })
	t.Cleanup(func() {
		h.pools.Close()
		end()
		group.Wait()
	})
	return h
}

func (h *house) install(owner, name, code string) {
	h.catalog.Install(workers.Only(&workers.Worker{Owner: owner, Name: name, Version: "1-x", Number: 1, Hash: code,
		Code: code, File: name + ".js"}))
}

// submit submits a task.
func (h *house) submit(owner, name, payload string) chan lifecycle.Settlement {
	h.mu.Lock()
	h.seq++
	e := &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: owner, Worker: name, ID: fmt.Sprint(h.seq),
		ReplyTo: "somewhere", Body: []byte(payload), Stored: time.Now()}, Runs: events.FirstRun}
	done := make(chan lifecycle.Settlement, 4)
	h.waiting[e] = done
	h.mu.Unlock()
	h.dispatch.Submit([]*lifecycle.Delivery{e})
	return done
}

// wait waits for the end of an event, and returns its reply.
func (h *house) wait(done chan lifecycle.Settlement) (reply string, end lifecycle.Settlement) {
	h.t.Helper()
	for {
		select {
		case s := <-done:
			if s.Reply != nil {
				reply = string(s.Reply.Body)
			}
			if !s.ReplyOnly() {
				return reply, s
			}
		case <-time.After(patience):
			require.Fail(h.t, "the event does not end")
		}
	}
}

func (h *house) run(owner, name, payload string) (string, lifecycle.Settlement) {
	h.t.Helper()
	return h.wait(h.submit(owner, name, payload))
}
