package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

// BenchmarkDrain is BenchmarkFleet with the stream filled before the fleet may take from it, so that it is never short of events:
// what it reports depends less on how busy the machine is.
func BenchmarkDrain(b *testing.B) {
	for _, owners := range []int{1, 100} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) { benchmarkFleet(b, owners, true) })
	}
}

// BenchmarkFleet is one fleet process, NATS and the load in another: a stream of stored events of about
// 1 KB of JSON, each parsed, answered with JSON and acked. It reports events/s and the CPU time that the
// fleet process took per event. BENCH_ADMIN is an address at which its profiles are (/debug/pprof/).
func BenchmarkFleet(b *testing.B) {
	for _, owners := range []int{1, 100} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) { benchmarkFleet(b, owners, false) })
	}
}

const benchWorker = `export default { async fetch(request) {
	const order = await request.json();
	return Response.json({ ok: true, id: order.id, user: order.user.name, items: order.items.length });
} }`

func benchmarkFleet(b *testing.B, owners int, drain bool) {
	srv := natstest.Start(b)
	h := &house{t: b}
	h.connect(srv.URL())
	p := startProcess(b, srv.URL(), "PINWHEEL_WINDOW=4096", "PINWHEEL_PROFILING=true", "PINWHEEL_ADMIN_ADDR="+os.Getenv("BENCH_ADMIN"))
	for i := range owners {
		h.deploy(fmt.Sprintf("owner%d", i), "order", benchWorker)
	}
	js, err := jetstream.New(h.nc, jetstream.WithPublishAsyncMaxPending(2000))
	require.NoError(b, err)
	replies := make(chan *nats.Msg, 1<<16)
	_, err = h.nc.ChanSubscribe("_INBOX.bench.*", replies)
	require.NoError(b, err)
	cpu := time.Duration(0)
	round := func(n int) {
		if drain {
			pauseLanes(b, js, time.Now().Add(time.Hour))
		}
		for i := range n {
			m := nats.NewMsg(fmt.Sprintf("pinwheel.events.fetch.owner%d.order", i%owners))
			m.Data = benchBody(i)
			m.Header["Reply-To"] = []string{"_INBOX.bench." + strconv.Itoa(i)}
			_, err := js.PublishMsgAsync(m, jetstream.WithStallWait(patience))
			require.NoError(b, err)
		}
		<-js.PublishAsyncComplete()
		if drain {
			cpu = processCPU(b, p.Process.Pid)
			b.ResetTimer()
			pauseLanes(b, js, time.Time{})
		}
		for range n {
			m := <-replies
			if m.Header.Get("Http-Status") != "200" {
				b.Fatalf("%v %s", m.Header, m.Data)
			}
		}
	}
	round(20 * owners)
	cpu = processCPU(b, p.Process.Pid)
	b.ResetTimer()
	round(b.N)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((processCPU(b, p.Process.Pid)-cpu).Nanoseconds())/1e3/float64(b.N), "cpu-µs/event")
}

// pauseLanes lets the consumers of the stream of events rest until then.
func pauseLanes(b *testing.B, js jetstream.JetStream, until time.Time) {
	for i := range events.Lanes {
		_, err := js.PauseConsumer(b.Context(), consumer.StreamEvents, fmt.Sprintf("lane-%d", i), until)
		require.NoError(b, err)
	}
}

func benchBody(id int) []byte {
	items := make([]map[string]any, 6)
	for i := range items {
		items[i] = map[string]any{"sku": fmt.Sprintf("sku-%04d", i), "qty": i + 1, "price": 9.99}
	}
	body, _ := json.Marshal(map[string]any{
		"id": id, "user": map[string]any{"name": "Ada Lovelace", "email": "ada@example.test", "roles": []string{"admin"}},
		"items": items, "note": strings.Repeat("n", 600),
	})
	return body
}

// processCPU is the CPU time that a process has used, from /proc.
func processCPU(t testing.TB, pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	require.NoError(t, err1)
	require.NoError(t, err2)
	return time.Duration(user+system) * 10 * time.Millisecond
}
