package consumer_test

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEcho drains stored events of 1 KB: pull, decode, dispatch, reply, ack, confirm. The
// server is in the process, so cpu-us/op is both sides.
func BenchmarkEcho(b *testing.B) {
	for _, owners := range []int{1, 100} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) {
			url := startChild(b, b.TempDir(), -1).url
			nc, pub := dial(b, url), dial(b, url)
			js := jetStream(b, pub)
			cfg := testConfig()
			cfg.Window, cfg.AckWait, cfg.MaxBytes, cfg.Heartbeat = 1024, 30*time.Second, 1<<30, 2*time.Second
			start(b, nc, cfg, &dispatcher{handle: ack}).stop() // assets
			var replies atomic.Int64
			to := nats.NewInbox()
			_, err := pub.Subscribe(to, func(*nats.Msg) { replies.Add(1) })
			require.NoError(b, err)
			require.NoError(b, pub.Flush())
			body := make([]byte, 1024)
			for i := range b.N {
				_, err := js.PublishMsgAsync(&nats.Msg{
					Subject: subjects.Event(events.Task, fmt.Sprintf("o%d", i%owners), "w"),
					Header:  nats.Header{"Reply-To": {to}}, Data: body,
				}, jetstream.WithStallWait(patience))
				require.NoError(b, err)
			}
			<-js.PublishAsyncComplete()
			b.ResetTimer()
			cpu := cpuTime()
			f := start(b, nc, cfg, &dispatcher{handle: echo, inline: true, forget: true})
			for replies.Load() < int64(b.N) || f.Stats().Held > 0 {
				time.Sleep(time.Millisecond)
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(time.Microsecond)/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			require.Zero(b, stored(b, js, events.StreamEvents))
		})
	}
}

// BenchmarkOneAtATime is the time from a publish to its reply, with nothing else going on.
func BenchmarkOneAtATime(b *testing.B) {
	url := startChild(b, b.TempDir(), -1).url
	nc, pub := dial(b, url), dial(b, url)
	start(b, nc, testConfig(), &dispatcher{handle: echo, inline: true, forget: true})
	for name, subject := range map[string]string{
		"publish": subjects.Event(events.Fetch, "acme", "w"), "call": subjects.Call(events.Fetch, "acme", "w"),
	} {
		b.Run(name, func(b *testing.B) {
			to := nats.NewInbox()
			sub, err := pub.SubscribeSync(to)
			require.NoError(b, err)
			require.NoError(b, pub.Flush())
			for range b.N {
				m := &nats.Msg{Subject: subject, Data: []byte("hi")}
				if name == "call" {
					m.Reply = to
				} else {
					m.Header = nats.Header{"Reply-To": {to}}
				}
				require.NoError(b, pub.PublishMsg(m))
				_, err := sub.NextMsg(patience)
				require.NoError(b, err)
			}
		})
	}
}
