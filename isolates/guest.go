package isolates

import (
	"fmt"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// isolate is a V8 heap of one owner, in the hands of one thread.
type isolate struct {
	v8     *v8x.Isolate
	owner  string
	mode   events.Mode // of all workers in it
	heapMB int
	guests []*guest
	busy   int // runs in it
	used   time.Time
	closed bool
	away   bool           // a turn in it is beside the thread: nobody enters it
	later  []chore        // that wait until it is back
	lost   bool           // V8 does not let that turn go: it was given up
	dead   []*v8x.Context // of it then, to be closed if it comes back

	tally   *useTally // its owner's on this thread
	heap    int64     // its size in bytes when last asked
	sampled time.Time // when that was

	unlooked  time.Duration // that turns have taken since
	collected int64         // its size when garbage was collected last between runs
	others    int64         // what V8 was told to be of others than the one that runs
}

// guest is a context with one worker's module in it. Between events it is idle and warm.
type guest struct {
	isolate  *isolate
	worker   *events.Worker
	ctx      *v8x.Context
	runs     []*run // under way in it: at most one, but for a persistent context
	loader   *run   // the run that evaluates its module
	uses     int
	used     time.Time       // when a run in it began last
	size     int64           // bytes of the isolate that are taken to be its own
	loaded   bool            // its module is evaluated
	state    v8x.ModuleState // after the latest step of that
	closed   bool
	handlers int       // bits of cmdHandlers
	life     *life     // nil but for a persistent context
	tally    *useTally // its worker's on this thread
}

// find is the live run of that id.
func (g *guest) find(id uint64) *run {
	if g.life != nil && id == 0 {
		return g.life.ground
	}
	for _, r := range g.runs {
		if r.id == id {
			return r
		}
	}
	return nil
}

// acquire finds or makes the context for w, as its mode has it. It returns nil when there is no room for it now.
func (t *thread) acquire(w *events.Worker, mode events.Mode) (*guest, error) {
	switch mode {
	case events.Oneshot:
		return t.fresh(w, mode)
	case events.Persistent:
		return t.persistent(w)
	case events.Shared:
		t.borrow(w)
	}
	return t.reuse(w, mode)
}

// reuse takes a warm context of that version, else makes a new one.
func (t *thread) reuse(w *events.Worker, mode events.Mode) (*guest, error) {
	for _, iso := range t.isolates[w.Owner] {
		if iso.mode != mode {
			continue
		}
		g := iso.warm(w)
		if g == nil {
			continue
		}
		if t.stays(g) {
			t.tally.warmHit(g)
			return g, nil
		}
		// It goes to where it has room, if it has any. What is left has the more.
		iso := t.place(w, mode)
		if !g.closed && (iso == nil || iso == g.isolate) {
			t.tally.warmHit(g)
			return g, nil
		}
		if !g.closed {
			t.tally.discards.inc(discardRoom)
			t.dropGuest(g)
		}
		return t.settle(iso, w, mode)
	}
	t.dropOutdated(w, time.Now())
	return t.settle(t.place(w, mode), w, mode)
}

// settle makes a context in the isolate, or where it is least in the way if that is nil.
func (t *thread) settle(iso *isolate, w *events.Worker, mode events.Mode) (*guest, error) {
	if iso == nil {
		iso = t.leastCrowded(t.own(w, mode))
	}
	if iso == nil {
		return nil, nil
	}
	return t.newGuest(iso, w)
}

// own are the isolates in which w may have a context.
func (t *thread) own(w *events.Worker, mode events.Mode) []*isolate {
	heapMB := t.pool.limits(w).HeapMB
	return slices.DeleteFunc(slices.Clone(t.isolates[w.Owner]), func(iso *isolate) bool {
		return iso.mode != mode || iso.heapMB != heapMB || iso.away
	})
}

// place is an isolate of the owner that has room for a context of w, else a new one for which nobody has to go; else the one with the context of the
// owner's that was used the longest ago, which goes, or a new one for which idle ones go. It is nil where all there is runs something.
func (t *thread) place(w *events.Worker, mode events.Mode) *isolate {
	own := t.own(w, mode)
	if i := slices.IndexFunc(own, t.hasRoom); i >= 0 {
		return own[i]
	}
	if t.vacant(w) {
		return t.newIsolate(w, mode)
	}
	if g := t.idlestGuest(own); g != nil {
		t.tally.discards.inc(discardRoom)
		t.dropGuest(g)
		return g.isolate
	}
	if t.room(w) {
		return t.newIsolate(w, mode)
	}
	for _, iso := range own {
		if !iso.closed && t.thin(iso) && (t.hasRoom(iso) || t.collect(iso) && t.hasRoom(iso)) {
			return iso
		}
	}
	return nil
}

// warm is an idle context of that version.
func (iso *isolate) warm(w *events.Worker) *guest {
	if iso.away {
		return nil
	}
	for _, g := range iso.guests {
		if len(g.runs) == 0 && sameVersion(g.worker, w) {
			return g
		}
	}
	return nil
}

// fresh makes a context in an isolate of its own.
func (t *thread) fresh(w *events.Worker, mode events.Mode) (*guest, error) {
	if !t.room(w) {
		return nil, nil
	}
	return t.newGuest(t.newIsolate(w, mode), w)
}

// sameVersion reports whether both are the same version of the same worker. A redeploy makes a new *Worker
// of an old version only when its bundle is the same.
func sameVersion(a, b *events.Worker) bool {
	return a == b || a.Name == b.Name && a.Version == b.Version && a.Hash == b.Hash
}

func (t *thread) newIsolate(w *events.Worker, mode events.Mode) *isolate {
	heapMB := t.pool.limits(w).HeapMB
	bytes := uint64(heapMB) << 20
	iso := &isolate{v8: t.pool.spares.isolate(v8x.Limits{Heap: bytes, Buffers: bytes}), owner: w.Owner, mode: mode, heapMB: heapMB, heap: freshHeap}
	t.pool.live.Add(1)
	t.take(iso)
	return iso
}

// take and letGo put an isolate into the thread's hands and out of them.
func (t *thread) take(iso *isolate) {
	t.isolates[iso.owner] = append(t.isolates[iso.owner], iso)
	t.count++
	t.tally.isolateOpened(iso)
}

func (t *thread) letGo(iso *isolate) {
	rest := slices.DeleteFunc(t.isolates[iso.owner], func(x *isolate) bool { return x == iso })
	if len(rest) == 0 {
		delete(t.isolates, iso.owner)
	} else {
		t.isolates[iso.owner] = rest
	}
	t.count--
	t.freed = true
	t.tally.isolateClosed(iso)
}

// newGuest makes a context with the runtime in it, and the worker's env. The module is loaded by the first run.
func (t *thread) newGuest(iso *isolate, w *events.Worker) (*guest, error) {
	ctx, err := iso.v8.NewContext(answer)
	if err != nil {
		return nil, err
	}
	g := &guest{isolate: iso, worker: w, ctx: ctx}
	iso.guests = append(iso.guests, g)
	t.tally.contextMade(g)
	t.look(iso, g, time.Now(), 0)
	vars := make([]string, 0, 2*len(w.Vars))
	for name, value := range w.Vars {
		vars = append(vars, name, value)
	}
	queues := make([]string, 0, 2*len(w.Queues))
	for name, worker := range w.Queues {
		queues = append(queues, name, worker)
	}
	t.call.Reset(opEnv).Strings(vars).Strings(queues).Bool(iso.mode == events.Persistent).Bool(t.pool.checks)
	if r := ctx.Call(t.call.Bytes(), nil); r.Err != nil {
		t.dropGuest(g)
		return nil, fmt.Errorf("isolates: env: %w", r.Err)
	}
	return g, nil
}

// enlist and delist keep count of the runs in a context.
func (t *thread) enlist(g *guest, r *run, now time.Time) {
	g.runs = append(g.runs, r)
	g.used = now
	g.isolate.busy++
	g.isolate.used = now
	t.tally.entered(g, g.isolate.busy)
}

func (t *thread) delist(g *guest, r *run) {
	n := len(g.runs)
	if g.runs = slices.DeleteFunc(g.runs, func(x *run) bool { return x == r }); len(g.runs) == n {
		return
	}
	g.isolate.busy--
	t.freed = true
	t.tally.left(g, g.isolate.busy)
}

// dropGuest closes a context in which nothing runs.
func (t *thread) dropGuest(g *guest) {
	if g.closed {
		return
	}
	g.closed = true
	iso := g.isolate
	iso.guests = slices.DeleteFunc(iso.guests, func(x *guest) bool { return x == g })
	t.bury(g)
	if iso.lost {
		iso.dead = append(iso.dead, g.ctx)
	} else {
		g.ctx.Close()
	}
	t.freed = true
	t.tally.contextClosed(g)
}

// dropIsolate closes an isolate and all its contexts, in which nothing runs.
func (t *thread) dropIsolate(iso *isolate) {
	if iso.closed {
		return
	}
	iso.closed = true
	iso.lost = iso.lost || iso.away // nobody else may touch it
	for len(iso.guests) > 0 {
		t.dropGuest(iso.guests[0])
	}
	t.letGo(iso)
	if iso.lost {
		t.pool.lost.Add(iso.heap)
	} else {
		iso.v8.Close()
	}
	t.pool.live.Add(-1)
	t.pool.trimSoon()
	if len(t.waiting) == 0 {
		t.pool.wakeHungry()
	}
}

// sweep closes the isolates that have had their one event: after its reply is on its way.
func (t *thread) sweep() {
	for _, iso := range t.spent {
		t.dropIsolate(iso)
	}
	clear(t.spent)
	t.spent = t.spent[:0]
}
