package isolates

import (
	"cmp"
	"slices"
)

// Stats is what a Pool, or several, has and has done.
type Stats struct {
	Counts
	Discards map[string]uint64 `json:"discards"` // contexts thrown away, by reason
	Kills    map[string]uint64 `json:"kills"`    // isolates closed because an event in them passed a limit, by reason
	Parked   int               `json:"parked"`   // threads lost to fatal errors in V8, since the start
	Threads  []ThreadStats     `json:"threads,omitempty"`
	Owners   []OwnerStats      `json:"owners"` // those with the most isolates first, at most maxOwnerStats
}

// Counts are the figures of a thread, and their sum those of a Pool.
type Counts struct {
	Total    int `json:"total"`    // isolates there may be
	Cached   int `json:"cached"`   // isolates there are that run nothing: idle and warm
	Busy     int `json:"busy"`     // isolates there are that run something
	Capacity int `json:"capacity"` // isolates there may be still: Total - Cached - Busy
	Contexts int `json:"contexts"`
	Running  int `json:"running"` // attempts in a context

	HitRate    float64 `json:"hit_rate"`    // WarmHits / (WarmHits + ColdStarts), 0 of none
	WarmHits   uint64  `json:"warm_hits"`   // attempts that found a context of their version
	ColdStarts uint64  `json:"cold_starts"` // contexts made
	Evictions  uint64  `json:"evictions"`   // idle isolates closed to make room for another
	HeapBytes  int64   `json:"heap_bytes"`  // of all isolates, each as large as it was when last asked: an estimate
}

// ThreadStats are the figures of a pinned thread.
type ThreadStats struct {
	Thread int `json:"thread"`
	Counts
}

// OwnerStats is what an owner has, with what it did since its oldest isolate of each thread was made.
type OwnerStats struct {
	Owner      string `json:"owner"`
	Isolates   int    `json:"isolates"`
	Contexts   int    `json:"contexts"`
	Running    int    `json:"running"`
	WarmHits   uint64 `json:"warm_hits"`
	ColdStarts uint64 `json:"cold_starts"`
	HeapBytes  int64  `json:"heap_bytes"`
}

// maxOwnerStats bounds Stats.Owners.
const maxOwnerStats = 20

// add sums up, all but the derived figures.
func (c *Counts) add(o Counts) {
	c.Total += o.Total
	c.Cached += o.Cached
	c.Busy += o.Busy
	c.Contexts += o.Contexts
	c.Running += o.Running
	c.WarmHits += o.WarmHits
	c.ColdStarts += o.ColdStarts
	c.Evictions += o.Evictions
	c.HeapBytes += o.HeapBytes
	c.derive()
}

func (c *Counts) derive() {
	c.Capacity, c.HitRate = max(0, c.Total-c.Cached-c.Busy), 0
	if n := c.WarmHits + c.ColdStarts; n > 0 {
		c.HitRate = float64(c.WarmHits) / float64(n)
	}
}

// Stats is a snapshot, for people and metrics: its figures are not all of the same moment. From any goroutine.
func (p *Pool) Stats() Stats {
	s := Stats{Discards: map[string]uint64{}, Kills: map[string]uint64{}, Parked: int(p.parked.Load()), Owners: []OwnerStats{}}
	owners := map[string]*OwnerStats{}
	for i := range p.threads {
		t := p.threads[i].Load()
		c := t.counts()
		s.Counts.add(c)
		s.Threads = append(s.Threads, ThreadStats{i, c})
		t.tally.discards.add(s.Discards)
		t.tally.kills.add(s.Kills)
		t.tally.addOwners(owners)
	}
	p.commons.mu.Lock()
	shared := &p.commons.tally
	s.Counts.add(Counts{Cached: int(shared.isolates.Load()), Contexts: int(shared.contexts.Load()), HeapBytes: shared.heap.Load()})
	p.commons.mu.Unlock()
	shared.addOwners(owners)
	for _, o := range owners {
		s.Owners = append(s.Owners, *o)
	}
	s.Owners = mostIsolates(s.Owners)
	return s
}

func (t *thread) counts() Counts {
	n := &t.tally
	busy := int(n.busy.Load())
	c := Counts{
		Total: t.maxIsolates, Busy: busy, Cached: max(0, int(n.isolates.Load())-busy), Contexts: int(n.contexts.Load()), Running: int(n.running.Load()),
		WarmHits: n.warm.Load(), ColdStarts: n.cold.Load(), Evictions: n.evictions.Load(), HeapBytes: n.heap.Load(),
	}
	c.derive()
	return c
}

func (c *tally) addOwners(all map[string]*OwnerStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.owners {
		o := all[name]
		if o == nil {
			o = &OwnerStats{Owner: name}
			all[name] = o
		}
		o.add(OwnerStats{
			Isolates: int(n.isolates.Load()), Contexts: int(n.contexts.Load()), Running: int(n.running.Load()),
			WarmHits: n.warm.Load(), ColdStarts: n.cold.Load(), HeapBytes: n.heap.Load(),
		})
	}
}

func (o *OwnerStats) add(x OwnerStats) {
	o.Isolates += x.Isolates
	o.Contexts += x.Contexts
	o.Running += x.Running
	o.WarmHits += x.WarmHits
	o.ColdStarts += x.ColdStarts
	o.HeapBytes += x.HeapBytes
}

// mostIsolates sorts the list and cuts it.
func mostIsolates(list []OwnerStats) []OwnerStats {
	slices.SortFunc(list, func(a, b OwnerStats) int {
		return cmp.Or(b.Isolates-a.Isolates, cmp.Compare(b.HeapBytes, a.HeapBytes), cmp.Compare(a.Owner, b.Owner))
	})
	return list[:min(len(list), maxOwnerStats)]
}

// Add puts the figures of another process's Pool to s. Its threads stay apart: they are left out. Owners beyond the
// first of either list are not in the sum.
func (s *Stats) Add(o Stats) {
	s.Counts.add(o.Counts)
	s.Parked += o.Parked
	s.Threads = nil
	s.Discards, s.Kills = sum(s.Discards, o.Discards), sum(s.Kills, o.Kills)
	for _, x := range o.Owners {
		i := slices.IndexFunc(s.Owners, func(y OwnerStats) bool { return y.Owner == x.Owner })
		if i < 0 {
			s.Owners = append(s.Owners, OwnerStats{Owner: x.Owner})
			i = len(s.Owners) - 1
		}
		s.Owners[i].add(x)
	}
	s.Owners = mostIsolates(s.Owners)
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
