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
	// suspectFor is how long a worker is a suspect, and turnFor how long the direct events of an owner's suspects run
	// beside those of no other suspect.
	suspectFor = time.Minute
	turnFor    = time.Second
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

// Suspect is what is known of a worker that ran in a process when it died.
type Suspect struct {
	Owner  string
	Worker string        // "" = all of the owner's
	Times  int           // processes that died
	Left   time.Duration // how much longer its direct events are refused
	Try    bool          // they run beside those of no other suspect at first
}

// banned names a worker, or with worker "" an owner.
type banned struct {
	owner, worker string
	direct        bool // only its direct events
}

// ban is what is known of a worker or owner that cost threads or processes, or may have.
type ban struct {
	times   int
	since   time.Time // when the latest began
	until   time.Time
	suspect time.Time // of direct events: until when they run beside those of no other suspect
}

// over reports whether nothing of it counts.
func (x ban) over(now time.Time) bool { return now.Sub(x.until) > remembered && !now.Before(x.suspect) }

// bans are all that is known of workers and owners. A process that loses threads is replaced in the end: no owner may
// cause that again and again with new events, workers and versions. d.mu must be held for all methods.
//
// Of the workers that ran in a process when it died, one may have ended it. The direct events of these suspects run,
// but those of one owner at a time. So the next crash shows whose it was, and the others are free after turnFor each.
type bans struct {
	of       map[banned]ban
	turn     string // the owner whose suspects have their turn; "" = nobody's
	turnEnds time.Time
	refused  uint64 // direct events; for the metrics
}

// lost bans a worker, and its owner after the first time. It returns both bans.
func (b *bans) lost(w *workers.Worker, began, now time.Time) (ofWorker, ofOwner ban) {
	worker, owner := banned{owner: w.Owner, worker: w.Name}, banned{owner: w.Owner}
	switch o := b.get(owner, now); {
	case o.times == 0:
		b.set(owner, ban{times: 1, since: now, until: now}, now)
	case !now.Before(o.until):
		b.set(owner, ban{times: o.times + 1, since: now, until: now.Add(doubled(firstBan, o.times, longestBan))}, now)
	}
	// Of several runs that were under way when the first was found, only the first counts for the worker.
	if x := b.get(worker, now); x.times == 0 || !began.Before(x.since) {
		b.set(worker, ban{times: x.times + 1, since: now, until: now.Add(doubled(firstBan, x.times+1, longestBan))}, now)
	}
	return b.of[worker], b.of[owner]
}

// suspected takes what a supervisor knows of a worker.
func (b *bans) suspected(s Suspect, now time.Time) {
	key := banned{s.Owner, s.Worker, true}
	x := b.get(key, now)
	if s.Left > 0 {
		x.times, x.since, x.until = s.Times, now, now.Add(s.Left)
	}
	if s.Try {
		x.suspect = now.Add(suspectFor)
	}
	b.set(key, x, now)
}

// get returns what still counts of a key.
func (b *bans) get(key banned, now time.Time) ban {
	x := b.of[key]
	if now.Sub(x.until) > remembered {
		return ban{suspect: x.suspect}
	}
	return x
}

func (b *bans) set(key banned, x ban, now time.Time) {
	if b.of == nil {
		b.of = map[banned]ban{}
	}
	for old, x := range b.of {
		if x.over(now) || len(b.of) >= mostBans && !now.Before(x.until) && !now.Before(x.suspect) {
			delete(b.of, old)
		}
	}
	if _, known := b.of[key]; known || len(b.of) < mostBans {
		b.of[key] = x
	}
}

// refuse returns why an event is not run, or nil.
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
			return b.comeAgain(left, "%s has ended processes, %d times lately: its requests are refused for %s more",
				who, x.times, left.Round(time.Second))
		}
		return events.Fail(events.ReasonCrash, "%s has cost processes threads, %d times lately: its events are refused for %s more",
			who, x.times, left.Round(time.Second))
	}
	return b.outOfTurn(e, now)
}

// outOfTurn returns why a direct event may not run beside those of another suspect, or nil.
func (b *bans) outOfTurn(e *lifecycle.Delivery, now time.Time) *events.Failure {
	if b.turn != "" && !now.Before(b.turnEnds) {
		b.free(b.turn, now)
		b.turn = ""
	}
	switch x := b.of[banned{e.Owner, e.Worker, true}]; {
	case !now.Before(x.suspect) || b.turn == e.Owner:
		return nil
	case b.turn == "":
		b.turn, b.turnEnds = e.Owner, now.Add(turnFor)
		return nil
	}
	return b.comeAgain(b.turnEnds.Sub(now),
		"a process died while worker %s and others ran: they run one after the other at first", e.Target())
}

// free ends that workers of an owner are suspects.
func (b *bans) free(owner string, now time.Time) {
	for key, x := range b.of {
		if key.owner != owner {
			continue
		}
		x.suspect = time.Time{}
		if b.of[key] = x; x.over(now) {
			delete(b.of, key)
		}
	}
}

// comeAgain returns the failure of a direct event that may come again after that time.
func (b *bans) comeAgain(after time.Duration, format string, args ...any) *events.Failure {
	b.refused++
	f := events.Fail(events.ReasonCrash, format, args...)
	f.RetryAfter = after
	return f
}

func (b *bans) export(now time.Time) (all []Ban) {
	for key, x := range b.of {
		if left := x.until.Sub(now); left >= -remembered {
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
	if x.Times > mine.times { // it is new here
		mine.since = now
	}
	mine.times, mine.until = max(x.Times, mine.times), until
	b.set(key, mine, now)
}

// holding returns how many bans of all events and of direct ones hold, and how many workers are suspects.
func (b *bans) holding(now time.Time) (all, direct, suspects int) {
	for key, x := range b.of {
		switch {
		case !now.Before(x.until):
		case key.direct:
			direct++
		default:
			all++
		}
		if now.Before(x.suspect) {
			suspects++
		}
	}
	return all, direct, suspects
}
