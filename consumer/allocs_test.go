package consumer_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// allocationsPerEvent is what an event of 1 KB may cost from the socket to its confirmed ack, with nats.go's share and
// without what runs it.
const allocationsPerEvent = 17

// TestAllocationsPerEvent fails when an event's way through consumer allocates more often than agreed. No benchmark in
// CI checks its garbage. It is skipped with the race detector, which allocates itself.
func TestAllocationsPerEvent(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				t.Skip("the race detector allocates")
			}
		}
	}
	const warm, counted = 4_000, 12_000
	url := startChild(t, natstest.StoreDir(t), -1).url
	nc, pub := dial(t, url), dial(t, url)
	js := jetStream(t, pub)
	cfg := testConfig()
	cfg.Window, cfg.AckWait, cfg.MaxBytes, cfg.Heartbeat = 1024, 30*time.Second, 1<<30, 2*time.Second
	start(t, nc, cfg, &dispatcher{handle: ack}).stop() // assets
	body := make([]byte, 1024)
	for i := range warm + counted {
		_, err := js.PublishMsgAsync(&nats.Msg{
			Subject: subjects.Event(events.Task, fmt.Sprintf("o%d", i%100), "w"),
			Header:  nats.Header{"Reply-To": {"_INBOX.nobody"}}, Data: body,
		}, jetstream.WithStallWait(patience))
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	var n atomic.Int64
	var before, after runtime.MemStats
	f := start(t, nc, cfg,
		&dispatcher{inline: true, forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			if n.Add(1) == warm {
				runtime.ReadMemStats(&before)
			}
			return echo(e)
		}})
	require.Eventually(t, func() bool { return n.Load() == warm+counted && f.Stats().Held == 0 }, patience,
		5*time.Millisecond)
	runtime.ReadMemStats(&after)
	per := float64(after.Mallocs-before.Mallocs) / counted
	t.Logf("%.2f allocations, %.0f bytes an event", per, float64(after.TotalAlloc-before.TotalAlloc)/counted)
	require.LessOrEqual(t, per, float64(allocationsPerEvent), "agreed")
}
