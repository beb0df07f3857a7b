package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// BenchmarkDrain is BenchmarkFleet with a stream that is filled before the fleet may take from it. So the fleet always
// has events, and the results depend less on the load of the machine.
func BenchmarkDrain(b *testing.B) {
	for _, owners := range []int{1, 100} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) { benchmarkFleet(b, owners, true) })
	}
}

// BenchmarkFleet measures one fleet process, with NATS and the load in another process. The stream has events of about
// 1 KB of JSON. Each is parsed, answered with JSON and acked. It reports events/s and the CPU time of the fleet process
// per event. BENCH_ADMIN is an address for the profiles (/debug/pprof/).
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
	l := startLoad(b, owners, os.Getenv("BENCH_ADMIN"))
	l.publish(20 * owners)
	l.receive(20 * owners)
	if drain {
		pauseLanes(b, l.js, time.Now().Add(time.Hour))
		l.publish(b.N)
	}
	cpu := processCPU(b, l.pid)
	b.ResetTimer()
	if drain {
		pauseLanes(b, l.js, time.Time{})
	} else {
		l.publish(b.N)
	}
	l.receive(b.N)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((processCPU(b, l.pid)-cpu).Nanoseconds())/1e3/float64(b.N), "cpu-µs/event")
}

// load is one fleet process. This process publishes events to it and takes its replies.
type load struct {
	testing.TB
	js      jetstream.JetStream
	pid     int
	owners  int
	replies chan *nats.Msg
}

// startLoad starts the process. Its profiles are at admin.
func startLoad(t testing.TB, owners int, admin string, env ...string) *load {
	srv := natstest.Start(t)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	p := fleettest.Serve(t, srv.URL(),
		append(env, "PINWHEEL_WINDOW=4096", "PINWHEEL_PROFILING=true", "PINWHEEL_ADMIN_ADDR="+admin)...)
	for i := range owners {
		h.deploy(fmt.Sprintf("owner%d", i), "order", benchWorker)
	}
	js, err := jetstream.New(h.nc, jetstream.WithPublishAsyncMaxPending(2000))
	require.NoError(t, err)
	l := &load{TB: t, js: js, pid: p.PID(), owners: owners, replies: make(chan *nats.Msg, 1<<16)}
	_, err = h.nc.ChanSubscribe("_INBOX.bench.*", l.replies)
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	return l
}

// publish stores n events. The owners alternate.
func (l *load) publish(n int) {
	for i := range n {
		m := nats.NewMsg(fmt.Sprintf("pinwheel.events.fetch.owner%d.order", i%l.owners))
		m.Data = benchBody(i)
		m.Header["Reply-To"] = []string{"_INBOX.bench." + strconv.Itoa(i)}
		_, err := l.js.PublishMsgAsync(m, jetstream.WithStallWait(patience))
		require.NoError(l, err)
	}
	<-l.js.PublishAsyncComplete()
}

// receive waits for the replies to n events.
func (l *load) receive(n int) {
	for range n {
		m := <-l.replies
		if m.Header.Get("Http-Status") != "200" {
			l.Fatalf("%v %s", m.Header, m.Data)
		}
	}
}

// pauseLanes pauses the consumers of the event stream until that time.
func pauseLanes(b testing.TB, js jetstream.JetStream, until time.Time) {
	for i := range events.Lanes {
		_, err := js.PauseConsumer(b.Context(), events.StreamEvents, fmt.Sprintf("lane-%d", i), until)
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

// processCPU returns the CPU time that a process has used, from /proc.
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

// BenchmarkHTTP measures one fleet process that answers POST requests of about 1 KB of JSON on 32 connections. It
// reports requests/s and the CPU time of the fleet process per request. BENCH_ADMIN is as for BenchmarkFleet.
func BenchmarkHTTP(b *testing.B) {
	for _, owners := range []int{1, 100} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) { benchmarkHTTP(b, owners) })
	}
}

func benchmarkHTTP(b *testing.B, owners int) {
	srv := natstest.Start(b)
	h := &testFleet{t: b}
	h.connect(srv.URL())
	p, addr := startWeb(b, srv.URL(), "PINWHEEL_PROFILING=true", "PINWHEEL_ADMIN_ADDR="+os.Getenv("BENCH_ADMIN"),
		"PINWHEEL_HTTP_LOG="+cmp.Or(os.Getenv("BENCH_HTTP_LOG"), "false"))
	for i := range owners {
		h.deploy(fmt.Sprintf("owner%d", i), "order", benchWorker)
	}
	w := openWeb(b, addr)
	var next atomic.Int64
	ask := func(upTo int64) {
		var clients sync.WaitGroup
		for range 32 {
			clients.Go(func() {
				for {
					i := next.Add(1) - 1
					if i >= upTo {
						return
					}
					resp, err := w.client.Post(fmt.Sprintf("http://order--owner%d.w.test/", int(i)%owners), "application/json",
						bytes.NewReader(benchBody(int(i))))
					if err != nil || resp.StatusCode != 200 {
						b.Errorf("%v %v", resp, err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
		clients.Wait()
		next.Store(0)
	}
	ask(int64(20 * owners))
	cpu := processCPU(b, p.PID())
	b.ResetTimer()
	ask(int64(b.N))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64((processCPU(b, p.PID())-cpu).Nanoseconds())/1e3/float64(b.N), "cpu-µs/request")
}

// BenchmarkSendBatch has a handler send 10 000 tasks to itself, 100 at a time, and some batches at once. They wait
// until it has ended, and what they take then is not measured.
func BenchmarkSendBatch(b *testing.B) {
	h := openFleet(b)
	h.fleet.SetPolicy("acme", workers.Policy{MaxRunning: 1})
	h.deploy("acme", "w", `export default { task() {}, async fetch(r, env) {
		const messages = Array.from({ length: 100 }, (_, i) => ({ body: { order: i, note: "a task of some bytes" } }));
		const atOnce = +await r.text();
		const began = performance.now();
		for (let i = 0; i < 100; i += atOnce) await Promise.all(Array.from({ length: atOnce }, () => env.SELF.sendBatch(messages)));
		return new Response(performance.now() - began);
	} }`, `{"queues": {"SELF": "w"}, "limits": {"sends": 10000, "cpuMs": 60000, "wallMs": 600000}}`)
	for _, atOnce := range []string{"1", "5"} {
		b.Run(atOnce, func(b *testing.B) {
			took := 0.
			for b.Loop() {
				ms, err := strconv.ParseFloat(string(h.reply(h.send(events.Fetch, "acme/w", atOnce)).Body), 64)
				require.NoError(b, err)
				took += ms
				h.settled()
			}
			b.ReportMetric(10_000_000*float64(b.N)/took, "tasks/s")
		})
	}
}
