package crashnote

import (
	"time"
)

// How long the direct events of a worker are refused after crashes.
const (
	// First is how long they are refused after the first crash that is surely the worker's. The time doubles with each
	// further one, up to Longest. From the second such crash of an owner, all its workers are refused in the same way.
	First   = time.Second
	Longest = 10 * time.Minute
	// LongestDoubt bounds the time after crashes of which it is not known whose they are.
	LongestDoubt = 30 * time.Second
	// remembered is how long a crash counts after the end of what it caused.
	remembered = 2 * Longest
	// trials is how long after a crash processes that start try the workers that may have caused it one by one.
	trials = time.Minute
	// most is how many workers and owners are kept; those that are refused no longer go first.
	most = 1000
)

// Suspect is a worker during whose runs processes died, or an owner of such workers.
type Suspect struct {
	Owner   string        `json:"owner"`
	Worker  string        `json:"worker,omitempty"` // "" = all of the owner's
	Version string        `json:"version,omitempty"`
	Times   int           `json:"times"` // processes that died
	Left    time.Duration `json:"left"`  // how much longer its direct events are refused; 0 = they are not
	Try     bool          `json:"try"`   // it runs beside no other suspect at first
}

type key struct{ owner, worker string }

// entry is what is known of a worker or owner.
type entry struct {
	version     string
	sure        int           // crashes that it caused
	doubts      int           // crashes that it may have caused
	refuse      time.Duration // what the latest crash caused; until no process knows of it
	told        bool          // a process knows of it
	last, until time.Time
	doubtful    time.Time // the latest of doubts
}

// Account has the crashes of the processes of a machine. Its owner serializes the calls. The zero value is empty.
type Account struct {
	of map[key]*entry
}

// Add takes a crash.
func (a *Account) Add(c Crash, now time.Time) {
	a.forget(now)
	for i, r := range c.Runs {
		if c.Sure {
			a.charge(r, now)
			continue
		}
		seen := false // by another thread
		for _, before := range c.Runs[:i] {
			seen = seen || before.Owner == r.Owner && before.Worker == r.Worker
		}
		if e := a.at(key{r.Owner, r.Worker}); e != nil && !seen {
			e.doubts++
			e.version, e.doubtful = r.Version, now
			e.set(doubled(e.doubts-1, LongestDoubt), now)
		}
	}
}

// charge takes a crash that r surely caused.
func (a *Account) charge(r Run, now time.Time) {
	if e := a.at(key{r.Owner, r.Worker}); e != nil {
		e.sure++
		e.version = r.Version
		e.set(doubled(e.sure, Longest), now)
	}
	if e := a.at(key{owner: r.Owner}); e != nil {
		e.sure++
		e.set(doubled(e.sure-1, Longest), now)
	}
}

// doubled returns the n-th time; 0 when n is 0.
func doubled(n int, longest time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	return min(First<<min(n-1, 20), longest)
}

// set begins to refuse. A longer time that was set before stays.
func (e *entry) set(refuse time.Duration, now time.Time) {
	e.last = now
	if until := now.Add(refuse); until.After(e.until) {
		e.refuse, e.until, e.told = refuse, until, false
	}
}

func (a *Account) at(k key) *entry {
	if a.of == nil {
		a.of = map[key]*entry{}
	}
	e := a.of[k]
	if e == nil && len(a.of) < most {
		e = &entry{}
		a.of[k] = e
	}
	return e
}

// forget removes what no longer counts, and, when the account is full, what refuses nothing.
func (a *Account) forget(now time.Time) {
	full := len(a.of) > most/2
	for k, e := range a.of {
		end := e.last
		if e.until.After(end) {
			end = e.until
		}
		if now.Sub(end) > remembered || full && !e.until.After(now) && now.Sub(e.last) > trials {
			delete(a.of, k)
		}
	}
}

// Suspects returns what a process that starts should know. The first one to be told of a crash gets the whole time: it
// was not there while the time passed.
func (a *Account) Suspects(now time.Time) []Suspect {
	var all []Suspect
	for k, e := range a.of {
		if !e.told {
			e.told, e.until = true, now.Add(e.refuse)
		}
		s := Suspect{Owner: k.owner, Worker: k.worker, Version: e.version, Times: e.sure + e.doubts,
			Left: max(0, e.until.Sub(now))}
		s.Try = k.worker != "" && !e.doubtful.IsZero() && now.Sub(e.doubtful) < trials
		if s.Left > 0 || s.Try {
			all = append(all, s)
		}
	}
	return all
}
