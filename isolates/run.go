package isolates

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// run is one attempt on its thread, from Next to the Report with its End.
type run struct {
	attempt *lifecycle.Attempt
	context *jsContext // the context it runs in
	id      uint64     // of the run in JavaScript; never used twice on a thread
	start   time.Time
	begun   bool // its handler was called

	tenant   string         // of its owner when it began
	limits   workers.Limits // of its worker, within its owner's ceilings
	cpuLeft  time.Duration
	loadCPU  time.Duration // limit of its module's evaluation
	wall     time.Time     // the end of its wall-clock limit
	deadline *timer        // set when it first waits for something
	cpu      time.Duration
	reported time.Duration // the part of cpu that was reported to dispatch

	replied       bool
	broken        *events.Failure // why the body of its reply broke off
	failure       *events.Failure // from cmdFail, kept until waitUntil has nothing left
	retry         bool
	noRetry       bool
	items         []lifecycle.Item // what was decided about the events of a batch; nil until the first decision
	delay         time.Duration
	warm          bool
	over          bool
	drained       bool  // JavaScript knows that the run is over
	parts         int   // number of parts of the event's body that were read
	body          *body // body of its reply, in chunks; nil while there is none
	lost          bool  // V8 does not end the turn of the run
	betweenEvents bool  // it stands for what a persistent context does between events

	timers  map[float64]*timer // pending, by id; nil until the first
	calls   map[float64]*call  // pending subrequests and sends, by id; nil until the first
	stalled int                // calls whose response waits for a reader
	session *bindings.Session  // of its calls of bindings; nil until the first
	logged  int                // bytes of output so far

	// What it has asked of Go.
	fetches  fetches
	sends    sends
	services services
	offloads offloads
	zips     zips
	sockets  sockets
	piped    piped

	held      atomic.Int64 // bytes that Go holds for it (Pool.hold)
	forgotten bool         // nothing is counted for it any more; by holdings.mu

	ctx    context.Context //nolint:containedctx // of its calls, which end with it; nil until the first
	cancel context.CancelFunc

	end lifecycle.End // how it ended, as reported
}

// waits reports whether anything is pending that could call into the run's JavaScript again. A response that waits for
// a reader cannot.
func (r *run) waits() bool { return len(r.timers) > 0 || len(r.calls) > r.stalled || r.body.waits() }

// mayGoOn reports whether the run can still end by itself. In a persistent context another event may cause that.
func (r *run) mayGoOn() bool {
	if l := r.context.life; l != nil {
		return r.context.loaded || r.waits() || l.betweenEvents.waits()
	}
	return r.waits()
}

// callContext is the Go context of the run's calls. It ends with the run.
func (r *run) callContext() context.Context {
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithDeadline(context.Background(), r.wall)
	}
	return r.ctx
}

// line returns a line of output for the run.
func (r *run) line(now time.Time, level, text string) events.LogLine {
	w := r.attempt.Worker
	l := events.LogLine{Time: now, Owner: w.Owner, Worker: w.Name, Version: w.Version, Level: level, Text: text}
	if e := r.attempt.Event; e != nil && len(r.attempt.Batch) < 2 {
		l.EventID, l.Attempt = e.ID, r.attempt.Number
	}
	if r.attempt.Trace != nil {
		l.SetTrace(r.attempt.Trace.Context())
	}
	return l
}
