package consumer

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// stubborn runs every event until it is halted, and fails then: or fails at once, for a retry that is near or far away.
type stubborn struct {
	*stubbornFleet
	settle func([]events.Settlement)
}

type stubbornFleet struct {
	mu      sync.Mutex
	retry   time.Duration
	running int
	most    int
	started []string
}

func (d *stubborn) Submit(batch []*events.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range batch {
		d.started = append(d.started, e.ID)
		failed := events.Settlement{Event: e, Outcome: events.Outcome{Verdict: events.Dead, Version: "1-a", Failure: events.Fail(events.ReasonTimeout, "x")}}
		if d.retry > 0 {
			failed.Outcome.Verdict, failed.Outcome.Delay = events.Retry, d.retry
			go d.settle([]events.Settlement{failed})
			continue
		}
		d.running++
		d.most = max(d.most, d.running)
		e.Halt.On(func() {
			go func() {
				d.mu.Lock()
				d.running--
				d.mu.Unlock()
				d.settle([]events.Settlement{failed})
			}()
		})
	}
}

func (d *stubbornFleet) has(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.started) == n
}

// The event of a tick takes the place of the one before, wherever that is, and runs when it has ended.
func TestReplacingOverlap(t *testing.T) {
	for name, retry := range map[string]time.Duration{"running": 0, "waiting": 4 * time.Second, "put off": time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t, "2026-01-01T00:00:00Z")
			start := s.now
			d := &stubbornFleet{retry: retry}
			ctx, stop := context.WithCancel(context.Background())
			var fleet sync.WaitGroup
			defer fleet.Wait()
			defer stop()
			for range 2 {
				cfg := DefaultConfig()
				cfg.Node, cfg.MaxBytes = "n", 64<<20
				process := &stubborn{stubbornFleet: d}
				c, err := New(cfg, natstest.Connect(t, s.srv), process, zerolog.Nop(), nil)
				require.NoError(t, err)
				process.settle = c.Settle
				fleet.Go(func() { _ = c.Run(ctx, ctx) })
				require.Eventually(t, func() bool { return c.Ready() == nil }, 20*time.Second, time.Millisecond)
			}
			tick := s.ticker("a", 0)
			tick.install(s.worker(1, events.Schedule{Name: "r", Cron: "* * * * *", Overlap: events.OverlapReplace}))
			s.settle(tick)
			for minute := range 4 {
				s.now = start.Add(time.Duration(minute+1) * time.Minute)
				s.settle(tick)
				require.Eventually(t, func() bool { return d.has(minute + 1) }, 20*time.Second, time.Millisecond)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			require.LessOrEqual(t, d.most, 1, "never two at once")
			for i, id := range d.started {
				require.Equal(t, events.TickID("acme", "w", "r", start.Add(time.Duration(i+1)*time.Minute)), id)
			}
			stream, err := s.js.Stream(t.Context(), StreamDead)
			require.NoError(t, err)
			require.Zero(t, stream.CachedInfo().State.Msgs, "to be replaced is no failure")
		})
	}
}
