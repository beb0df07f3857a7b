package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// firstBan is how long the events of a worker are refused after it cost a thread. It doubles each further time, up
	// to longestBan. From the second thread that an owner's workers cost, all events of the owner are refused in the
	// same way.
	firstBan   = time.Minute
	longestBan = time.Hour
	// longestDirect is the most that direct events are refused because processes died. Their supervisor counts the times.
	longestDirect = 10 * time.Minute
	// remembered is how long a ban counts after its end.
	remembered = 2 * longestBan
	// mostBans is how many bans are kept; ended ones go first.
	mostBans = 10_000
	// banSlack is by how much another process's ban must be longer to count here: bans must not grow by the time that
	// their exchange takes.
	banSlack = 2 * time.Second
)

// Ban says that events of a worker or of an owner are refused because they cost threads or processes.
type Ban struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker,omitempty"` // "" = all of the owner's
	Times  int    `json:"times"`
	LeftMs int64  `json:"leftMs"` // how much longer it holds; below 0 it is over, and remembered
	// Direct: only direct events are refused, because processes died while the worker ran.
	Direct bool `json:"direct,omitempty"`
}

// banned names a worker, or with worker "" an owner.
type banned struct {
	owner, worker string
	direct        bool // only its direct events
}

// ban is what is known of a banned worker or owner.
type ban struct {
	times int
	since time.Time // when the latest began
	until time.Time
}

// bans are all known bans. A process that loses threads is replaced in the end: no owner may cause that again and again
// with new events, workers and versions. Guarded by the dispatcher's lock.
type bans map[banned]ban

// Lost reports that code of w, in a run that began at the given time, cost a thread. It may be called from any
// goroutine.
func (d *Dispatcher) Lost(w *events.Worker, began time.Time) {
	if guard.CrashSuspects.Off() {
		return
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	worker, owner := banned{owner: w.Owner, worker: w.Name}, banned{owner: w.Owner}
	switch o := d.bans.get(owner, now); {
	case o.times == 0:
		d.set(owner, ban{times: 1, since: now, until: now}, now)
	case !now.Before(o.until):
		d.set(owner, ban{o.times + 1, now, now.Add(banFor(o.times))}, now)
	}
	// Of several runs that were under way when the first was found, only the first counts for the worker.
	if b := d.bans.get(worker, now); b.times == 0 || !began.Before(b.since) {
		d.set(worker, ban{b.times + 1, now, now.Add(banFor(b.times + 1))}, now)
	}
	d.log.Error().Str("owner", w.Owner).Str("worker", w.Name).Str("version", w.Version).Time("worker_refused_until", d.bans[worker].until).
		Time("owner_refused_until", d.bans[owner].until).Msg("a worker cost this process a thread: its events are refused for some time")
}

// Overstays reports that a turn of w continues in V8 although it was told to end, or that this is over. Meanwhile no
// event of its owner starts: it may do the same, and there would be no thread left. Any goroutine may call it.
func (d *Dispatcher) Overstays(w *events.Worker, is bool) {
	d.locked(func(time.Time, *effects) {
		if d.overstay == nil {
			d.overstay = map[string]int{}
		}
		if is {
			d.overstay[w.Owner]++
		} else if d.overstay[w.Owner]--; d.overstay[w.Owner] <= 0 {
			delete(d.overstay, w.Owner)
		}
		if o := d.owners[w.Owner]; o != nil {
			d.changed(o)
		}
	})
}

// mayRun reports whether the owner may have one more event running.
func mayRun(d *Dispatcher, o *owner) bool {
	return o.running < o.maxRunning && d.overstay[o.name] == 0
}

// get returns the ban of a key, or the zero ban when it no longer counts.
func (b bans) get(key banned, now time.Time) ban {
	if x := b[key]; now.Sub(x.until) <= remembered {
		return x
	}
	return ban{}
}

// banFor returns how long the n-th ban holds.
func banFor(n int) time.Duration { return min(firstBan<<min(n-1, 16), longestBan) }

func (d *Dispatcher) set(key banned, b ban, now time.Time) {
	if d.bans == nil {
		d.bans = bans{}
	}
	for old, x := range d.bans {
		if now.Sub(x.until) > remembered || len(d.bans) >= mostBans && !x.until.After(now) {
			delete(d.bans, old)
		}
	}
	if _, known := d.bans[key]; known || len(d.bans) < mostBans {
		d.bans[key] = b
	}
}

// banFailure returns the failure of an event that a ban refuses, or nil.
func banFailure(d *Dispatcher, e *events.Event, now time.Time) *events.Failure {
	for _, key := range [...]banned{{e.Owner, e.Worker, false}, {owner: e.Owner}, {e.Owner, e.Worker, true}, {owner: e.Owner, direct: true}} {
		if key.direct && !e.Direct() {
			return nil
		}
		b := d.bans[key]
		if !now.Before(b.until) {
			continue
		}
		who := "worker " + e.Target()
		if key.worker == "" {
			who = "owner " + e.Owner
		}
		if key.direct {
			return d.trials.refuse(b.until.Sub(now), "%s has ended processes, %d times lately: its requests are refused for %s more", who, b.times, b.until.Sub(now).Round(time.Second))
		}
		return events.Fail(events.ReasonCrash, "%s has cost processes threads, %d times lately: its events are refused for %s more", who, b.times, b.until.Sub(now).Round(time.Second))
	}
	return nil
}

// refuse returns why the event is not run, or nil, and its version.
func (d *Dispatcher) refuse(e *events.Event, r *route, now time.Time) (*version, *events.Failure) {
	v, f := refuse(e, r, now)
	if f == nil && len(d.bans) > 0 {
		f = banFailure(d, e, now)
	}
	if f == nil && len(d.trials.suspects) > 0 && e.Direct() {
		f = d.trials.try(e, now)
	}
	return v, f
}

// Bans returns the bans for other processes. It may be called from any goroutine.
func (d *Dispatcher) Bans() []Ban {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []Ban
	for key, b := range d.bans {
		if now.Sub(b.until) <= remembered {
			all = append(all, Ban{key.owner, key.worker, b.times, b.until.Sub(now).Milliseconds(), key.direct})
		}
	}
	return all
}

// HearBans takes the bans of another process of the fleet. It may be called from any goroutine.
func (d *Dispatcher) HearBans(all []Ban) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range all {
		longest := longestBan
		if b.Direct {
			longest = longestDirect
		}
		left := min(time.Duration(b.LeftMs)*time.Millisecond, longest)
		if b.Times < 1 || left < -remembered || !events.ValidName(b.Owner) || b.Worker != "" && !events.ValidName(b.Worker) {
			continue
		}
		key := banned{b.Owner, b.Worker, b.Direct}
		mine := d.bans.get(key, now)
		until := now.Add(left)
		if mine.times > 0 && until.Sub(mine.until) <= banSlack && b.Times <= mine.times {
			continue
		}
		if until.Before(mine.until) {
			until = mine.until
		}
		since := mine.since
		if b.Times > mine.times { // it is new here
			since = now
		}
		d.set(key, ban{max(b.Times, mine.times), since, until}, now)
	}
}

// holding returns how many bans hold now, of all events or of direct ones.
func (b bans) holding(direct bool, now time.Time) (n int) {
	for key, x := range b {
		if key.direct == direct && now.Before(x.until) {
			n++
		}
	}
	return n
}
