package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// Report takes what thread, which calls it, says of attempts, its own or those that another thread handed to it. Replies are completed (EventID, Attempt, Version, Duration)
// and passed on at once. Events that were not started go to the front of their owner's queue, or back to the stream
// when the dispatcher drains. The slice is the thread's again afterwards.
func (d *Dispatcher) Report(thread int, reports []events.Report) {
	if len(reports) == 0 {
		return
	}
	now := time.Now()
	t := tell{settle: make([]events.Settlement, 0, len(reports))}
	var back []*run
	d.mu.Lock()
	for i := range reports {
		r, ok := reports[i].Attempt.Slot.(*run)
		if !ok || r.ended {
			d.log.Error().Int("thread", thread).Msg("report of an attempt that no thread has: ignored")
			continue
		}
		if d.report(r, &reports[i], now, &t) {
			back = append(back, r)
		}
	}
	for i := len(back) - 1; i >= 0; i-- { // the last one first, so that they keep their order
		r := back[i]
		if r.Event.Watched {
			d.requeueWatched(r)
			continue
		}
		d.owners[r.owner.name] = r.owner // it may have been forgotten with its last attempt
		d.push(r.owner, item{r.Event, r.route, r.since}, true)
	}
	d.rouse(now, &t)
	d.mu.Unlock()
	d.out(&t)
}

// report judges one report. It is true when the event goes back to its queue.
func (d *Dispatcher) report(r *run, rep *events.Report, now time.Time, t *tell) (requeue bool) {
	took := now.Sub(r.Start)
	reply, end := rep.Reply, rep.End
	if end != nil && end.Retry && !r.replied {
		reply = nil // it runs again: this is not the answer
	}
	if reply != nil {
		r.replied = true
		complete(reply, r.Event, r.Worker.Version, took)
	}
	if end == nil {
		if reply != nil {
			t.settle = append(t.settle, events.Settlement{
				Event: r.Event, Reply: reply, Outcome: events.Outcome{Version: r.Worker.Version},
			})
		}
		return false
	}
	is := judge(d.ending(r, end, now))
	if end.Interrupted && end.Started {
		r.Event.Interrupted++
	}
	d.end(r, end, took)
	if is.requeue {
		return true
	}
	s := d.settlement(r.Event, r.version, is, took)
	s.Brief = end.Started && !end.Waited && end.CPU <= briefCPU
	if reply != nil {
		s.Reply = reply
	}
	t.settle = append(t.settle, s)
	return false
}

func (d *Dispatcher) ending(r *run, end *events.End, now time.Time) ending {
	left := noDeadline
	if !r.Event.Deadline.IsZero() {
		left = r.Event.Deadline.Sub(now)
	}
	return ending{
		kind: r.Event.Kind, end: end, retries: r.version.retries, attempt: r.Number,
		waits: r.Event.ReplyTo != "", replied: r.replied, draining: d.draining, lost: end.Lost && !guard.CrashSuspects.Off(), left: left, rand: d.cfg.Rand,
	}
}

// end frees what the attempt held and learns from it.
func (d *Dispatcher) end(r *run, end *events.End, took time.Duration) {
	r.ended = true
	o := r.owner
	o.running--
	d.setAway(r, false)
	d.running--
	d.onThread[r.thread]--
	cpu := end.CPU // of what did not start, that of loading its module
	if end.Started {
		cpu = max(cpu, leastCost)
		d.mean += (cpu - d.mean) / 64
		d.metrics.ended(r.Event.Kind, took, end.Warm)
	}
	o.credit = min(o.credit+r.cost-cpu, o.quantum)
	r.version.ended(1<<r.thread, end)
	d.spend(o, max(0, cpu-r.spent))
	d.changed(o)
	d.forget(o)
}
