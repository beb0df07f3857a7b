package consumer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// BenchmarkSettle is the end of events alone: 1024 that the process holds are settled in batches of 64, each with a
// reply, until the server has confirmed all acks. It reports this process's CPU time; nats-server is another.
func BenchmarkSettle(b *testing.B) {
	const round, batch = 1024, 64
	url := startChild(b, b.TempDir(), -1).url
	nc, pub := dial(b, url), dial(b, url)
	js := jetStream(b, pub)
	cfg := testConfig()
	cfg.Window, cfg.AckWait, cfg.MaxBytes, cfg.Heartbeat = 4*round, 30*time.Second, 1<<30, 2*time.Second
	got := make(chan *lifecycle.Delivery, round)
	f := start(b, nc, cfg,
		&dispatcher{inline: true, forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			got <- e
			return lifecycle.Settlement{}, false
		}})
	body := make([]byte, 1024)
	var cpu time.Duration
	b.ResetTimer()
	b.StopTimer()
	for range b.N {
		for i := range round {
			_, err := js.PublishMsgAsync(&nats.Msg{
				Subject: subjects.Event(events.Fetch, fmt.Sprintf("o%d", i%64), "w"), Header: nats.Header{"Reply-To": {"_INBOX.x"}},
				Data: body,
			}, jetstream.WithStallWait(patience))
			require.NoError(b, err)
		}
		list := make([]lifecycle.Settlement, round)
		for i := range list {
			list[i], _ = echo(<-got)
		}
		before := cpuTime()
		b.StartTimer()
		for ; len(list) > 0; list = list[batch:] {
			f.Settle(list[:batch])
		}
		require.Eventually(b, func() bool { return f.Stats().Held == 0 }, patience, 200*time.Microsecond)
		b.StopTimer()
		cpu += cpuTime() - before
	}
	b.ReportMetric(float64(cpu.Nanoseconds())/1e3/float64(b.N*round), "cpu-µs/event")
	b.ReportMetric(float64(b.N*round)/b.Elapsed().Seconds(), "events/s")
}
