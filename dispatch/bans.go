package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
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
// with new events, workers and versions. d.mu must be held for all methods.
type bans struct {
	of      map[banned]ban
	refused uint64 // direct events; for the metrics
}

// lost bans a worker, and its owner after the first time. It returns both bans.
func (b *bans) lost(w *workers.Worker, began, now time.Time) (ofWorker, ofOwner ban) {
	worker, owner := banned{owner: w.Owner, worker: w.Name}, banned{owner: w.Owner}
	switch o := b.get(owner, now); {
	case o.times == 0:
		b.set(owner, ban{times: 1, since: now, until: now}, now)
	case !now.Before(o.until):
		b.set(owner, ban{o.times + 1, now, now.Add(banFor(o.times))}, now)
	}
	// Of several runs that were under way when the first was found, only the first counts for the worker.
	if x := b.get(worker, now); x.times == 0 || !began.Before(x.since) {
		b.set(worker, ban{x.times + 1, now, now.Add(banFor(x.times + 1))}, now)
	}
	return b.of[worker], b.of[owner]
}

// get returns the ban of a key, or the zero ban when it no longer counts.
func (b *bans) get(key banned, now time.Time) ban {
	if x := b.of[key]; now.Sub(x.until) <= remembered {
		return x
	}
	return ban{}
}

// banFor returns how long the n-th ban holds.
func banFor(n int) time.Duration { return min(firstBan<<min(n-1, 16), longestBan) }

func (b *bans) set(key banned, x ban, now time.Time) {
	if b.of == nil {
		b.of = map[banned]ban{}
	}
	for old, x := range b.of {
		if now.Sub(x.until) > remembered || len(b.of) >= mostBans && !x.until.After(now) {
			delete(b.of, old)
		}
	}
	if _, known := b.of[key]; known || len(b.of) < mostBans {
		b.of[key] = x
	}
}

func (b *bans) refuse(e *lifecycle.Delivery, now time.Time) *events.Failure {
	for _, key := range [...]banned{
		{e.Owner, e.Worker, false}, {owner: e.Owner}, {e.Owner, e.Worker, true}, {owner: e.Owner, direct: true},
	} {
		if key.direct && !e.Direct() {
			return nil
		}
		x := b.of[key]
		left := x.until.Sub(now)
		if left <= 0 {
			continue
		}
		who := "worker " + e.Target()
		if key.worker == "" {
			who = "owner " + e.Owner
		}
		if key.direct {
			b.refused++
			return comeAgain(left, "%s has ended processes, %d times lately: its requests are refused for %s more",
				who, x.times, left.Round(time.Second))
		}
		return events.Fail(events.ReasonCrash, "%s has cost processes threads, %d times lately: its events are refused for %s more",
			who, x.times, left.Round(time.Second))
	}
	return nil
}

func (b *bans) export(now time.Time) (all []Ban) {
	for key, x := range b.of {
		if left := x.until.Sub(now); -left <= remembered {
			all = append(all, Ban{key.owner, key.worker, x.times, left.Milliseconds(), key.direct})
		}
	}
	return all
}

// learn takes a ban of another process. What is out of bounds is ignored.
func (b *bans) learn(x Ban, now time.Time) {
	longest := longestBan
	if x.Direct {
		longest = longestDirect
	}
	left := min(time.Duration(x.LeftMs)*time.Millisecond, longest)
	if x.Times < 1 || left < -remembered || !events.ValidName(x.Owner) || x.Worker != "" && !events.ValidName(x.Worker) {
		return
	}
	key := banned{x.Owner, x.Worker, x.Direct}
	mine := b.get(key, now)
	until := now.Add(left)
	if mine.times > 0 && until.Sub(mine.until) <= banSlack && x.Times <= mine.times {
		return
	}
	if until.Before(mine.until) {
		until = mine.until
	}
	since := mine.since
	if x.Times > mine.times { // it is new here
		since = now
	}
	b.set(key, ban{max(x.Times, mine.times), since, until}, now)
}

// holding returns how many bans hold now, of all events or of direct ones.
func (b *bans) holding(direct bool, now time.Time) (n int) {
	for key, x := range b.of {
		if key.direct == direct && now.Before(x.until) {
			n++
		}
	}
	return n
}
