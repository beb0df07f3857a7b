package cells

import (
	"errors"
	"io"
	"syscall"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

// mostDeaths is how many cells may end while an event runs in them that may have ended them. Then it fails: it is not
// known which event ended them, but no other one was in so many.
const mostDeaths = 5

// reap waits for the end of the process, and reports every attempt that it had. why is the error of serve.
func (c *cell) reap(why error) {
	ending := c.process.Wait()
	c.mu.Lock()
	if c.overdue != nil {
		c.overdue.Stop()
	}
	c.mu.Unlock()
	c.conn.Close()
	c.explain(why, ending)
	guilty := suspects(ending.Crash)
	c.blame(guilty)
	reports := make([][]lifecycle.Report, c.threads)
	var bodies []*stream
	c.mu.Lock()
	c.assigned.all(func(id uint64, x *assignment) {
		end := endOf(x, guilty, ending.Crash)
		reports[x.thread] = append(reports[x.thread], lifecycle.Report{Attempt: x.attempt, End: end})
		bodies = append(bodies, x.stream)
		unlisten(x.attempt)
		c.assigned.remove(id)
	})
	c.mu.Unlock()
	for _, body := range bodies {
		body.breakOff(events.Fail(events.ReasonUnavailable, "the run was interrupted"))
	}
	c.pools.keep(c.last)
	c.sockets.end()
	for index, list := range reports {
		if len(list) > 0 {
			c.pools.dispatch.Report(c.class.thread(index), list)
		}
	}
}

// explain counts and logs the end of a cell.
func (c *cell) explain(why error, ending Ending) {
	if why == nil {
		c.pools.metrics.ended(c.how)
		return
	}
	how, text := "died", ending.Why
	switch {
	case !died(why):
		how, text = "lie", why.Error()
	case ending.Memory:
		how, text = "memory", "the kernel ended it: no memory was left for it"
	}
	end := c.badEnd(how, text)
	c.pools.metrics.badly(end)
	c.pools.log.Error().Err(why).Str("class", c.class.name).Str("end", ending.Why).Str("text", ending.Text).
		Msg(map[string]string{
			"died":   "a cell died: its attempts run again in the next one",
			"memory": "a cell used more memory than it may: its attempts run again in the next one",
			"lie":    "a cell sent what none sends, and was ended: it may have been broken into",
		}[how])
	if how != "died" && c.pools.cfg.Caused != nil {
		c.pools.cfg.Caused(end)
	}
}

// suspects returns the run that ended a cell; nil = it is not known.
func suspects(crash crashnote.Crash) []crashnote.Run {
	if crash.Sure || len(crash.Runs) == 1 { // nothing else was in V8
		return crash.Runs
	}
	return nil
}

// blame has the dispatcher refuse a worker for a time that has ended the cell.
func (c *cell) blame(guilty []crashnote.Run) {
	for _, run := range guilty {
		c.mu.Lock()
		w := c.given.named[version{run.Owner, run.Worker, run.Version}]
		c.mu.Unlock()
		if w != nil { // otherwise the note lies, and names nobody of the class
			c.pools.dispatch.Lost(w, c.began)
		}
	}
}

// endOf is the end of an attempt whose cell has ended. It runs again, unless its worker has ended the cell, or may have
// ended several.
func endOf(x *assignment, guilty []crashnote.Run, crash crashnote.Crash) *lifecycle.End {
	end := &lifecycle.End{Started: true, Interrupted: true, Died: true}
	lost := ran(guilty, x.attempt.Worker)
	suspect := len(crash.Runs) == 0 || ran(crash.Runs, x.attempt.Worker)
	if !lost && (!suspect || interrupted(x.attempt) < mostDeaths) {
		return end
	}
	end.Interrupted, end.Died, end.Lost = false, false, lost
	if !x.replied { // the reply stands
		end.Failure = events.Fail(events.ReasonCrash, "the process of its cell died while it ran")
	}
	return end
}

// died reports whether an error is that of a connection whose other side has gone.
func died(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, wire.ErrStuck)
}

// ran reports whether the worker is among those.
func ran(runs []crashnote.Run, w *workers.Worker) bool {
	for _, run := range runs {
		if run.Owner == w.Owner && run.Worker == w.Name && run.Version == w.Version {
			return true
		}
	}
	return false
}

// interrupted is how often runs of an attempt's events were interrupted in this process.
func interrupted(a *lifecycle.Attempt) (n int) {
	n = a.Event.Interrupted
	for _, e := range a.Batch {
		n = max(n, e.Interrupted)
	}
	return n
}

// ownersOf returns the owners whose workers the cell was given.
func (c *cell) ownersOf() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for owner := range c.given.owners {
		list = append(list, owner)
	}
	return list
}
