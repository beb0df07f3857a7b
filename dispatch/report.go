package dispatch

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Report takes reports of the calling thread about its attempts, or about those that another thread handed to it.
// Replies are completed (EventID, Attempt, Version, Duration) and passed on at once. Events that were not started go to
// the front of their owner's queue. When the dispatcher drains, they go back to the stream, unless they are direct. The
// thread may use the slice again afterwards.
func (d *Dispatcher) Report(thread int, reports []lifecycle.Report) {
	if len(reports) == 0 {
		return
	}
	for i := range reports {
		if r := &reports[i]; r.Reply != nil && r.End == nil {
			r.Attempt.Status = r.Reply.Status // first: observers see it in the report of the end
		}
	}
	d.observed.reported(reports)
	d.locked(func(now time.Time, fx *effects) {
		fx.settle = make([]lifecycle.Settlement, 0, len(reports))
		d.takeBack(d.reports(thread, reports, now, fx), fx)
	})
}

// reports judges the reports of a thread. It returns the attempts whose events go back to their queues. d.mu must be
// held.
func (d *Dispatcher) reports(thread int, all []lifecycle.Report, now time.Time, fx *effects) (back []*run) {
	for i := range all {
		if w := all[i].Closed; w != nil {
			if v := installed(d.owners, w); v != nil {
				v.warm &^= 1 << thread
			}
			continue
		}
		r, ok := all[i].Attempt.Slot.(*run)
		if !ok || r.ended {
			d.log.Error().Int("thread", thread).Msg("report of an attempt that no thread has: ignored")
			continue
		}
		if d.report(r, &all[i], now, fx) {
			back = append(back, r)
		}
	}
	return back
}

// takeBack queues the events of attempts that a thread did not start. d.mu must be held.
func (d *Dispatcher) takeBack(all []*run, fx *effects) {
	for _, r := range slices.Backward(all) { // the last one goes first, so that they keep their order
		if d.gates.crashes.takesBack(r) {
			continue
		}
		d.owners[r.owner.name] = r.owner // it may have been forgotten with its last attempt
		if r.route.gone {
			r.owner.keep(r.route)
		}
		d.gatherer.pushBatch(r.owner, r.items(), true, fx)
	}
}

// report judges one report. It returns true when the event goes back to its queue.
func (d *Dispatcher) report(r *run, rep *lifecycle.Report, now time.Time, fx *effects) (requeue bool) {
	took := now.Sub(r.Start)
	reply, end := rep.Reply, rep.End
	if end != nil && end.Retry && !r.replied {
		reply = nil // it runs again: this is not the final reply
	}
	if reply != nil {
		r.replied, r.Status = true, reply.Status // also when the end comes with it
		complete(reply, r.Event, r.Worker.Version, took)
	}
	if end == nil {
		if reply != nil {
			fx.settle = append(fx.settle, lifecycle.Settlement{
				Event: r.Event, Reply: reply, Outcome: lifecycle.Outcome{Version: r.Worker.Version},
			})
		}
		return false
	}
	if r.Batch != nil {
		return d.reportBatch(r, end, now, fx)
	}
	is := judge(d.ending(r, r.Event, r.Number, end, now))
	if end.Interrupted && end.Started {
		r.Event.Interrupted++
	}
	if is.notRun {
		return d.notRun(r, end, now, fx)
	}
	d.end(r, end, now, fx)
	s := d.settlement(r.Event, r.version, is, took)
	s.Brief = end.Started && !end.Waited && end.CPU <= briefCPU
	if reply != nil {
		s.Reply = reply
	}
	fx.settle = append(fx.settle, s)
	return false
}

// notRun ends an attempt that was not made. It returns true when its events go back to their queues. When the
// dispatcher drains, they go back to the stream, if one has them.
func (d *Dispatcher) notRun(r *run, end *lifecycle.End, now time.Time, fx *effects) (requeue bool) {
	r.back = !d.draining || r.Event.Direct()
	d.end(r, end, now, fx)
	if !r.back {
		for _, it := range r.items() {
			fx.settle = append(fx.settle, returned(it.event))
		}
	}
	return r.back
}

// end frees what the attempt used and updates the measurements.
func (d *Dispatcher) end(r *run, end *lifecycle.End, now time.Time, fx *effects) {
	r.ended = true
	o, took := r.owner, now.Sub(r.Start)
	d.setAway(r, false)
	if r.calls > 0 {
		d.placer.setCalling(r, false)
	}
	d.gates.ended(r, now, fx)
	d.running--
	cpu := end.CPU // if it did not start, that of loading its module
	if end.Started {
		cpu = max(cpu, leastCost)
		for range max(1, len(r.Batch)) {
			d.metrics.ended(r.Event.Kind, took, end.Warm)
			d.metrics.worked(r.route, o.name, now, took, end.Failure != nil)
		}
	}
	o.account.correct(r.cost, cpu)
	d.placer.ended(r, end)
	if end.Started && !end.Interrupted && r.Batch == nil {
		r.route.count(r.Event, r.version, end.Failure != nil || end.Broken != nil || r.Event.Kind == events.Fetch &&
			r.Status >= 500)
	}
	d.spend(o, max(0, cpu-r.spent))
	if others := len(r.Batch) - 1; others > 0 {
		o.extra -= others
		o.overflow.left(others)
		d.makeRoom(o, fx)
	}
	d.changed(o)
	d.forget(o)
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
