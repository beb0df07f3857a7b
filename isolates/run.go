package isolates

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// run is one attempt on its thread, from Next to its Report with End.
type run struct {
	attempt *events.Attempt
	guest   *guest // the context it runs in
	id      uint64 // of the run in JavaScript; never used twice on a thread
	start   time.Time
	begun   bool // its handler was called

	limits   events.Limits // of its worker, within its owner's ceilings
	cpuLeft  time.Duration
	wall     time.Time // when its wall-clock limit is over
	deadline *alarm    // set once it waits for something
	cpu      time.Duration
	told     time.Duration // of cpu, what dispatch knows

	replied bool
	failure *events.Failure // told by FAIL, kept until waitUntil is drained
	retry   bool
	noRetry bool
	delay   time.Duration
	warm    bool
	over    bool
	drained bool  // JavaScript knows that it is over
	parts   int   // of the event's body that were read
	body    *body // of its reply, in chunks; nil while there is none
	lost    bool  // V8 does not let go the turn that it was in
	ground  bool  // no event, but what a persistent context does between events

	timers  map[float64]*alarm  // pending, by id; nil until the first
	calls   map[float64]*call   // pending subrequests and sends, by id; nil until the first
	active  int                 // subrequests under way
	queued  []*call             // subrequests that wait for one of those to end
	stalled int                 // calls whose response waits for a reader
	made    int                 // subrequests so far
	sent    int                 // tasks for other workers so far
	logged  int                 // bytes of output so far
	zips    map[float64]*zip    // compression under way, by id; nil until the first
	sockets map[float64]*socket // WebSockets not closed yet, by id; nil until the first

	offloads int // operations done elsewhere that are under way

	held atomic.Int64 // bytes that Go holds for it; Pool.hold

	ctx    context.Context // of its calls; nil until the first
	cancel context.CancelFunc

	end events.End // how it ended, as reported
}

// waits reports whether anything is pending that could call into the run's JavaScript again. A response that waits for a reader cannot.
func (r *run) waits() bool { return len(r.timers) > 0 || len(r.calls) > r.stalled || r.body.waits() }

// mayGoOn reports whether the run can still come to an end by itself. In a persistent context another event may bring that about.
func (r *run) mayGoOn() bool {
	if l := r.guest.life; l != nil {
		return r.guest.loaded || r.waits() || l.ground.waits()
	}
	return r.waits()
}

// context is what the run's calls live in. It ends with the run.
func (r *run) context() context.Context {
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithDeadline(context.Background(), r.wall)
	}
	return r.ctx
}

// message is the line of output text on behalf of the run.
func (r *run) line(now time.Time, level, text string) Line {
	w := r.attempt.Worker
	l := Line{Time: now, Owner: w.Owner, Worker: w.Name, Version: w.Version, Level: level, Text: text}
	if e := r.attempt.Event; e != nil {
		l.EventID, l.Attempt = e.ID, r.attempt.Number
	}
	return l
}
