package dispatch

import (
	"math"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// reports decides what becomes of the events that threads report about, and frees what their attempts used. d.mu must
// be held for all methods.
type reports struct {
	log      zerolog.Logger
	b        *backlog
	placer   *placer
	gatherer *gatherer
}

// take judges the reports of a thread. It returns the attempts whose events go back to their queues.
func (x *reports) take(thread int, all []lifecycle.Report, now time.Time, fx *effects) (back []*run) {
	for i := range all {
		if w := all[i].Closed; w != nil {
			x.closed(thread, w)
			continue
		}
		r, ok := all[i].Attempt.Slot.(*run)
		if !ok || r.ended {
			x.log.Error().Int("thread", thread).Msg("report of an attempt that no thread has: ignored")
			continue
		}
		if x.one(r, &all[i], now, fx) {
			back = append(back, r)
		}
	}
	return back
}

// closed notes that a thread closed its contexts of a version. The owner may have left the thread's pool since.
func (x *reports) closed(thread int, w *workers.Worker) {
	number, thread := PoolOfThread(thread)
	v := installed(x.b.owners, w)
	if v == nil || thread < 0 {
		return
	}
	if p := x.b.owners[w.Owner].pool; p.number == number {
		v.warm &^= 1 << thread
		x.b.pools.touch(p)
	}
}

// takeBack queues the events of attempts that a thread did not start, if they may start now.
func (x *reports) takeBack(all []*run, now time.Time, fx *effects) {
	for _, r := range slices.Backward(all) { // the last one goes first, so that they keep their order
		if x.b.owners[r.owner.name] != r.owner { // it was forgotten with its last attempt
			x.b.know(r.owner)
		}
		if x.b.gates.crashes.takesBack(r) {
			continue
		}
		if r.route.gone {
			r.owner.keep(r.route)
		}
		items := slices.DeleteFunc(r.items(), func(it item) bool { return x.b.hold(r.owner, it.event, r.version, now, fx) })
		if len(items) == 0 {
			x.b.forget(r.owner)
			continue
		}
		x.gatherer.pushBatch(r.owner, items, true, fx)
	}
}

// one judges one report. It returns true when the event goes back to its queue.
func (x *reports) one(r *run, rep *lifecycle.Report, now time.Time, fx *effects) (requeue bool) {
	took := now.Sub(r.Start)
	reply, end := rep.Reply, rep.End
	if end != nil && end.Retry && !r.replied {
		reply = nil // it runs again: this is not the final reply
	}
	if reply != nil {
		r.replied, r.Status = true, uint16(reply.Status) // also when the end comes with it
		r.Replied, r.Sent = took, uint32(min(len(reply.Body)+reply.Dropped, math.MaxUint32))
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
		return x.batch(r, end, now, fx)
	}
	is := judge(x.ending(r, r.Event, r.Number, end, now))
	if end.Interrupted && end.Started {
		r.Event.Interrupted++
	}
	if is.notRun {
		return x.notRun(r, end, now, fx)
	}
	x.end(r, end, now, fx)
	s := x.b.settlement(r.Event, r.version, is, took)
	s.Brief = end.Started && !end.Waited && end.CPU <= briefCPU
	if reply != nil {
		s.Reply = reply
	}
	fx.settle = append(fx.settle, s)
	return false
}

// notRun ends an attempt that was not made. It returns true when its events go back to their queues. When the
// dispatcher drains, they go back to the stream, if one has them.
func (x *reports) notRun(r *run, end *lifecycle.End, now time.Time, fx *effects) (requeue bool) {
	r.back = !x.b.draining || r.Event.Direct()
	x.end(r, end, now, fx)
	if !r.back {
		for _, it := range r.items() {
			fx.settle = append(fx.settle, returned(it.event))
		}
	}
	return r.back
}

// end frees what the attempt used and updates the measurements.
func (x *reports) end(r *run, end *lifecycle.End, now time.Time, fx *effects) {
	r.ended = true
	r.began(0)
	o, took := r.owner, now.Sub(r.Start)
	x.b.setAway(r, false)
	if r.calls > 0 {
		x.placer.setCalling(r, false)
	}
	x.b.gates.ended(r, now, fx)
	x.b.running--
	x.b.used.ended(r, end, took)
	cpu := end.CPU // if it did not start, that of loading its module
	if end.Started {
		cpu = max(cpu, leastCost)
		if !r.route.gone {
			x.b.metrics.label(&r.route.done, o.name)
		}
		for range max(1, len(r.Batch)) {
			x.b.metrics.ended(r.Event.Kind, took, end.Warm)
			x.b.metrics.worked(&r.route.done, now, took, end.Failure != nil)
		}
	}
	o.account.correct(r.cost, cpu)
	x.placer.ended(r, end)
	if end.Started && !end.Interrupted && !end.Cancelled() && r.Batch == nil {
		r.route.count(r.Event, r.version, end.Failure != nil || end.Broken != nil || r.Event.Kind == events.Fetch &&
			r.Status >= 500)
	}
	x.b.spend(o, max(0, cpu-r.spent))
	if others := len(r.Batch) - 1; others > 0 {
		o.extra -= others
		o.overflow.left(others)
		x.b.makeRoom(o, fx)
	}
	x.b.changed(o)
	x.b.forget(o)
}

// batch judges how each event of a batch ended. It returns true when the batch goes back to its queue.
func (x *reports) batch(r *run, end *lifecycle.End, now time.Time, fx *effects) (requeue bool) {
	took, n := now.Sub(r.Start), len(r.Batch)
	verdicts := make([]verdict, n)
	for i, e := range r.Batch {
		one, open := end.Of(i)
		of := x.ending(r, e, max(1, e.Attempt), &one, now)
		of.company = open && n > 1
		is := judge(of)
		if is.notRun {
			return x.notRun(r, end, now, fx)
		}
		if end.Interrupted && end.Started {
			e.Interrupted++
		}
		if end.Started && !end.Interrupted && !end.Cancelled() {
			r.route.count(e, r.version, one.Failure != nil)
		}
		e.Asked, is.outcome.Asked = one.Retry || one.Interrupted, one.Retry
		if of.company && is.outcome.Verdict == lifecycle.Retry && is.outcome.Failure != nil {
			is.outcome.Batch = int32(n)
		}
		verdicts[i] = is
	}
	x.end(r, end, now, fx)
	brief := end.Started && !end.Waited && end.CPU <= briefCPU*time.Duration(n)
	for i, e := range r.Batch {
		s := x.b.settlement(e, r.version, verdicts[i], took)
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

// ending is what the verdict on an event of r depends on.
func (x *reports) ending(r *run, e *lifecycle.Delivery, attempt int, end *lifecycle.End, now time.Time) ending {
	left := noDeadline
	if !e.Deadline.IsZero() {
		left = e.Deadline.Sub(now)
	}
	return ending{
		request: requestOf(e),
		end:     end,
		retries: r.version.retries,
		attempt: attempt - e.Spared,
		replied: r.replied,
		lost:    end.Lost && !guard.CrashSuspects.Off(),
		left:    left,
		rand:    x.b.cfg.Rand,
	}
}
