package isolates

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/isolates/stats"
)

// done counts what a Pool has done beside turns of JavaScript, as stats.Done has it. Any goroutine may use it.
type done struct {
	waitUntilFailed, waitUntilCut, yielded atomic.Uint64
	offloaded, piped                       atomic.Uint64
	offloadCPU                             atomic.Int64 // nanoseconds
	broken                                 reasonCounts
}

func (d *done) stats() stats.Done {
	s := stats.Done{
		WaitUntilFailed: d.waitUntilFailed.Load(), WaitUntilCut: d.waitUntilCut.Load(),
		Offloaded: d.offloaded.Load(), OffloadCPU: time.Duration(d.offloadCPU.Load()),
		Yielded: d.yielded.Load(), Piped: d.piped.Load(),
		Broken: map[string]uint64{},
	}
	d.broken.add(s.Broken)
	return s
}

// Collector gives the Stats of one or more Pools to Prometheus.
type Collector struct{ Stats func() Stats }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pinwheel_"+name, help, labels, nil)
}

var (
	descIsolates  = desc("isolates", "V8 isolates by state: idle, busy, prewarmed.", "state")
	descMost      = desc("isolates_max", "V8 isolates that may exist.")
	descContexts  = desc("contexts", "V8 contexts that exist.")
	descCharged   = desc("isolate_charged_bytes", "Bytes charged for all isolates: each for its heap, its functions or its machine code, whichever is most.")
	descHeapMax   = desc("isolate_heap_max_bytes", "Upper bound of pinwheel_isolate_charged_bytes and pinwheel_held_bytes together.")
	descResets    = desc("context_resets_total", "Contexts that were reset after an event to run another.")
	descHeap      = desc("isolate_heap_bytes", "Size of all V8 heaps and ArrayBuffers, as last measured.")
	descHeld      = desc("held_bytes", "Bytes held for events outside of V8: what they send, receive, and have computed.")
	descWarm      = desc("context_warm_hits_total", "Attempts that found a context of their version.")
	descCold      = desc("context_cold_starts_total", "Contexts made.")
	descDiscards  = desc("context_discards_total", "Contexts discarded, by reason: that of a failure, or reuses, interrupted, room, idle, ttl, removed, unneeded (another thread has one), secrets (one of the worker has another value), reset (of its worker).", "reason")
	descEvictions = desc("isolate_evictions_total", "Idle isolates closed to make room for another.")
	descCollected = desc("isolate_collections_total", "Garbage collections in isolates before a run. The run is not charged for them.")
	descKills     = desc("isolate_kills_total", "Isolates closed because an event in them passed a limit.", "reason")
	descPrewarmed = desc("isolate_prewarmed_total", "Isolates that workers needed, by whether a prewarmed one was ready: used, missed.", "outcome")
	descCode      = desc("code_cache_bytes", "Memory of compiled code of workers, kept for later contexts.")
	descCodeHits  = desc("code_cache_hits_total", "Contexts that started from compiled code.")
	descCodeBad   = desc("code_cache_rejected_total", "Times that V8 rejected compiled code.")
	descFailed    = desc("wait_until_failures_total", "Promises passed to waitUntil that rejected.")
	descCut       = desc("wait_until_cut_total", "Events whose waitUntil work was cut short by a limit.")
	descOffloaded = desc("offloaded_total", "Operations of events that ran outside the pinned threads: long ones of crypto.subtle, compression, and HTMLRewriter.")
	descYielded   = desc("turns_yielded_total", "Turns of JavaScript that took long and left their thread to others that waited.")
	descPiped     = desc("piped_bytes_total", "Bytes of bodies that went on without JavaScript, or that it got in one piece.")
	descOffCPU    = desc("offload_cpu_seconds_total", "CPU time of those operations.")
	descBroken    = desc("response_bodies_broken_total", "Responses whose body ended before it was complete, after their head was sent, by the reason of the failure. A requester that went away is none.", "reason")
	descParked    = desc("threads_parked_total", "Threads lost to a fatal error in V8.")
)

// Describe implements prometheus.Collector.
func (c Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descIsolates, descMost, descContexts, descHeap, descCharged, descHeld, descHeapMax, descResets, descWarm, descCold,
		descDiscards, descEvictions, descCollected, descKills,
		descParked, descPrewarmed, descCode, descCodeHits, descCodeBad,
		descFailed, descCut, descOffloaded, descOffCPU, descYielded, descPiped, descBroken,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	s := c.Stats()
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(descIsolates, float64(s.Cached), "idle")
	gauge(descIsolates, float64(s.Busy), "busy")
	gauge(descIsolates, float64(s.Prewarmed.Ready), "prewarmed")
	gauge(descMost, float64(s.Total))
	gauge(descContexts, float64(s.Contexts))
	gauge(descHeap, float64(s.HeapBytes))
	gauge(descCharged, float64(s.Charged))
	gauge(descHeapMax, float64(s.HeapMax))
	gauge(descHeld, float64(s.Held))
	count(descResets, s.Resets)
	count(descWarm, s.WarmHits)
	count(descCold, s.ColdStarts)
	count(descEvictions, s.Evictions)
	count(descCollected, s.Collections)
	count(descParked, uint64(s.Parked))
	count(descPrewarmed, s.Prewarmed.Used, "used")
	count(descPrewarmed, s.Prewarmed.Missed, "missed")
	gauge(descCode, float64(s.Code.Bytes))
	count(descCodeHits, s.Code.Hits)
	count(descCodeBad, s.Code.Rejected)
	count(descFailed, s.Done.WaitUntilFailed)
	count(descCut, s.Done.WaitUntilCut)
	count(descOffloaded, s.Done.Offloaded)
	count(descYielded, s.Done.Yielded)
	count(descPiped, s.Done.Piped)
	ch <- prometheus.MustNewConstMetric(descOffCPU, prometheus.CounterValue, s.Done.OffloadCPU.Seconds())
	for reason, n := range s.Done.Broken {
		count(descBroken, n, reason)
	}
	for reason, n := range s.Discards {
		count(descDiscards, n, reason)
	}
	for reason, n := range s.Kills {
		count(descKills, n, reason)
	}
}

// Figures of a Pool. Package stats explains them.
type (
	Stats       = stats.Stats
	OwnerStats  = stats.OwnerStats
	WorkerStats = stats.WorkerStats
)

// Stats returns a snapshot, for people and metrics. Its figures are not all of the same moment. Any goroutine may call
// it.
func (p *Pool) Stats() Stats {
	s := Stats{Discards: map[string]uint64{}, Kills: map[string]uint64{}, Parked: int(p.losses.parked.Load()),
		Code: p.code.Stats(), Prewarmed: p.prewarmed.Stats()}
	s.HeapMax = int64(p.cfg.HeapMB) << 20
	s.Done, s.Held, s.Charged = p.done.stats(), p.holdings.Total(), p.charged()
	uses := uses{map[string]*stats.OwnerStats{}, map[string]*stats.WorkerStats{}}
	for i := range p.threads {
		t := p.threads[i].Load()
		c := t.heaps.counts()
		s.Counts.Add(c)
		s.Threads = append(s.Threads, stats.ThreadStats{Thread: i, Background: i >= p.cfg.Threads, Counts: c})
		t.heaps.counters.discards.add(s.Discards)
		t.heaps.counters.kills.add(s.Kills)
		uses.add(&t.heaps.counters)
	}
	idle := &p.shared.counters // shared isolates that no thread has
	s.Counts.Add(stats.Counts{Cached: int(idle.isolates.Load()), Contexts: int(idle.contexts.Load()),
		HeapBytes: idle.heap.Load()})
	uses.add(idle)
	s.Owners, s.Workers = stats.MostUsed(uses.owners), stats.MostUsed(uses.workers)
	s.Total += p.cfg.prewarmed()
	s.Derive()
	return s
}

func (h *heaps) counts() stats.Counts {
	n := &h.counters
	busy := int(n.busy.Load())
	c := stats.Counts{
		Total: h.maxIsolates, Busy: busy, Cached: max(0, int(n.isolates.Load())-busy), Contexts: int(n.contexts.Load()),
		Running:  int(n.running.Load()),
		WarmHits: n.warm.Load(), ColdStarts: n.cold.Load(), Resets: n.resets.Load(), Evictions: n.evictions.Load(),
		Collections: n.collections.Load(), HeapBytes: n.heap.Load(),
	}
	c.Derive()
	return c
}

// uses collects the figures of several threads.
type uses struct {
	owners  map[string]*stats.OwnerStats
	workers map[string]*stats.WorkerStats
}

func (u uses) add(c *counters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.tenants {
		o := u.owners[name]
		if o == nil {
			o = &stats.OwnerStats{Owner: name}
			u.owners[name] = o
		}
		o.Add(stats.OwnerStats{Isolates: int(n.isolates.Load()), HeapBytes: n.heap.Load(), UseStats: n.stats()})
	}
	for name, n := range c.workers {
		w := u.workers[name]
		if w == nil {
			w = &stats.WorkerStats{Worker: name}
			u.workers[name] = w
		}
		w.UseStats.Add(n.stats())
	}
}

func (n *useCounters) stats() stats.UseStats {
	return stats.UseStats{
		Contexts: int(n.contexts.Load()), Running: int(n.running.Load()), WarmHits: n.warm.Load(), ColdStarts: n.cold.Load(),
	}
}

// RunDelays appends, for each pinned thread except those of Background, how long it has been runnable so far but waited
// for a processor. Any goroutine may call it. The value is 0 for a thread that cannot be queried.
// https://docs.kernel.org/scheduler/sched-stats.html#proc-pid-schedstat
func (p *Pool) RunDelays(into []time.Duration) []time.Duration {
	for i := range p.cfg.Threads {
		into = append(into, runDelay(p.threads[i].Load().tid.Load()))
	}
	return into
}

// runDelay returns the second number of a thread's schedstat, in nanoseconds.
func runDelay(tid int32) time.Duration {
	var buffer [64]byte
	file, err := os.Open("/proc/self/task/" + strconv.Itoa(int(tid)) + "/schedstat")
	if err != nil {
		return 0
	}
	defer file.Close()
	n, _ := file.Read(buffer[:])
	fields := strings.Fields(string(buffer[:n]))
	if len(fields) < 2 {
		return 0
	}
	waited, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(waited)
}
