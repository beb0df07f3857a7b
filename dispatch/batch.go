package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// A worker with a queue handler gets its tasks in batches. Tasks of one version gather until there are as many as a
// batch may have, or until the first of them has waited long enough. Then the batch is one item of its owner's queue
// and one run: for the turns of owners, for the limits of running events, and for the limits of the run. The end of the
// run is judged for each event.
//
// A batch that fails does not say which event made it fail. So each event about which the handler decided nothing runs
// alone the next time. An event beside one that always fails runs at most twice because of that.

// maxBatchBytes bounds the bodies and headers of a batch. A longer event is a batch of its own.
const maxBatchBytes = 1 << 20

// refuseBatch takes out of the first item of o's queue, a batch, the events that cannot run and those that another
// version runs now. It returns the version of the others, nil when there are none: then the item is gone.
func (a *gatherer) refuseBatch(o *owner, now time.Time, fx *effects) *version {
	it := o.queue.front()
	var of *version
	var others []item
	n := 0
	gone, left := it.filter(func(one item) bool {
		v, f := a.b.gates.refuse(one.event, one.route, now)
		switch {
		case f != nil:
			fx.settle = append(fx.settle, a.b.refused(one.event, v, f))
			return false
		case of == nil:
			of = v
		}
		if v == of && v.batches(one.event) && !v.single(one.event) && n < a.batchSize(o, v) {
			n++
			return true
		}
		others = append(others, one)
		return false
	})
	o.extra -= gone
	a.b.queued -= gone
	o.overflow.left(gone - len(others))
	if !left {
		o.extra++ // the item itself was not among them
		r := o.dequeue().route
		of = nil
		o.leaveRoute(r, fx)
	}
	if len(others) > 0 {
		a.gatherAgain(o, others, fx)
		a.completeImmediate(fx)
	}
	return of
}

// reportBatch judges how each event of a batch ended. It returns true when the batch goes back to its queue.
func (d *Dispatcher) reportBatch(r *run, end *lifecycle.End, now time.Time, fx *effects) (requeue bool) {
	took, n := now.Sub(r.Start), len(r.Batch)
	verdicts := make([]verdict, n)
	for i, e := range r.Batch {
		one, open := end.Of(i)
		of := d.ending(r, e, max(1, e.Attempt), &one, now)
		of.company = open && n > 1
		is := judge(of)
		if is.notRun {
			return d.notRun(r, end, now, fx)
		}
		if end.Interrupted && end.Started {
			e.Interrupted++
		}
		if end.Started && !end.Interrupted {
			r.route.count(e, r.version, one.Failure != nil)
		}
		e.Asked, is.outcome.Asked = one.Retry || one.Interrupted, one.Retry
		if of.company && is.outcome.Verdict == lifecycle.Retry && is.outcome.Failure != nil {
			is.outcome.Batch = int32(n)
		}
		verdicts[i] = is
	}
	d.end(r, end, now, fx)
	brief := end.Started && !end.Waited && end.CPU <= briefCPU*time.Duration(n)
	for i, e := range r.Batch {
		s := d.settlement(e, r.version, verdicts[i], took)
		s.Brief = brief
		if s.Outcome.Verdict == lifecycle.Ack && s.Outcome.Failure == nil && (e.Waits() || r.Worker.Idempotent) {
			s.Reply = &events.Reply{Body: batchResult}
			complete(s.Reply, e, r.Worker.Version, took)
		}
		fx.settle = append(fx.settle, s)
	}
	return false
}

// batchResult is the result of each event that a queue handler handled. Nobody changes it.
var batchResult = []byte(`{"success":true}`)
