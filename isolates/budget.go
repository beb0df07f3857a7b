package isolates

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// The heaps of all isolates of a process lie in one address range of 4 GB (V8's pointer compression cage), and V8 ends the
// process, or a thread of it, when that is full. So their sum is kept below a budget: a new isolate is made only where it
// fits, and where those there are have grown too large the idle ones go, then the largest.
const (
	cageMB  = 4096
	slackMB = 512 // a single value may be as large as that before V8 looks at any limit
	// freshHeap is what a new isolate is taken to have, with a context from the snapshot: it is asked after its first turns.
	freshHeap = 3 << 20
	// lookAfter is how long a turn takes in which a heap may have grown by an amount that matters: it is asked then.
	lookAfter = 2 * time.Millisecond
)

// mostHeapMB is the largest budget for so many threads: beside the slack, each may be in an isolate that is about to grow to
// its limit, and by as much beyond as others in it may have.
func mostHeapMB(threads int) int {
	return max(cageMB-slackMB-threads*(events.DefaultLimits.HeapMB+crowdBytes>>20), 512)
}

// ownerUse is what an owner has in the process: isolates, and bytes in them and held for them.
func (p *Pool) ownerUse(owner string) (isolates, bytes int64) {
	add := func(c *tally) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if u := c.owners[owner]; u != nil {
			isolates += u.isolates.Load()
			bytes += u.heap.Load()
		}
	}
	for i := range p.threads {
		add(&p.threads[i].Load().tally)
	}
	add(&p.commons.tally)
	return isolates, bytes + p.holdings.of(owner)
}

// heapBytes is the size of all isolates, each as it was when last asked, and of those that are lost with their threads.
func (p *Pool) heapBytes() int64 {
	sum := p.lost.Load() + p.commons.tally.heap.Load()
	for i := range p.threads {
		sum += p.threads[i].Load().tally.heap.Load()
	}
	return sum
}

// room makes sure that w may have one isolate more, for which others may have to go: of its owner when that has its share, else
// those idle the longest. It is false when what is there is in use: the attempt has to wait.
func (t *thread) room(w *events.Worker) bool {
	cfg := &t.pool.cfg
	if t.count >= t.maxIsolates {
		t.sweep()
	}
	for {
		n, bytes := t.pool.ownerUse(w.Owner)
		mostN, mostBytes := t.pool.share(w.Owner)
		if n < mostN && bytes+freshHeap <= mostBytes {
			break
		}
		if !t.evictOf(w.Owner) {
			return false
		}
	}
	for int(t.pool.live.Load()) >= cfg.MaxIsolates-cfg.spares() || t.pool.inUse()+freshHeap > int64(cfg.HeapMB)<<20 {
		if !t.evictAnyFor(w.Owner) {
			return false
		}
	}
	return t.count < t.maxIsolates || t.evictFor(w.Owner)
}

// vacant reports whether there is room for one isolate more of w as things are.
func (t *thread) vacant(w *events.Worker) bool {
	cfg := &t.pool.cfg
	n, bytes := t.pool.ownerUse(w.Owner)
	mostN, mostBytes := t.pool.share(w.Owner)
	return n < mostN && bytes+freshHeap <= mostBytes && t.count < t.maxIsolates &&
		int(t.pool.live.Load()) < cfg.MaxIsolates-cfg.spares() && t.pool.inUse()+freshHeap <= int64(cfg.HeapMB)<<20
}

// evict closes the isolate that has been idle the longest; those of persistent workers come last.
func (t *thread) evict() bool {
	var oldest *isolate
	for _, list := range t.isolates {
		oldest = idlest(oldest, list)
	}
	return t.send(oldest)
}

// evictOf does it among those of one owner.
func (t *thread) evictOf(owner string) bool {
	return t.evictShared(owner) || t.send(idlest(nil, t.isolates[owner]))
}

// idlest is what should go first of oldest and those in the list in which nothing runs.
func idlest(oldest *isolate, list []*isolate) *isolate {
	for _, iso := range list {
		if iso.busy == 0 && !iso.away && (oldest == nil || iso.goesBefore(oldest)) {
			oldest = iso
		}
	}
	return oldest
}

func (iso *isolate) goesBefore(other *isolate) bool {
	if a, b := iso.mode == events.Persistent, other.mode == events.Persistent; a != b {
		return b
	}
	return iso.used.Before(other.used)
}

// send closes an idle isolate to make room.
func (t *thread) send(iso *isolate) bool {
	if iso == nil {
		return false
	}
	t.farewell(iso)
	t.dropIsolate(iso)
	t.tally.evictions.Add(1)
	return true
}

// relieve brings the heaps of the process below the budget after one has grown: idle isolates of this thread go, then what
// runs in the largest isolate of the owner that has most. Between turns only.
func (t *thread) relieve() {
	going := int64(0) // held for what was ended here: it is let go of elsewhere
	for t.grown && t.pool.inUse()-going > int64(t.pool.cfg.HeapMB)<<20 {
		if t.evictShared("") || t.evictGreedy() {
			continue
		}
		iso := t.largest()
		if iso == nil || t.pool.inUse()/max(1, t.pool.live.Load()) > iso.size() {
			break // others have more: their threads will see to it
		}
		going += iso.size() - iso.heap
		t.expel(iso)
	}
	t.grown = false
}

// largest is the largest isolate of the owner that has most on this thread.
func (t *thread) largest() (most *isolate) {
	for _, list := range t.isolates {
		for _, iso := range list {
			if iso.away {
				continue
			}
			if most == nil || cmp.Or(cmp.Compare(iso.tally.heap.Load()+t.pool.holdings.of(iso.owner), most.tally.heap.Load()+t.pool.holdings.of(most.owner)),
				cmp.Compare(iso.size(), most.size())) > 0 {
				most = iso
			}
		}
	}
	return most
}

// expel ends what runs in an isolate for want of memory in the process, and the isolate.
func (t *thread) expel(iso *isolate) {
	t.tally.kills.inc(string(events.ReasonMemory))
	message := fmt.Sprintf("the heaps of the process have passed %d MB, and this one of %d MB was the largest of the owner that had most",
		t.pool.cfg.HeapMB, iso.heap>>20)
	for len(iso.guests) > 0 && !iso.closed {
		g := iso.guests[0]
		for len(g.runs) > 0 {
			t.stop(g.runs[0], events.ReasonMemory, message)
		}
		if !g.closed {
			t.dropGuest(g)
		}
	}
	t.dropIsolate(iso)
}

// trimAfter is how soon the memory of closed isolates goes back to the operating system, all of it at once.
const trimAfter = 2 * time.Second

// trimSoon has that done. It goes on after Close.
func (p *Pool) trimSoon() {
	if p.trimSet.CompareAndSwap(false, true) {
		time.AfterFunc(trimAfter, func() {
			p.trimSet.Store(false)
			v8x.Trim()
		})
	}
}
