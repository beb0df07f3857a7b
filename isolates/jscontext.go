package isolates

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/affinity"
	"github.com/pinwheel-run/pinwheel/isolates/charges"
	"github.com/pinwheel-run/pinwheel/isolates/codecache"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/timers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Contexts of a tenant share isolates while they are small. Such a context costs 0.35 MB. In its own isolate it costs
// 1.3 MB. A run may use all of its limit, in addition to what the other contexts in its isolate have. When V8 collects
// garbage, the run pays for marking what they have. So that is kept small (docs/development/adr/0023).
const (
	// maxOthers bounds what the other contexts of an isolate may have while one runs. The bound is a
	// quarter of the limit if that is less.
	maxOthers = 16 << 20
	// mostCollected is the largest isolate whose garbage is collected between runs. A collection holds the thread for
	// about a millisecond per MB of live data.
	mostCollected = 48 << 20
	// othersStep is the unit in which V8 gets the size of the other contexts in an isolate.
	othersStep = 1 << 20
)

// isolate is a V8 heap of one tenant: an owner, or a group of owners. One thread owns it at a time.
//
// busy is the number of runs in all its contexts. The sizes of the contexts add up to at most heap: measure changes
// them together. charged is what counts for the budget of the process: charges.of its heap, functions and machine code.
// While the isolate is away, its contexts stay in it, but no thread enters them.
type isolate struct {
	v8       *v8x.Isolate
	tenant   string
	mode     workers.Mode // of all workers in it
	heapMB   int
	contexts []*jsContext
	busy     int // runs in it
	used     time.Time
	rest     rest // since then
	closed   bool
	away     bool           // a turn in it has left the thread and still runs: no thread may enter it
	later    []queuedCall   // queued calls that wait until it is back
	lost     bool           // V8 does not end that turn: it was given up
	dead     []*v8x.Context // its contexts when it was lost, to be closed if it comes back

	counters  *useCounters // its tenant's on this thread
	heap      int64        // its last measured size in bytes
	functions charges.Functions
	charged   int64 // bytes, for the larger of them (charges)
	charges   charges.Rates
	sampled   time.Time // when heap was measured

	unmeasured  time.Duration // time of turns since then
	latest      *jsContext    // whose turn was the latest
	collected   int64         // its size after the last garbage collection between runs
	setToOthers int64         // the size of others that was last passed to V8
}

// othersLimit bounds what all contexts but one in the isolate may have.
func (iso *isolate) othersLimit() int64 { return min(maxOthers, int64(iso.heapMB)<<20/4) }

// setOthers passes the size of the other contexts in the isolate to V8, before jc is entered.
func (iso *isolate) setOthers(jc *jsContext) {
	others := min((jc.others()+othersStep-1)&^(othersStep-1), iso.othersLimit())
	if others != iso.setToOthers {
		iso.setToOthers = others
		iso.v8.SetOthers(uint64(others))
	}
}

// jsContext is a context with one worker's module in it. Between events it is idle and warm. Once it is outdated no
// event begins in it. It is closed only when it has no runs.
type jsContext struct {
	isolate   *isolate
	worker    *workers.Worker
	v8        *v8x.Context
	runs      []*run // under way in it: at most one, except in a persistent context
	loader    *run   // the run that evaluates its module
	uses      int
	used      time.Time       // when the latest run in it began
	size      int64           // bytes of the isolate that are attributed to it
	loaded    bool            // its module is evaluated
	state     v8x.ModuleState // after the latest step of the evaluation
	closed    bool
	functions int64        // at most this many are in its code
	handlers  int          // bits of js.CmdHandlers
	life      *life        // nil unless the context is persistent
	counters  *useCounters // its worker's on this thread
	secrets   *Secrets     // in its env; nil = the worker names none
	reset     bool         // its worker was reset
}

// outdated reports whether no further event may begin in it.
func (jc *jsContext) outdated() bool { return jc.reset || jc.secrets.Replaced() }

// warm reports whether it is an idle context of that version, with the current values of its secrets.
func (jc *jsContext) warm(w *workers.Worker) bool {
	return !jc.isolate.away && len(jc.runs) == 0 && sameVersion(jc.worker, w) && !jc.outdated()
}

// others estimates what the other contexts in the isolate of jc have, in bytes.
func (jc *jsContext) others() int64 {
	if len(jc.isolate.contexts) == 1 {
		return 0
	}
	return max(0, jc.isolate.heap-jc.size)
}

// find returns the live run with that id.
func (jc *jsContext) find(id uint64) *run {
	if jc.life != nil && id == 0 {
		return jc.life.betweenEvents
	}
	for _, r := range jc.runs {
		if r.id == id {
			return r
		}
	}
	return nil
}

// sameVersion reports whether both are the same version of the same worker. A redeploy makes a new *Worker
// of an old version only when its bundle is the same.
func sameVersion(a, b *workers.Worker) bool {
	return a == b || a.Owner == b.Owner && a.Name == b.Name && a.Version == b.Version && a.Hash == b.Hash
}

// contextIndex has the contexts of a thread by worker, in all its versions.
type contextIndex map[workerKey][]*jsContext

type workerKey struct{ owner, name string }

func keyOf(w *workers.Worker) workerKey { return workerKey{w.Owner, w.Name} }

// of returns the contexts of a worker, oldest first.
func (x contextIndex) of(owner, name string) []*jsContext { return x[workerKey{owner, name}] }

// has reports whether there is a context of that version of a worker.
func (x contextIndex) has(w *workers.Worker) bool {
	return slices.ContainsFunc(x[keyOf(w)], func(jc *jsContext) bool { return jc.worker.Version == w.Version })
}

func (x contextIndex) add(jc *jsContext) {
	k := keyOf(jc.worker)
	x[k] = append(x[k], jc)
}

func (x contextIndex) remove(jc *jsContext) {
	k := keyOf(jc.worker)
	if x[k] = slices.DeleteFunc(x[k], func(c *jsContext) bool { return c == jc }); len(x[k]) == 0 {
		delete(x, k)
	}
}

// compile compiles and evaluates the module of a context.
func (jc *jsContext) compile(c *codecache.Cache) (v8x.ModuleState, v8x.Result) {
	code := c.Get(jc.worker)
	state, result := jc.v8.Module(v8x.Source{Prefix: js.BundlePrefix, Name: jc.worker.File, Text: jc.worker.Code,
		Cache: code})
	if jc.v8.CacheRejected() {
		c.Reject(jc.worker)
	}
	return state, result
}

// phase is how far the life of a persistent context has got.
type phase int

const (
	alive    phase = iota
	retiring       // takes no more events; ends when its runs are over
	leaving        // onTerminate runs
	invalid        // must not be entered again
)

// life is what a persistent context has in addition to contexts of other modes.
type life struct {
	of            affinity.Release
	betweenEvents *run // stands for work between events, not for an event: timers of the module, hooks
	phase         phase
	why           string              // why the context is discarded
	idle          *timers.Timer[*run] // set while nothing runs
	ttl           *timers.Timer[*run] // runs from the creation of the context
	hook          int                 // the hook that runs, 0 = none
	over          []float64           // ended runs that JavaScript does not know about yet
	owed          time.Duration       // CPU time between events that is not yet charged to the owner
	counted       time.Time           // start of the period for which calls and output between events are counted
	call          v8x.Call            // of a hook
	endedCall     v8x.Call            // of prepareTurn, before another call
}
