package isolates

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// gauge is the state of the process at a moment.
type gauge struct {
	at                         time.Duration
	ended, rss, heap, routines int
	live                       v8x.Live
	stats                      Stats
}

func (s *soak) measure(t *testing.T, start time.Time) gauge {
	debug.FreeOSMemory()
	v8x.Trim()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	g := gauge{at: time.Since(start), rss: rss(t) >> 20, heap: int(m.HeapAlloc >> 20), live: v8x.Alive(),
		stats: s.pool.Stats()}
	const perConn = 3 // goroutines: one at the server, two at the client
	g.routines = runtime.NumGoroutine() - perConn*int(s.conns.Load())
	s.mu.Lock()
	g.ended = s.seq - len(s.open) - len(s.again)
	s.mu.Unlock()
	return g
}

// report logs what happened, for people.
func (s *soak) report(t *testing.T, gauges []gauge) {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n  time      events  RSS MB  Go MB  goroutines  isolates  contexts  globals  buffers' budgets\n")
	for i, g := range gauges {
		if i%max(1, len(gauges)/15) == 0 || i == len(gauges)-1 {
			fmt.Fprintf(&b, "%6.0fs  %10d  %6d  %5d  %10d  %8d  %8d  %7d  %d\n", g.at.Seconds(), g.ended, g.rss, g.heap, g.routines,
				g.live.Isolates, g.live.Contexts, g.live.Globals, g.live.Budgets)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		fmt.Fprintf(&b, "%s: %d\n", name, s.counts[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.scripts)) {
		n := s.scripts[name]
		each := func(d time.Duration) time.Duration { return (d / time.Duration(n.events)).Round(10 * time.Microsecond) }
		fmt.Fprintf(&b, "%-18s %7d events, CPU %9s, at most %9s; wall %9s, at most %9s\n", name, n.events, each(n.cpu),
			n.cpuMost.Round(time.Millisecond), each(n.wall), n.wallMost.Round(time.Millisecond))
	}
	if n := len(gauges); n > 0 {
		x := gauges[n-1].stats
		fmt.Fprintf(&b, "warm %d, cold %d, evicted %d, discards %v, kills %v\n", x.WarmHits, x.ColdStarts, x.Evictions, x.Discards, x.Kills)
	}
	t.Log(b.String())
}

// flat requires that the last fifth of the run has no more of anything than the middle fifth, except for noise:
// isolates come and go with their owners, 37 to 62 of them within one minute, and most other figures follow them. A
// leak exceeds that noise in minutes.
func flat(t *testing.T, gauges []gauge) {
	t.Helper()
	fifth := len(gauges) / 5
	require.Positive(t, fifth)
	middle, last := gauges[2*fifth:3*fifth], gauges[len(gauges)-fifth:]
	for name, of := range map[string]struct {
		value func(gauge) int
		slack int
	}{
		"RSS, MB":     {func(g gauge) int { return g.rss }, 160},
		"Go heap, MB": {func(g gauge) int { return g.heap }, 32},
		"goroutines":  {func(g gauge) int { return g.routines }, 150},
		"isolates":    {func(g gauge) int { return g.live.Isolates }, 25},
		"contexts":    {func(g gauge) int { return g.live.Contexts }, 60},
		"globals":     {func(g gauge) int { return g.live.Globals }, 500},
		"budgets":     {func(g gauge) int { return g.live.Budgets }, 25},
	} {
		a, b := median(middle, of.value), median(last, of.value)
		t.Logf("%s: median of the middle fifth %d, of the last %d", name, a, b)
		require.LessOrEqual(t, b, a+a/10+of.slack, name)
	}
}

func median(list []gauge, of func(gauge) int) int {
	values := make([]int, len(list))
	for i, g := range list {
		values[i] = of(g)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
