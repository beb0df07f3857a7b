package cells

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// Stats describes a cell, for people.
type Stats struct {
	Class    string    `json:"class"`
	Owners   []string  `json:"owners"`         // whose workers it has had, at most mostOwners
	More     int       `json:"more,omitempty"` // further owners
	Threads  int       `json:"threads"`
	Attempts int       `json:"attempts"` // that it has now
	Bytes    int64     `json:"bytes"`    // of memory that it does not share; 0 = not known
	Began    time.Time `json:"began"`
	Starts   int       `json:"starts"` // cells that the class has had in this process
	// Unconfined are the parts of its confinement that the system refused, each with the reason.
	Unconfined []string `json:"unconfined,omitempty"`
}

// mostOwners is how many owners Stats names.
const mostOwners = 20

// Cells describes the cells of the process, by class. Any goroutine may call it.
func (p *Pools) Cells() []Stats {
	list := []Stats{}
	p.each(func(c *cell) { list = append(list, c.stats()) })
	slices.SortFunc(list, func(a, b Stats) int { return strings.Compare(a.Class, b.Class) })
	return list
}

func (c *cell) stats() Stats {
	owners := c.ownersOf()
	slices.Sort(owners)
	s := Stats{
		Class: c.class.name, Owners: owners, Threads: c.threads,
		Bytes: privateBytes(c.process.PID), Began: c.began, Unconfined: c.process.Refused,
	}
	if s.More = len(owners) - mostOwners; s.More > 0 {
		s.Owners = owners[:mostOwners]
	}
	s.More = max(0, s.More)
	c.mu.Lock()
	s.Attempts = c.assigned.n
	c.mu.Unlock()
	c.class.mu.Lock()
	s.Starts = c.class.starts
	c.class.mu.Unlock()
	return s
}

// privateBytes is the memory of a process that no file backs (proc_pid_status(5): RssAnon); 0 = not known.
func privateBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if pid == 0 || err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// Stats is isolates.Pool.Stats over all pools. A cell that does not answer is left out. Any goroutine may call it.
func (p *Pools) Stats() (all isolates.Stats) {
	all = p.Pool.Stats()
	threads := all.Threads
	defer func() { all.Threads = threads }() // those of cells are not told apart
	for _, s := range askAll(p, wire.AskStats, (*cell).poolStats) {
		all.Add(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended.ColdStarts > 0 {
		all.Add(p.ended)
	}
	return all
}

// keep keeps the totals of a cell that has ended.
func (p *Pools) keep(last isolates.Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended.Add(last.Totals())
}

// askAll asks all cells at once, and returns what read makes of the answers.
func askAll[T any](p *Pools, what string, read func(*cell, []byte) (T, error)) []T {
	var mu sync.Mutex
	var list []T
	var group sync.WaitGroup
	p.each(func(c *cell) {
		group.Go(func() {
			answer, err := c.ask(what)
			if err != nil {
				return
			}
			one, err := read(c, answer)
			if err != nil {
				p.log.Debug().Err(err).Str("class", c.class.name).Msg("the answer of a cell is not used")
				return
			}
			mu.Lock()
			defer mu.Unlock()
			list = append(list, one)
		})
	})
	group.Wait()
	return list
}

// poolStats reads the figures of a cell's pool. Those of owners and workers that the cell was not given are left out,
// and so are reasons that no pool has: they become labels, and stay when the cell has ended.
func (c *cell) poolStats(answer []byte) (s isolates.Stats, err error) {
	if err := json.Unmarshal(answer, &s); err != nil {
		return s, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Owners = slices.DeleteFunc(s.Owners, func(o isolates.OwnerStats) bool { return len(c.given.owners[o.Owner]) == 0 })
	s.Workers = slices.DeleteFunc(s.Workers, func(w isolates.WorkerStats) bool {
		owner, name, _ := strings.Cut(w.Worker, "/")
		return !c.given.has(owner, name)
	})
	for _, m := range []map[string]uint64{s.Discards, s.Kills, s.Done.Broken} {
		maps.DeleteFunc(m, func(reason string, _ uint64) bool { return !isolates.KnownReason(reason) })
	}
	c.last = s
	return s, nil
}
