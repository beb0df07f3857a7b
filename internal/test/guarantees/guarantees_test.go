package guarantees_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seedFlag = flag.Uint64("seed", 0, "seed of the random choices; 0: another one each time")
	forFlag  = flag.Duration("for", 7*time.Second, "how long things are broken")
	servers  = flag.Int("servers", 1, "nats-servers; 3: a cluster, with three copies of everything")
)

// recovery is how long the fleet may take to end all events after the last fault.
const recovery = 2 * time.Minute

// TestGuarantees injects all kinds of faults into a fleet while random events arrive. At the end each acknowledged
// event has ended once, in an allowed way.
func TestGuarantees(t *testing.T) { hold(t, false) }

// TestGuaranteesInCells is TestGuarantees with a cell for each owner, and a killer of cells beside the other faults.
func TestGuaranteesInCells(t *testing.T) { hold(t, true) }

func hold(t *testing.T, cells bool) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var env []string
	if cells {
		env = []string{"PINWHEEL_CELL=own"}
	}
	h := openFleet(repeatFailures(t, seed), 3, *servers, random, env...)
	b := &breaker{testFleet: h, random: random, busy: make([]sync.Mutex, len(h.fleet))}
	b.faults = b.ofOneServer()
	if h.cluster != nil {
		b.faults = b.ofCluster()
	}

	stop := make(chan struct{})
	var publishing sync.WaitGroup
	publishing.Go(func() { h.keepPublishing(rand.New(rand.NewPCG(seed, 1)), stop) })
	watching, stopWatching := context.WithCancel(context.Background())
	defer stopWatching() // if events are stuck
	var watch sync.WaitGroup
	watch.Go(func() { h.watchForStarvation(watching) })
	pause(4 * time.Second) // without faults, so that exact results can be checked
	killing, stopKilling := context.WithCancel(t.Context())
	defer stopKilling()
	if cells {
		b.running.Go(func() { b.killCells(killing, rand.New(rand.NewPCG(seed, 2))) })
	}
	for end := time.Now().Add(*forFlag); time.Now().Before(end); {
		b.breakSomething()
		pause(time.Duration(200+random.IntN(2500)) * time.Millisecond)
	}
	stopKilling()
	b.mendAll()
	mended := time.Now()
	close(stop)
	publishing.Wait()
	h.untilEmpty(recovery)
	stopWatching()
	watch.Wait()
	took := time.Since(mended)
	wrong := h.model.check(h.letters())
	h.report(took)
	h.reportRecovery()
	for _, w := range wrong[:min(len(wrong), 40)] {
		h.t.Errorf("%s", w)
	}
	h.drainAll()
}

// keepPublishing publishes about a hundred events a second, in bursts.
func (h *testFleet) keepPublishing(random *rand.Rand, stop chan struct{}) {
	var running sync.WaitGroup
	defer running.Wait()
	room := make(chan struct{}, 200) // limits the publishes in progress
	publish := func(o *order) {
		room <- struct{}{}
		running.Go(func() {
			h.publish(o)
			<-room
		})
	}
	for {
		for range 1 + random.IntN(30) {
			publish(randomOrder(random, h.nextID()))
		}
		if random.IntN(4) == 0 {
			owner := owners[random.IntN(len(owners)-1)]
			for range 1 + random.IntN(20) {
				publish(randomMessage(random, h.nextID(), owner))
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.IntN(300)) * time.Millisecond):
		}
	}
}

// untilEmpty waits until every event has ended.
func (h *testFleet) untilEmpty(limit time.Duration) {
	h.t.Helper()
	began := time.Now()
	for told := began; ; pause(50 * time.Millisecond) {
		left, parked, waiting := h.left()
		if left == 0 && parked == 0 && waiting == 0 {
			break
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			h.t.Logf("%s after the last fault: %d events, %d parked, %d waiting for their time\n%s",
				time.Since(began).Round(time.Second), left, parked, waiting, strings.Join(h.leftovers(5), "\n"))
		}
		if time.Since(began) > limit {
			h.t.Fatalf("events are stuck: %d, %d parked, %d waiting for their time", left, parked, waiting)
		}
	}
	// An event that was acked a moment ago may have been answered in the same moment.
	require.NoError(h.t, h.nc.Flush())
}

// drainAll ends the fleet in an orderly way.
func (h *testFleet) drainAll() {
	for _, p := range h.fleet {
		p.signal(15)
	}
	for _, p := range h.fleet {
		within(h.t, p.name+" drains", patience, p.ended)
		if p.err != nil {
			h.t.Errorf("%s drained and ended with %v", p.name, p.err)
		}
	}
}

// report logs the figures.
func (h *testFleet) report(took time.Duration) {
	m := h.model
	m.mu.Lock()
	defer m.mu.Unlock()
	stored, quiet, runs, extra, unsure := 0, 0, 0, 0, 0
	var worst time.Duration
	last := &order{}
	for _, o := range m.list {
		if o.published.IsZero() {
			continue
		}
		stored++
		runs += len(o.runs)
		if o.replays == 0 && o.seen.Sub(o.published) > worst {
			worst, last = o.seen.Sub(o.published), o
		}
		if _, most := o.quietRuns(); most >= 0 && o.replays == 0 {
			extra += max(0, len(o.runs)-most)
		}
		if m.quiet(o) {
			quiet++
		}
		if o.unsure {
			unsure++
		}
	}
	var lines []string
	h.mu.Lock()
	for _, what := range slices.Sorted(maps.Keys(h.counts)) {
		lines = append(lines, fmt.Sprintf("  %5d %s", h.counts[what], what))
	}
	h.mu.Unlock()
	h.t.Logf("%d events published, %d acknowledged (%d of them without a fault in their life, %d published twice), %d runs, %d more than without faults;\n"+
		"worst time from acknowledgement to the last sign of an event %s (%s); all had ended %s after the last fault\n%s",
		len(m.list), stored, quiet, unsure, runs, extra, worst.Round(time.Millisecond), last, took.Round(time.Millisecond),
		strings.Join(lines, "\n"))
}
