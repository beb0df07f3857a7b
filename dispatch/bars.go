package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// firstBar is how long the events of a worker are refused after it cost a thread. It doubles each further time, up to
	// longestBar. From the second thread that an owner's workers cost, all events of the owner are refused in the same
	// way.
	firstBar   = time.Minute
	longestBar = time.Hour
	// remembered is how long a bar counts after its end.
	remembered = 2 * longestBar
	// mostBars is how many bars are kept; ended ones go first.
	mostBars = 10_000
	// barSlack is by how much another process's bar must be longer to count here: bars must not grow by the time that
	// their exchange takes.
	barSlack = 2 * time.Second
)

// Bar says that the events of a worker or of an owner are refused because they cost threads.
type Bar struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker,omitempty"` // "" = all of the owner's
	Times  int    `json:"times"`
	LeftMs int64  `json:"leftMs"` // how much longer it holds; below 0 it is over, and remembered
}

// barred names a worker, or with worker "" an owner.
type barred struct{ owner, worker string }

// bar is what is known of a barred worker or owner.
type bar struct {
	times int
	since time.Time // when the latest began
	until time.Time
}

// bars are all known bars. A process that loses threads is replaced in the end: no owner may cause that again and again
// with new events, workers and versions. Guarded by the dispatcher's lock.
type bars map[barred]bar

// Lost reports that code of w, in a run that began at the given time, cost a thread. It may be called from any
// goroutine.
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
	// Of several runs that were under way when the first was found, only the first counts for the worker.
	if b := d.bars.get(worker, now); b.times == 0 || !began.Before(b.since) {
		d.set(worker, bar{b.times + 1, now, now.Add(barFor(b.times + 1))}, now)
	}
	d.log.Error().Str("owner", w.Owner).Str("worker", w.Name).Str("version", w.Version).Time("worker_refused_until", d.bars[worker].until).
		Time("owner_refused_until", d.bars[owner].until).Msg("a worker cost this process a thread: its events are refused for some time")
}

// get returns the bar of a key, or the zero bar when it no longer counts.
func (b bars) get(key barred, now time.Time) bar {
	if x := b[key]; now.Sub(x.until) <= remembered {
		return x
	}
	return bar{}
}

// barFor returns how long the n-th bar holds.
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

// barred returns the failure of an event that a bar refuses, or nil.
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

// refuse returns why the event is not run, or nil, and its version.
func (d *Dispatcher) refuse(e *events.Event, r *route, now time.Time) (*version, *events.Failure) {
	v, f := refuse(e, r, now)
	if f == nil && len(d.bars) > 0 {
		f = d.barred(e, now)
	}
	return v, f
}

// Bars returns the bars for other processes. It may be called from any goroutine.
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

// HearBars takes the bars of another process of the fleet. It may be called from any goroutine.
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
		if b.Times > mine.times { // it is new here
			since = now
		}
		d.set(key, bar{max(b.Times, mine.times), since, until}, now)
	}
}

// holding returns how many bars hold now.
func (b bars) holding(now time.Time) (n int) {
	for _, x := range b {
		if now.Before(x.until) {
			n++
		}
	}
	return n
}
