package isolates

import (
	"fmt"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// isolate is a V8 heap of one owner on one thread.
type isolate struct {
	v8     *v8x.Isolate
	owner  string
	heapMB int
	guests []*guest
	busy   int // guests with a run
	used   time.Time

	tally   *ownerTally // its owner's on this thread
	heap    int64       // its size in bytes when last asked
	sampled time.Time   // when that was
}

// guest is a context with one worker's module in it. Between events it is idle and warm.
type guest struct {
	isolate  *isolate
	worker   *events.Worker
	ctx      *v8x.Context
	run      *run // nil while idle
	uses     int
	loaded   bool // its module is evaluated
	handlers int  // bits of cmdHandlers
}

// acquire finds or makes the context for w: a warm one of that version, else a new one in an isolate of the
// owner, else a new isolate, for which the one idle the longest may have to go. It returns nil when
// every isolate that the thread may have is busy.
func (t *thread) acquire(w *events.Worker) (*guest, error) {
	own := t.isolates[w.Owner]
	for _, iso := range own {
		for _, g := range iso.guests {
			if g.run == nil && sameVersion(g.worker, w) {
				t.tally.warmHit(iso)
				return g, nil
			}
		}
	}
	heapMB := w.Limits.OrDefault().HeapMB
	for _, iso := range own {
		if iso.heapMB != heapMB {
			continue
		}
		if len(iso.guests) >= t.pool.cfg.ContextsPerIsolate && !t.dropIdleGuest(iso) {
			continue
		}
		return t.newGuest(iso, w)
	}
	if t.count >= t.maxIsolates && !t.evict() {
		return nil, nil
	}
	return t.newGuest(t.newIsolate(w.Owner, heapMB), w)
}

// sameVersion reports whether both are the same version of the same worker. A redeploy makes a new *Worker
// of an old version only when its bundle is the same.
func sameVersion(a, b *events.Worker) bool {
	return a == b || a.Name == b.Name && a.Version == b.Version && a.Hash == b.Hash
}

func (t *thread) newIsolate(owner string, heapMB int) *isolate {
	bytes := uint64(heapMB) << 20
	iso := &isolate{v8: v8x.NewIsolate(v8x.Limits{Heap: bytes, Buffers: bytes}), owner: owner, heapMB: heapMB}
	t.isolates[owner] = append(t.isolates[owner], iso)
	t.count++
	t.tally.isolateOpened(iso)
	return iso
}

// newGuest makes a context with the runtime in it, and the worker's env. The module is loaded by the first run.
func (t *thread) newGuest(iso *isolate, w *events.Worker) (*guest, error) {
	ctx, err := iso.v8.NewContext(answer)
	if err != nil {
		return nil, err
	}
	g := &guest{isolate: iso, worker: w, ctx: ctx}
	iso.guests = append(iso.guests, g)
	t.tally.contextOpened(iso)
	vars := make([]string, 0, 2*len(w.Vars))
	for name, value := range w.Vars {
		vars = append(vars, name, value)
	}
	queues := make([]string, 0, 2*len(w.Queues))
	for name, worker := range w.Queues {
		queues = append(queues, name, worker)
	}
	t.call.Reset(opEnv).Strings(vars).Strings(queues)
	if r := ctx.Call(t.call.Bytes(), nil); r.Err != nil {
		t.dropGuest(g)
		return nil, fmt.Errorf("isolates: env: %w", r.Err)
	}
	return g, nil
}

// dropGuest closes a context; its run, if any, is the caller's to end.
func (t *thread) dropGuest(g *guest) {
	iso := g.isolate
	iso.guests = slices.DeleteFunc(iso.guests, func(x *guest) bool { return x == g })
	if g.run != nil {
		iso.busy--
		t.tally.left(iso, iso.busy)
	}
	g.ctx.Close()
	t.tally.contextClosed(iso)
}

// dropIdleGuest makes room in an isolate by closing an idle context of another worker or version.
func (t *thread) dropIdleGuest(iso *isolate) bool {
	for _, g := range iso.guests {
		if g.run == nil {
			t.tally.discards.inc(discardRoom)
			t.dropGuest(g)
			return true
		}
	}
	return false
}

// dropIsolate closes an isolate and all its contexts.
func (t *thread) dropIsolate(iso *isolate) {
	for len(iso.guests) > 0 {
		t.dropGuest(iso.guests[0])
	}
	rest := slices.DeleteFunc(t.isolates[iso.owner], func(x *isolate) bool { return x == iso })
	if len(rest) == 0 {
		delete(t.isolates, iso.owner)
	} else {
		t.isolates[iso.owner] = rest
	}
	iso.v8.Close()
	t.count--
	t.tally.isolateClosed(iso)
}

// evict closes the isolate that has been idle the longest.
func (t *thread) evict() bool {
	var oldest *isolate
	for _, list := range t.isolates {
		for _, iso := range list {
			if iso.busy == 0 && (oldest == nil || iso.used.Before(oldest.used)) {
				oldest = iso
			}
		}
	}
	if oldest == nil {
		return false
	}
	t.dropIsolate(oldest)
	t.tally.evictions.Add(1)
	return true
}
