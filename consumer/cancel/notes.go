package cancel

import (
	"sync"
	"sync/atomic"
	"time"
)

// ID identifies a stored event. A stream that was created again may have another event under the same number, but that
// was stored at another time.
type ID struct {
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
	Stored int64  `json:"stored"` // by the stream, Unix time in nanoseconds
}

// Mode is what is asked of a process about events.
type Mode string

// The modes.
const (
	// All ends events that wait and those that run. Events that the process gets from now on do not start.
	All Mode = "all"
	// Waiting does the same, but leaves alone events whose run has begun.
	Waiting Mode = "waiting"
	// Deleted says that the messages were deleted. The asker answers for events that no process has begun.
	Deleted Mode = "deleted"
	// Released says that the events stay: they may start.
	Released Mode = "released"
)

// Valid reports whether m is a mode.
func (m Mode) Valid() bool { return m == All || m == Waiting || m == Deleted || m == Released }

// State is what a process has of an event.
type State string

// The states.
const (
	Absent    State = ""          // the process does not have it, and would not start it
	Busy      State = "busy"      // it is being ended or moved: ask again
	Ending    State = "ending"    // it ends as cancelled, unless it ends otherwise first: ask again
	Running   State = "running"   // its run has begun, and goes on
	Cancelled State = "cancelled" // it has ended so, and its reply is published
	Ended     State = "ended"     // it has ended otherwise
	Moved     State = "moved"     // it is stored in another place now
)

const (
	// forbiddenFor is how long a process refuses to start events. Who deletes them asks again within a fraction of it.
	forbiddenFor = 30 * time.Second
	// deletedFor is how long it does so after the message was deleted: for deliveries that were under way.
	deletedFor = 5 * time.Second
	// endedFor is how long it knows how an event ended.
	endedFor = 30 * time.Second
	// most bounds what is known of both, and mostDue the lists of when it is over. The oldest is forgotten first.
	most, mostDue = 1 << 16, 4 << 16
)

// Notes are what a process knows of events that somebody cancels. Any goroutine may use them. The zero value is ready.
type Notes struct {
	any atomic.Bool // something may be in the maps

	mu        sync.Mutex
	forbidden map[ID]forbidden
	ended     map[ID]ended
	copying   map[ID]struct{} // is being stored in another place; nil = none
	order     [3][]due        // of what is forbidden, ended and deleted, the oldest first
}

type forbidden struct {
	until  time.Time
	silent bool
}

type ended struct {
	until time.Time
	how   State
}

type due struct {
	id ID
	at time.Time
}

// Forbid notes that events must not start, or, with mode Released, that they may. With mode Deleted they end without
// anybody being told.
func (n *Notes) Forbid(list []ID, mode Mode, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.forbidden == nil {
		n.forbidden, n.ended = make(map[ID]forbidden), make(map[ID]ended)
	}
	n.forget(now)
	if mode == Released {
		for _, id := range list {
			delete(n.forbidden, id)
		}
		return
	}
	until, of := now.Add(forbiddenFor), 0
	if mode == Deleted {
		until, of = now.Add(deletedFor), 2
	}
	for _, id := range list {
		was, is := n.forbidden[id]
		if is && was.silent == (mode == Deleted) && 2*was.until.Sub(now) > until.Sub(now) {
			continue // asked again: it need not be there twice
		}
		n.forbidden[id] = forbidden{until, mode == Deleted}
		n.order[of] = append(n.order[of], due{id, until})
	}
	n.any.Store(true)
}

// Copy reports whether an event may be stored in another place: it is not forbidden. Until Copied is called, who asks
// about it has to ask again.
func (n *Notes) Copy(id ID, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f, is := n.forbidden[id]; is && now.Before(f.until) {
		return false
	}
	if n.copying == nil {
		n.copying = make(map[ID]struct{})
	}
	n.copying[id] = struct{}{}
	return true
}

// Copied ends what Copy began. done says that the event was moved, and unsure that it may be in both places. It is
// noted only for those who ask about the event, or if it is unsure.
func (n *Notes) Copied(id ID, done, unsure bool, now time.Time) {
	n.mu.Lock()
	delete(n.copying, id)
	_, asked := n.forbidden[id]
	n.mu.Unlock()
	if unsure || done && asked {
		n.End(id, Moved, now)
	}
}

// IsForbidden reports whether an event must not start. It costs one load while nobody cancels events.
func (n *Notes) IsForbidden(id ID, now time.Time) (is, silent bool) {
	if !n.any.Load() {
		return false, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	f, is := n.forbidden[id]
	return is && now.Before(f.until), f.silent
}

// Any reports whether any event may be forbidden.
func (n *Notes) Any() bool { return n.any.Load() }

// End notes how an event ended that somebody cancelled.
func (n *Notes) End(id ID, how State, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended == nil {
		n.forbidden, n.ended = make(map[ID]forbidden), make(map[ID]ended)
	}
	n.forget(now)
	until := now.Add(endedFor)
	n.ended[id] = ended{until, how}
	n.order[1] = append(n.order[1], due{id, until})
	n.any.Store(true)
}

// HowEnded returns how an event ended, Busy while it is copied, or Absent.
func (n *Notes) HowEnded(id ID) State {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, is := n.copying[id]; is {
		return Busy
	}
	return n.ended[id].how
}

// Forget forgets what is over. Call it regularly: Forbid and End do so too.
func (n *Notes) Forget(now time.Time) {
	if !n.any.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(now)
}

// forget removes what is over, and the oldest of what is too much. mu is held.
func (n *Notes) forget(now time.Time) {
	tooMany := func() bool { return len(n.forbidden) > most }
	drop := func(d due) {
		if f, ok := n.forbidden[d.id]; ok && !f.until.After(d.at) {
			delete(n.forbidden, d.id)
		}
	}
	n.order[2] = prune(n.order[2], now, tooMany, drop) // first: what is deleted is the least dangerous
	n.order[0] = prune(n.order[0], now, tooMany, drop)
	n.order[1] = prune(n.order[1], now, func() bool { return len(n.ended) > most }, func(d due) {
		if e, ok := n.ended[d.id]; ok && !e.until.After(d.at) {
			delete(n.ended, d.id)
		}
	})
	n.any.Store(len(n.forbidden)+len(n.ended) > 0)
}

// prune drops from the front of a list what is over or too much. What is noted again is in a list twice.
func prune(list []due, now time.Time, tooMany func() bool, drop func(due)) []due {
	k := 0
	for k < len(list) && (len(list)-k > mostDue || tooMany() || !list[k].at.After(now)) {
		drop(list[k])
		k++
	}
	return list[k:]
}
