package cells

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/soak"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

var (
	soakFor  = flag.Duration("soak", time.Second, "how long TestSoak runs")
	soakSeed = flag.Uint64("seed", 0, "what TestSoak's choices come from; 0 = the clock")
)

const (
	soakOwners = 20
	soakOpen   = 24 // events under way
	// soakReplace is the time after which the cell of the class "ends" ends. Each fourth one is killed.
	soakReplace = 5 * time.Second
)

// soaking runs the scripts of the soak in cells. Those of the class "stays" have one cell all the time.
type soaking struct {
	*house
	base string

	mu       sync.Mutex
	random   *rand.Rand
	versions map[string]int // by owner/name
	seq      int
	counts   map[string]int
	wrong    []string
}

// soakEvent is an event of a script.
type soakEvent struct {
	script *soak.Script
	who    string
	event  *lifecycle.Delivery
	class  string
}

func (s *soaking) complain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) < 20 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

// next deploys a script, and makes an event of it. Half of the deploys are of another version.
func (s *soaking) next() soakEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, kind := soak.Good(), "good"
	switch n := s.random.IntN(100); {
	case n >= 90:
		list, kind = soak.Hostile(), "hostile"
	case n >= 75:
		list, kind = soak.Bad(), "bad"
	}
	script := &list[s.random.IntN(len(list))]
	n := s.random.IntN(soakOwners)
	owner, name := fmt.Sprint("owner-", n), kind+"-"+script.Name
	of := owner + "/" + name
	fresh := s.versions[of] == 0 || s.random.IntN(2) == 0
	if fresh {
		s.versions[of]++
	}
	version := s.versions[of]
	s.seq++
	x := soakEvent{script: script, who: fmt.Sprintf("%s@%d", of, version), class: []string{"stays", "ends"}[n%2]}
	if fresh {
		s.catalog.Install(workers.Only(&workers.Worker{
			Owner: owner, Name: name, Version: fmt.Sprint(version, "-x"), Number: version, Hash: x.who,
			Code: script.Code(s.base), File: name + ".js",
			Spec: workers.Spec{
				Mode: workers.Modes[s.random.IntN(len(workers.Modes))], Limits: script.Limits(),
				Retries: workers.Retries{MaxAttempts: 1 + script.Fails},
				Bindings: workers.Bindings{
					Vars: map[string]string{"WHO": x.who}, Queues: map[string]string{"JOBS": "jobs-of-" + owner},
				},
			},
		}))
	}
	kinds := []events.Kind{events.Task, events.Fetch}
	if script.Fails > 0 {
		kinds = kinds[:1]
	} else if script.Size > 0 {
		kinds = kinds[1:]
	}
	x.event = newEvent(kinds[s.random.IntN(len(kinds))], owner, "")
	x.event.Worker, x.event.ID = name, fmt.Sprintf("%s#%d", of, s.seq)
	x.event.Body = []byte(x.event.ID)
	if x.event.Kind == events.Fetch {
		x.event.Method = "POST"
	}
	return x
}

// run runs events until the time is over.
func (s *soaking) run(until <-chan struct{}) {
	for {
		select {
		case <-until:
			return
		default:
		}
		x := s.next()
		s.judge(x, s.give(x.event))
	}
}

// judge checks how an event ends, and what it answers.
func (s *soaking) judge(x soakEvent, done chan lifecycle.Settlement) {
	reply, settled := s.wait(done)
	end := "ok"
	if f := settled.Outcome.Failure; f != nil {
		end = string(f.Reason)
	}
	s.mu.Lock()
	s.counts[end]++
	s.mu.Unlock()
	switch {
	case end == "crash" && x.class == "ends": // many of its cells are killed
		return
	case end == "memory" && !x.script.Allows(end): // of neighbours, as in isolates.TestSoak
		return
	case end == "unavailable": // its worker has cost a thread
		return
	case !x.script.Allows(end):
		s.complain("%s: %s: %+v", x.event.ID, end, settled.Outcome.Failure)
		return
	case end != "ok" || x.script.Module != "" || x.script.Size > 0 || reply == "":
		return
	}
	got, err := soak.ReadAnswer([]byte(reply))
	of, _, _ := strings.Cut(x.event.ID, "#")
	if err != nil || got.Token != x.event.ID || got.Said != x.script.Said || !strings.HasPrefix(got.Who, of+"@") ||
		got.Foreign != "" && !strings.HasPrefix(got.Foreign, of+"#") {
		s.complain("%s: answered %.300s", x.event.ID, reply)
	}
}

// end ends the cells of the class "ends", again and again.
func (s *soaking) end(until <-chan struct{}) {
	tick := time.NewTicker(soakReplace)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-until:
			return
		case <-tick.C:
		}
		s.pools.each(func(c *cell) {
			switch {
			case c.class.name != "ends":
			case n%4 == 0:
				c.process.Kill()
			default:
				c.replace()
			}
		})
	}
}

// soakGauge is the state of broker and cell at a moment. Of a leak it has more and more.
type soakGauge struct {
	events, heap, rss, cell, fds, routines, slots, given int
}

func (s *soaking) measure() (g soakGauge) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	g.heap, g.rss = int(m.HeapAlloc>>20), int(privateBytes(os.Getpid())>>20)
	g.fds, g.routines = len(openFiles()), runtime.NumGoroutine()
	s.pools.each(func(c *cell) {
		if c.class.name == "stays" {
			g.cell = int(privateBytes(c.process.PID) >> 20)
			c.mu.Lock()
			defer c.mu.Unlock()
			g.slots, g.given = len(c.assigned.list), len(c.given.workers)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	g.events = s.seq
	return g
}

// openFiles are the numbers of the files that this process has open.
func openFiles() []string {
	names, _ := filepath.Glob("/proc/self/fd/*")
	return names
}

// leftProcesses are the processes that this process has started and that have not been waited for.
func leftProcesses() (list []string) {
	all, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range all {
		text, _ := os.ReadFile(path)
		list = append(list, strings.Fields(string(text))...)
	}
	return list
}

// TestSoak runs good, bad and hostile workers of many owners in two cells, for the time of the flag -soak. One of them
// ends all the while. Nothing crosses, and nothing grows: memory of broker and cell, files, goroutines, attempts. In
// the end no process is left.
func TestSoak(t *testing.T) { //nolint:paralleltest // it counts what the process has
	seed := *soakSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d -soak %s", seed, *soakFor)
	require.Empty(t, leftProcesses())
	files, routines := len(openFiles()), runtime.NumGoroutine()
	t.Run("load", func(t *testing.T) { load(t, seed) }) //nolint:paralleltest // the same
	require.Empty(t, leftProcesses(), "processes that nobody has waited for")
	require.Eventually(t, func() bool { return len(openFiles()) <= files+4 }, patience, 10*time.Millisecond,
		"files: %d at the start", files)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+4 }, patience, 10*time.Millisecond,
		"goroutines: %d at the start", routines)
}

func load(t *testing.T, seed uint64) {
	t.Helper()
	s := &soaking{random: rand.New(rand.NewPCG(seed, seed)), versions: map[string]int{}, counts: map[string]int{}}
	s.house = openHouse(t, func(c *Config) {
		c.Calls.Egress = egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, nil)
	})
	s.house.onLog = s.line
	for i := range soakOwners {
		s.classes[fmt.Sprint("owner-", i)] = []string{"stays", "ends"}[i%2]
	}
	server := soak.Server()
	server.Start()
	defer server.Close()
	s.base = server.URL
	until := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { s.end(until) })
	for range soakOpen {
		group.Go(func() { s.run(until) })
	}
	var gauges []soakGauge
	start := time.Now()
	tick := time.NewTicker(max(*soakFor/50, 500*time.Millisecond))
	defer tick.Stop()
	for time.Since(start) < *soakFor {
		<-tick.C
		gauges = append(gauges, s.measure())
	}
	close(until)
	group.Wait()
	for i, g := range gauges {
		if i%max(1, len(gauges)/15) == 0 || i == len(gauges)-1 {
			t.Logf("%+v", g)
		}
	}
	t.Logf("ended: %v; %d cells", s.counts, s.pools.Account().Starts)
	require.Empty(t, s.wrong)
	require.Empty(t, s.lies, "a cell that works lies")
	s.pools.each(func(c *cell) {
		none := func() bool { return c.stats().Attempts == 0 }
		require.Eventually(t, none, patience, time.Millisecond, "attempts that are over")
	})
	s.house.mu.Lock()
	require.Empty(t, s.waiting, "events without an end")
	s.house.mu.Unlock()
	if *soakFor >= 25*time.Second {
		soakFlat(t, gauges)
	}
}

// line checks whether a line of output is of who wrote it.
func (s *soaking) line(l events.LogLine) {
	_, token, ok := strings.Cut(l.Text, "TOKEN ")
	if ok && token != "of the past" && !strings.HasPrefix(token, l.Owner+"/"+l.Worker+"#") {
		s.complain("a line of %s/%s says %s", l.Owner, l.Worker, l.Text)
	}
}

// soakFlat requires that the last fifth of the run has no more of anything than the middle fifth, except for noise.
func soakFlat(t *testing.T, gauges []soakGauge) {
	t.Helper()
	fifth := len(gauges) / 5
	require.Positive(t, fifth)
	middle, last := gauges[2*fifth:3*fifth], gauges[len(gauges)-fifth:]
	for name, of := range map[string]struct {
		value func(soakGauge) int
		slack int
	}{
		"Go heap of the broker, MB": {func(g soakGauge) int { return g.heap }, 32},
		"memory of the broker, MB":  {func(g soakGauge) int { return g.rss }, 64},
		"memory of the cell, MB":    {func(g soakGauge) int { return g.cell }, 160},
		"files":                     {func(g soakGauge) int { return g.fds }, 60},
		"goroutines":                {func(g soakGauge) int { return g.routines }, 150},
		"attempts":                  {func(g soakGauge) int { return g.slots }, soakOpen},
		"workers given":             {func(g soakGauge) int { return g.given }, mostStale},
	} {
		a, b := median(middle, of.value), median(last, of.value)
		t.Logf("%s: median of the middle fifth %d, of the last %d", name, a, b)
		require.LessOrEqual(t, b, a+a/10+of.slack, name)
	}
}

func median(list []soakGauge, of func(soakGauge) int) int {
	values := make([]int, len(list))
	for i, g := range list {
		values[i] = of(g)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
