package consumer_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// BenchmarkPark parks the backlog of one owner: pull, decode, store, ack, confirm. cpu-us/op is the process's without
// the server.
func BenchmarkPark(b *testing.B) {
	srv := startChild(b, b.TempDir(), -1)
	url := srv.url
	nc, pub := dial(b, url), dial(b, url)
	js := jetStream(b, pub)
	cfg := testConfig()
	cfg.Window, cfg.AckWait, cfg.MaxBytes, cfg.Heartbeat = 1024, 30*time.Second, 1<<30, 2*time.Second
	start(b, nc, cfg, &dispatcher{handle: ack}).stop() // assets
	for range b.N {
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: subjects.Event(events.Task, "noisy", "w"), Data: []byte(`{"n":5}`)},
			jetstream.WithStallWait(patience))
		require.NoError(b, err)
	}
	<-js.PublishAsyncComplete()
	b.ResetTimer()
	cpu, served := cpuTime(), cpuOf(b, srv.cmd.Process.Pid)
	start(b, nc, cfg, &dispatcher{inline: true, forget: true, handle: func(e *lifecycle.Delivery) (
		lifecycle.Settlement, bool) {
		s, _ := park(e)
		return s, !e.Parked
	}})
	for stored(b, js, events.StreamEvents) > 0 {
		time.Sleep(5 * time.Millisecond)
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-cpu)/float64(time.Microsecond)/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(cpuOf(b, srv.cmd.Process.Pid)-served)/float64(time.Microsecond)/float64(b.N), "server-us/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	require.GreaterOrEqual(b, stored(b, js, events.StreamParked), b.N-1024)
}

// cpuOf is the CPU time that a process has used, in steps of 10 ms.
func cpuOf(b *testing.B, pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// BenchmarkManyParkedOwners drains the parked events of as many owners as there are operations, three each.
func BenchmarkManyParkedOwners(b *testing.B) {
	url := startChild(b, b.TempDir(), -1).url
	nc, pub := dial(b, url), dial(b, url)
	js := jetStream(b, pub)
	cfg := testConfig()
	cfg.Window, cfg.AckWait, cfg.MaxBytes, cfg.Heartbeat = 1024, 30*time.Second, 1<<30, 2*time.Second
	f := start(b, nc, cfg,
		&dispatcher{inline: true, forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			s, _ := park(e)
			return s, !e.Parked
		}})
	for i := range 3 {
		for o := range b.N {
			_, err := js.PublishMsgAsync(&nats.Msg{Subject: subjects.Event(events.Task, fmt.Sprint("o", o), "w"),
				Data: []byte(strconv.Itoa(i))}, jetstream.WithStallWait(patience))
			require.NoError(b, err)
		}
	}
	<-js.PublishAsyncComplete()
	for stored(b, js, events.StreamEvents) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	f.halt()
	var ran atomic.Int64
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	cpu := cpuTime()
	start(b, nc, cfg, &dispatcher{inline: true, forget: true, handle: func(e *lifecycle.Delivery) (
		lifecycle.Settlement, bool) {
		ran.Add(1)
		return ack(e)
	}})
	for stored(b, js, events.StreamParked) > 0 {
		time.Sleep(50 * time.Millisecond)
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(cpuTime()-cpu)/float64(time.Microsecond)/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(ran.Load())/float64(b.N), "runs/op")
	b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/(1<<20), "MB-kept")
}
