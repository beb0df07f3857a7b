package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// firstBar is how long the events of a worker are refused that has cost a thread. It doubles with each further time, up to longestBar. So it is with
	// all events of an owner, from the second thread on that its workers have cost.
	firstBar   = time.Minute
	longestBar = time.Hour
	// remembered is how long after its end a bar still counts.
	remembered = 2 * longestBar
	// mostBars is how many are known of in all; the ones that are over go first.
	mostBars = 10_000
	// barSlack is by how much longer another process's bar must be to count here: what is told back and forth must not grow by the time that takes.
	barSlack = 2 * time.Second
)

// Bar says that the events of a worker, or of an owner, are refused because they have cost threads.
type Bar struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker,omitempty"` // "" = all of the owner's
	Times  int    `json:"times"`
	LeftMs int64  `json:"leftMs"` // how long it holds still; less than 0: it is over, and remembered
}

// barred is a worker, or with worker "" an owner.
type barred struct{ owner, worker string }

// bar is what is known of it.
type bar struct {
	times int
	since time.Time // of the latest
	until time.Time
}

// bars are all of them. A process that loses threads is replaced in the end: nobody shall bring that about again and again, by whatever new events,
// workers and versions. Guarded by the dispatcher's lock.
type bars map[barred]bar

// Lost says that code of w, in a run that began then, has cost a thread. From any goroutine.
func (d *Dispatcher) Lost(w *events.Worker, began time.Time) {
	if guard.CrashSuspects.Off() {
		return
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	worker, owner := barred{w.Owner, w.Name}, barred{owner: w.Owner}
	switch o := d.bars.get(owner, now); {
	case o.times == 0:
		d.set(owner, bar{times: 1, since: now, until: now}, now)
	case !now.Before(o.until):
		d.set(owner, bar{o.times + 1, now, now.Add(barFor(o.times))}, now)
	}
	// Of several that were under way when the first was found out, the worker's first counts.
	if b := d.bars.get(worker, now); b.times == 0 || !began.Before(b.since) {
		d.set(worker, bar{b.times + 1, now, now.Add(barFor(b.times + 1))}, now)
	}
	d.log.Error().Str("owner", w.Owner).Str("worker", w.Name).Str("version", w.Version).Time("worker_refused_until", d.bars[worker].until).
		Time("owner_refused_until", d.bars[owner].until).Msg("a worker has cost this process a thread: its events are refused for a while")
}

// get is what counts of a bar: the zero one when it is long over.
func (b bars) get(key barred, now time.Time) bar {
	if x := b[key]; now.Sub(x.until) <= remembered {
		return x
	}
	return bar{}
}

// barFor is how long the n-th bar holds.
func barFor(n int) time.Duration { return min(firstBar<<min(n-1, 16), longestBar) }

func (d *Dispatcher) set(key barred, b bar, now time.Time) {
	if d.bars == nil {
		d.bars = bars{}
	}
	for old, x := range d.bars {
		if now.Sub(x.until) > remembered || len(d.bars) >= mostBars && !x.until.After(now) {
			delete(d.bars, old)
		}
	}
	if _, known := d.bars[key]; known || len(d.bars) < mostBars {
		d.bars[key] = b
	}
}

// barred is the failure of an event that is refused because of a bar, or nil.
func (d *Dispatcher) barred(e *events.Event, now time.Time) *events.Failure {
	for _, key := range [...]barred{{e.Owner, e.Worker}, {owner: e.Owner}} {
		b := d.bars[key]
		if !now.Before(b.until) {
			continue
		}
		who := "worker " + e.Target()
		if key.worker == "" {
			who = "owner " + e.Owner
		}
		return events.Fail(events.ReasonCrash, "%s has cost processes threads, %d times lately: its events are refused for %s more", who, b.times, b.until.Sub(now).Round(time.Second))
	}
	return nil
}

// refuse says why the event is not run, or nil, and by which version it is.
func (d *Dispatcher) refuse(e *events.Event, r *route, now time.Time) (*version, *events.Failure) {
	v, f := refuse(e, r, now)
	if f == nil && len(d.bars) > 0 {
		f = d.barred(e, now)
	}
	return v, f
}

// Bars are those that other processes should know. From any goroutine.
func (d *Dispatcher) Bars() []Bar {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Bar
	for key, b := range d.bars {
		if now.Sub(b.until) <= remembered {
			all = append(all, Bar{key.owner, key.worker, b.times, b.until.Sub(now).Milliseconds()})
		}
	}
	return all
}

// HearBars takes what another process of the fleet says of its bars. From any goroutine.
func (d *Dispatcher) HearBars(all []Bar) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range all {
		left := min(time.Duration(b.LeftMs)*time.Millisecond, longestBar)
		if b.Times < 1 || left < -remembered || !events.ValidName(b.Owner) || b.Worker != "" && !events.ValidName(b.Worker) {
			continue
		}
		key := barred{b.Owner, b.Worker}
		mine := d.bars.get(key, now)
		until := now.Add(left)
		if mine.times > 0 && until.Sub(mine.until) <= barSlack && b.Times <= mine.times {
			continue
		}
		if until.Before(mine.until) {
			until = mine.until
		}
		since := mine.since
		if b.Times > mine.times { // it is news
			since = now
		}
		d.set(key, bar{max(b.Times, mine.times), since, until}, now)
	}
}

// holding is how many bars hold.
func (b bars) holding(now time.Time) (n int) {
	for _, x := range b {
		if now.Before(x.until) {
			n++
		}
	}
	return n
}
