// Package stats has the figures of pools, and adds those of several processes.
package stats

import (
	"cmp"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/codecache"
	"github.com/pinwheel-run/pinwheel/isolates/prewarm"
)

// Stats describes the state and the totals of a Pool, or of several.
type Stats struct {
	Counts
	Discards  map[string]uint64 `json:"discards"` // contexts thrown away, by reason
	Kills     map[string]uint64 `json:"kills"`    // isolates closed because an event in them passed a limit, by reason
	Parked    int               `json:"parked"`   // threads lost to fatal errors in V8, since the start
	Done      Done              `json:"done"`
	Held      int64             `json:"held_bytes"`    // bytes that Go holds for events
	Charged   int64             `json:"charged_bytes"` // bytes that are charged for all isolates
	Code      codecache.Stats   `json:"code"`
	Prewarmed prewarm.Stats     `json:"spares"`
	Threads   []ThreadStats     `json:"threads,omitempty"`
	Owners    []OwnerStats      `json:"owners"`  // those with the most isolates first, at most MaxUses
	Workers   []WorkerStats     `json:"workers"` // those with the most contexts first, at most MaxUses
}

// Done counts what a Pool has done beside turns of JavaScript.
type Done struct {
	WaitUntilFailed uint64            `json:"wait_until_failed"` // promises that rejected
	WaitUntilCut    uint64            `json:"wait_until_cut"`    // events whose work was cut short by a limit
	Offloaded       uint64            `json:"offloaded"`         // operations outside the pinned threads
	OffloadCPU      time.Duration     `json:"offload_cpu"`       // CPU time of those, nanoseconds
	Yielded         uint64            `json:"yielded"`           // turns that left their thread to others
	Piped           uint64            `json:"piped_bytes"`       // bytes of bodies that went on without JavaScript
	Broken          map[string]uint64 `json:"broken"`            // bodies that ended early, by reason
}

// Add adds figures.
func (d *Done) Add(o Done) {
	d.WaitUntilFailed += o.WaitUntilFailed
	d.WaitUntilCut += o.WaitUntilCut
	d.Offloaded += o.Offloaded
	d.OffloadCPU += o.OffloadCPU
	d.Yielded += o.Yielded
	d.Piped += o.Piped
	d.Broken = sum(d.Broken, o.Broken)
}

// Totals returns only what has happened so far, without what there is now: it is what stays of a Pool that has ended.
func (s *Stats) Totals() Stats {
	t := Stats{
		Discards: s.Discards, Kills: s.Kills, Parked: s.Parked, Done: s.Done,
		Code:      codecache.Stats{Hits: s.Code.Hits, Rejected: s.Code.Rejected},
		Prewarmed: prewarm.Stats{Used: s.Prewarmed.Used, Missed: s.Prewarmed.Missed},
	}
	t.WarmHits, t.ColdStarts, t.Resets = s.WarmHits, s.ColdStarts, s.Resets
	t.Evictions, t.Collections = s.Evictions, s.Collections
	return t
}

// Counts are the figures of a thread, or the sum of those of a Pool.
type Counts struct {
	Total    int `json:"total"`    // isolates that may exist
	Cached   int `json:"cached"`   // isolates that run nothing: idle and warm
	Busy     int `json:"busy"`     // isolates that run something
	Capacity int `json:"capacity"` // isolates that may still be made: Total - Cached - Busy
	Contexts int `json:"contexts"`
	Running  int `json:"running"` // attempts in a context

	HitRate     float64 `json:"hit_rate"`    // 0 if there were none
	WarmHits    uint64  `json:"warm_hits"`   // attempts that found a context of their version
	ColdStarts  uint64  `json:"cold_starts"` // contexts made
	Resets      uint64  `json:"resets"`      // contexts that were reset after an event to run another
	Evictions   uint64  `json:"evictions"`   // idle isolates closed to make room for another
	Collections uint64  `json:"collections"` // garbage collections in isolates, before runs
	HeapBytes   int64   `json:"heap_bytes"`  // size of all isolates as last measured: an estimate
	HeapMax     int64   `json:"heap_max"`    // bound of HeapBytes; 0 for a thread, since all threads share it
}

// ThreadStats are the figures of a pinned thread.
type ThreadStats struct {
	Thread     int  `json:"thread"`
	Background bool `json:"background,omitempty"` // it runs events of owners that take more than their share
	Counts
}

// OwnerStats has the figures of an owner. Its totals begin on each thread when its oldest isolate there was made.
type OwnerStats struct {
	Owner    string `json:"owner"`
	Isolates int    `json:"isolates"`
	UseStats
	HeapBytes int64 `json:"heap_bytes"`
}

// WorkerStats has the figures of a worker. Its totals begin on each thread when its oldest context there was made.
type WorkerStats struct {
	Worker string `json:"worker"` // owner/name
	UseStats
}

// UseStats are the figures that owners and workers both have.
type UseStats struct {
	Contexts   int    `json:"contexts"`
	Running    int    `json:"running"`
	WarmHits   uint64 `json:"warm_hits"`
	ColdStarts uint64 `json:"cold_starts"`
}

// MaxUses bounds Stats.Owners and Stats.Workers.
const MaxUses = 20

// Add adds all figures except the derived ones.
func (c *Counts) Add(o Counts) {
	c.Total += o.Total
	c.Cached += o.Cached
	c.Busy += o.Busy
	c.Contexts += o.Contexts
	c.Running += o.Running
	c.WarmHits += o.WarmHits
	c.ColdStarts += o.ColdStarts
	c.Resets += o.Resets
	c.HeapMax += o.HeapMax
	c.Evictions += o.Evictions
	c.Collections += o.Collections
	c.HeapBytes += o.HeapBytes
	c.Derive()
}

// Derive computes the figures that follow from others.
func (c *Counts) Derive() {
	c.Capacity, c.HitRate = max(0, c.Total-c.Cached-c.Busy), 0
	if n := c.WarmHits + c.ColdStarts; n > 0 {
		c.HitRate = float64(c.WarmHits) / float64(n)
	}
}

// Add adds figures.
func (s *UseStats) Add(x UseStats) {
	s.Contexts += x.Contexts
	s.Running += x.Running
	s.WarmHits += x.WarmHits
	s.ColdStarts += x.ColdStarts
}

// Add adds figures.
func (o *OwnerStats) Add(x OwnerStats) {
	o.Isolates += x.Isolates
	o.HeapBytes += x.HeapBytes
	o.UseStats.Add(x.UseStats)
}

// Add adds figures.
func (w *WorkerStats) Add(x WorkerStats) { w.UseStats.Add(x.UseStats) }

func (o OwnerStats) key() (name string, size int64) {
	return o.Owner, int64(o.Isolates)<<40 + o.HeapBytes
}

func (w WorkerStats) key() (name string, size int64) { return w.Worker, int64(w.Contexts) }

// usage is OwnerStats or WorkerStats.
type usage[S any] interface {
	*S
	Add(S)
	key() (name string, size int64)
}

// MostUsed returns the values of the map, the largest first, at most MaxUses.
func MostUsed[S any, P usage[S]](all map[string]P) []S {
	list := []S{}
	for _, s := range all {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b S) int {
		an, as := P(&a).key()
		bn, bs := P(&b).key()
		return cmp.Or(cmp.Compare(bs, as), cmp.Compare(an, bn))
	})
	return list[:min(len(list), MaxUses)]
}

// join merges two lists from MostUsed.
func join[S any, P usage[S]](a, b []S) []S {
	all := map[string]P{}
	for _, s := range slices.Concat(a, b) {
		name, _ := P(&s).key()
		if have := all[name]; have != nil {
			have.Add(s)
		} else {
			all[name] = P(&s)
		}
	}
	return MostUsed(all)
}

// Add adds the figures of another process's Pool to s. Figures of single threads are left out. Owners and workers that
// were cut from either list are not in the sum.
func (s *Stats) Add(o Stats) {
	s.Counts.Add(o.Counts)
	s.Parked += o.Parked
	s.Held += o.Held
	s.Charged += o.Charged
	s.Done.Add(o.Done)
	s.Code.Add(o.Code)
	s.Prewarmed.Add(o.Prewarmed)
	s.Threads = nil
	s.Discards, s.Kills = sum(s.Discards, o.Discards), sum(s.Kills, o.Kills)
	s.Owners, s.Workers = join(s.Owners, o.Owners), join(s.Workers, o.Workers)
}

func sum(a, b map[string]uint64) map[string]uint64 {
	all := map[string]uint64{}
	for _, m := range [...]map[string]uint64{a, b} {
		for reason, n := range m {
			all[reason] += n
		}
	}
	return all
}
