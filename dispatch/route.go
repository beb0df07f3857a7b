package dispatch

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// route has the versions of one worker, and which of them runs an event.
type route struct {
	owner *owner
	name  string
	concurrency
	gone bool // removed; it has the events that are still here

	versions   []*version // all that may be named, oldest first; nil after Remove
	deployment workers.Deployment

	split
	before   split     // of events that were stored before from
	from     time.Time // zero: all events go by split
	outcomes workers.Outcomes
	done     workerCounts
	usage    Usage // that nobody has taken
}

// split divides the events of a worker between two versions.
type split struct {
	base      *version // has all events but those of candidate; nil = no version is active
	candidate *version // nil = there is none
	points    int      // places of keys that candidate has
}

// version is one version of a worker, with what was measured of it here.
type version struct {
	worker   *workers.Worker
	retries  workers.Retries // no zero fields
	handlers uint8           // bit k: it has a handler for Kind k
	warm     threadSet       // threads of its owner's pool that probably hold a context of it
	home     threadSet       // that of warm which has held one for longest; see homeThread
	keep     time.Time       // until when the contexts of other threads than home stay
	spare    bool            // it is in placer.spares
	coldCost estimate        // of an attempt that makes its context
	warmCost estimate        // of an attempt that finds one

	batch     workers.Batch // no zero fields
	gathering *gathering    // its incomplete batch; nil = there is none
}

// Results of resolve; refuse writes the message.
var (
	noWorker  = &events.Failure{Reason: events.ReasonNoWorker}
	noVersion = &events.Failure{Reason: events.ReasonNoWorker}
	noActive  = &events.Failure{Reason: events.ReasonNoWorker}
)

// estimate is the expected CPU time of an event, or of a batch.
type estimate struct {
	cpu   time.Duration
	usual time.Duration // about the median: one event that takes long says little about the others
	known bool          // it was measured
}

// add takes a measured time. The last eight make up about two thirds of the average. What is usual follows each by an
// eighth of itself at most.
func (e *estimate) add(cpu time.Duration) {
	if !e.known {
		e.cpu, e.usual, e.known = cpu, cpu, true
		return
	}
	e.cpu += (cpu - e.cpu) / 8
	e.usual = min(max(cpu, e.usual-e.usual/8), e.usual+e.usual/8)
}

func newVersion(w *workers.Worker) *version {
	v := &version{
		worker: w, retries: w.Retries.OrDefault(), batch: w.Batch.OrDefault(),
		coldCost: estimate{cpu: unknownCost}, warmCost: estimate{cpu: unknownCost},
	}
	for _, k := range w.Handlers {
		v.handlers |= 1 << k
	}
	if len(w.Handlers) == 0 {
		v.handlers = 0xff // not known: the thread will find out
	}
	return v
}

// install makes the route what in says. What was measured of a version stays.
func (r *route) install(in workers.Installation) {
	last := r.base
	versions := make([]*version, len(in.Versions))
	for i, w := range in.Versions {
		if versions[i] = r.version(w.Version); versions[i] != nil && versions[i].worker.Hash == w.Hash {
			continue
		}
		versions[i] = newVersion(w)
		if last != nil {
			versions[i].coldCost.cpu, versions[i].warmCost.cpu = last.coldCost.cpu, last.warmCost.cpu // likely about the same
		}
	}
	if rolloutOf(r.deployment) != rolloutOf(in.Deployment) {
		r.outcomes = workers.Outcomes{}
	}
	r.versions, r.deployment, r.gone = versions, in.Deployment, false
	r.split, r.before, r.from = r.of(in.Deployment.Split), r.of(in.Deployment.Before), time.Time{}
	if r.before.base != nil {
		r.from = in.Deployment.Effective()
	}
}

// of is the split that shares describe.
func (r *route) of(shares []workers.Share) (s split) {
	for i, share := range shares {
		if v := r.version(share.Version); i == 0 {
			s.base = v
		} else {
			s.candidate, s.points = v, workers.Points(share.Percent)
		}
	}
	return s
}

// remove takes all versions from the route.
func (r *route) remove() {
	*r = route{owner: r.owner, name: r.name, concurrency: r.concurrency, gone: true}
}

// rolloutOf identifies the rollout of a deployment, or the deployment itself if it has none.
func rolloutOf(d workers.Deployment) int {
	if d.Rollout != nil {
		return d.Rollout.ID
	}
	return d.Number
}

func (r *route) version(name string) *version {
	for _, v := range r.versions {
		if v.worker.Version == name {
			return v
		}
	}
	return nil
}

// resolve returns the version that runs an event. Worker-Version is a whole version, its number, or an alias. Without
// it, the split decides.
func (r *route) resolve(e *lifecycle.Delivery) (*version, *events.Failure) {
	if r == nil || len(r.versions) == 0 {
		return nil, noWorker
	}
	switch {
	case e.Version != "":
		if v := r.named(e.Version); v != nil {
			return v, nil
		}
		return nil, noVersion
	case !r.from.IsZero() && !e.Stored.IsZero() && e.Stored.Before(r.from):
		return r.before.choose(e)
	}
	return r.split.choose(e)
}

// choose returns the version that runs an event.
func (s *split) choose(e *lifecycle.Delivery) (*version, *events.Failure) {
	switch {
	case s.base == nil:
		return nil, noActive
	case s.candidate != nil && e.SplitPoint() < s.points:
		return s.candidate, nil
	}
	return s.base, nil
}

// refuse returns why the event is not run, or nil, and its version.
func refuse(e *lifecycle.Delivery, r *route, now time.Time) (*version, *events.Failure) {
	v, f := r.resolve(e)
	switch {
	case f == noWorker:
		return nil, events.Fail(events.ReasonNoWorker, "there is no worker %s", e.Target())
	case f == noVersion:
		return nil, events.Fail(events.ReasonNoWorker, "worker %s has no version %q, or no longer: the active one is %s",
			e.Target(), e.Version, cmp.Or(r.deployment.Base(), "none"))
	case f == noActive:
		return nil, events.Fail(events.ReasonNoWorker, "worker %s has no active version: its versions wait to be promoted", e.Target())
	case v.handlers&(1<<e.Kind) == 0 && (e.Service == nil || e.Service.Fetches()):
		return v, events.Fail(events.ReasonNoHandler, "worker %s has no %s handler", e.Target(), e.Kind)
	case e.CrashedAlone:
		return v, events.Fail(events.ReasonCrash, "%d processes died while it ran, the last while nothing else ran in it", e.Crashes)
	case expired(e, now):
		return v, events.Fail(events.ReasonExpired, "its deadline %s passed before it could start",
			cmp.Or(strings.Join(e.Header.Fold(events.HeaderDeadline), ", "), e.Deadline.UTC().Format(time.RFC3339)))
	}
	return v, nil
}

func (r *route) named(name string) *version {
	if of, ok := r.deployment.Aliases[name]; ok {
		name = of
	}
	number, err := strconv.Atoi(name)
	for _, v := range r.versions {
		if v.worker.Version == name || err == nil && v.worker.Number == number {
			return v
		}
	}
	return nil
}

// count adds an ended run to the outcomes of the split, unless its event named the version.
func (r *route) count(e *lifecycle.Delivery, v *version, failed bool) {
	if r.candidate == nil || e.Version != "" && !e.BySplit {
		return
	}
	runs := &r.outcomes.Base
	switch v.worker.Version {
	case r.candidate.worker.Version:
		runs = &r.outcomes.Candidate
	case r.base.worker.Version:
	default:
		return
	}
	runs.Ended++
	if failed {
		runs.Failed++
	}
}

// begins notes that an attempt begins on the thread: other events of the worker need not make a context elsewhere.
func (v *version) begins(thread threadSet) {
	if v.worker.Mode != workers.Oneshot {
		v.warm |= thread
	}
}

// ended updates the measurements after an attempt on the thread.
func (v *version) ended(thread threadSet, end *lifecycle.End) {
	if end.Failure != nil || end.Interrupted || !end.Started {
		v.warm &^= thread // a context is thrown away after a failure
	} else {
		v.begins(thread)
	}
	if !end.Started {
		return
	}
	cpu := max(end.CPU, leastCost)
	if end.Warm {
		v.warmCost.add(cpu)
	} else {
		v.coldCost.add(cpu)
	}
}

// cost is the estimate for the next attempt on a thread.
func (v *version) cost(thread threadSet) *estimate {
	if v.warm&thread != 0 && v.warmCost.known {
		return &v.warmCost
	}
	return &v.coldCost
}

// homeThread returns the thread that keeps its context of v when one is enough: the one that has had it for longest.
func (v *version) homeThread() threadSet {
	if v.home&v.warm == 0 {
		v.home = v.warm.any()
	}
	return v.home
}

// batches reports whether an event of the version runs in a batch.
func (v *version) batches(e *lifecycle.Delivery) bool { return v.worker.Queue && e.Kind == events.Task }

// single reports whether an event must not run in a batch with others: it failed, and nobody asked for the next run; or
// it must not fail because of others, since it has no further run. A direct event does not wait for others.
func (v *version) single(e *lifecycle.Delivery) bool {
	return e.Direct() || e.Crashes > 0 || e.Attempt > 1 && (!e.Asked || e.Attempt-e.Spared >= v.retries.MaxAttempts)
}
