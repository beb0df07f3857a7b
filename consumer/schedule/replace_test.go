package schedule_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// stubborn runs every event until it is halted, and fails then: or fails at once, for a retry that is near or far away.
type stubborn struct {
	*stubbornFleet
	settle func([]lifecycle.Settlement)
}

type stubbornFleet struct {
	mu      sync.Mutex
	retry   time.Duration
	running int
	most    int
	started []string
}

func (*stubborn) Through(string, uint64) bool { return false }

func (*stubborn) Cancel([]*lifecycle.Delivery, bool) []*lifecycle.Delivery { return nil }

func (d *stubborn) Submit(batch []*lifecycle.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range batch {
		d.started = append(d.started, e.ID)
		failed := lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Dead, Version: "1-a",
			Failure: events.Fail(events.ReasonTimeout, "x")}}
		if d.retry > 0 {
			failed.Outcome.Verdict, failed.Outcome.Delay = lifecycle.Retry, d.retry
			go d.settle([]lifecycle.Settlement{failed})
			continue
		}
		d.running++
		d.most = max(d.most, d.running)
		e.Halt.On(func() {
			go func() {
				d.mu.Lock()
				d.running--
				d.mu.Unlock()
				d.settle([]lifecycle.Settlement{failed})
			}()
		})
	}
}

func (d *stubbornFleet) has(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.started) == n
}

// The event of a tick replaces the one before, wherever that is, and runs when that has ended.
func TestReplacingOverlap(t *testing.T) {
	t.Parallel()
	for name, retry := range map[string]time.Duration{"running": 0, "waiting": 4 * time.Second, "put off": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, err := time.Parse(time.RFC3339, "2026-01-01T00:00:00Z")
			require.NoError(t, err)
			start, srv := now, natstest.Start(t)
			d := &stubbornFleet{retry: retry}
			ctx, stop := context.WithCancel(context.Background())
			var fleet sync.WaitGroup
			defer fleet.Wait()
			defer stop()
			for range 2 {
				cfg := consumer.DefaultConfig()
				cfg.Node, cfg.MaxBytes = "n", 64<<20
				process := &stubborn{stubbornFleet: d}
				c, err := consumer.New(cfg, natstest.Connect(t, srv), process, zerolog.Nop(), nil)
				require.NoError(t, err)
				process.settle = c.Settle
				fleet.Go(func() { _ = c.Run(ctx, ctx) })
				require.Eventually(t, func() bool { return c.Ready() == nil }, time.Minute, time.Millisecond)
			}
			nc := natstest.Connect(t, srv)
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			none := func(context.Context, string) bool { return false }
			tick := schedule.NewTicker(nc, events.DefaultPrefix, "a", func() time.Time { return now }, none,
				func(string, string) bool { return false }, zerolog.Nop())
			tick.Install(workers.Only(&workers.Worker{
				Owner: "acme", Name: "w", Number: 1, DeployedAt: start,
				Spec: workers.Spec{Schedules: []workers.Schedule{{Name: "r", Cron: "* * * * *", Overlap: events.OverlapReplace}}},
			}))
			schedule.Settle(t.Context(), tick, &now)
			for minute := range 4 {
				now = start.Add(time.Duration(minute+1) * time.Minute)
				schedule.Settle(t.Context(), tick, &now)
				require.Eventually(t, func() bool { return d.has(minute + 1) }, time.Minute, time.Millisecond)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			require.LessOrEqual(t, d.most, 1, "never two at once")
			for i, id := range d.started {
				require.Equal(t, events.TickID("acme", "w", "r", start.Add(time.Duration(i+1)*time.Minute)), id)
			}
			stream, err := js.Stream(t.Context(), events.StreamDead)
			require.NoError(t, err)
			require.Zero(t, stream.CachedInfo().State.Msgs, "to be replaced is no failure")
		})
	}
}
