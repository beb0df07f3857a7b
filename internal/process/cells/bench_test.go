package cells

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// cpuOf is the CPU time of a process so far.
func cpuOf(t testing.TB, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func ownCPU(t testing.TB) time.Duration {
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEcho runs tasks that echo 1 KB, in the process's own pool and in a cell. cpu-µs/event is the CPU time of
// both processes.
func BenchmarkEcho(b *testing.B) {
	for _, where := range []string{"shared", "cell"} {
		for _, window := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("%s/window=%d", where, window), func(b *testing.B) { benchEcho(b, where, window) })
		}
	}
}

func benchEcho(b *testing.B, where string, window int) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as in a process of a fleet
	pid := 0
	h := openHouse(b, func(c *Config) {
		start := c.Start
		c.Start = func(ctx context.Context) (*Process, error) {
			p, err := start(ctx)
			if err == nil {
				pid = p.PID
			}
			return p, err
		}
	})
	if where == "shared" {
		h.classes["alice"] = ""
	}
	h.install("alice", "w", echo)
	h.run("alice", "w", "first")
	ended := make(chan lifecycle.Settlement, 4*window)
	body := []byte(strings.Repeat("x", 1024))
	newEvent := func(i int) *lifecycle.Delivery {
		return &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: "alice", Worker: "w", ID: strconv.Itoa(i),
			ReplyTo: "somewhere", Body: body, Stored: time.Now()}, Runs: events.FirstRun}
	}
	cpu := func() time.Duration {
		n := ownCPU(b)
		if pid != 0 {
			n += cpuOf(b, pid)
		}
		return n
	}
	b.ReportAllocs()
	b.ResetTimer()
	before, submitted, done := cpu(), 0, 0
	batch := max(1, window/8)
	for done < b.N {
		for submitted < b.N && submitted-done+batch <= window {
			all := make([]*lifecycle.Delivery, 0, batch)
			h.mu.Lock()
			for range min(batch, b.N-submitted) {
				e := newEvent(submitted)
				h.waiting[e] = ended
				all = append(all, e)
				submitted++
			}
			h.mu.Unlock()
			h.dispatch.Submit(all)
		}
		if s := <-ended; !s.ReplyOnly() {
			done++
			h.mu.Lock()
			delete(h.waiting, s.Event)
			h.mu.Unlock()
		}
	}
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/event")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
