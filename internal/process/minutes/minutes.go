// Package minutes keeps what a process has done in each of the last 60 minutes: in all, and for the owners that did
// most in a minute. It looks at counters, so that events cost nothing more.
package minutes

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

const (
	// kept is how many minutes are kept.
	kept = control.KeptMinutes
	// maxOwners is of how many owners each minute is kept: about 200 KiB in all.
	maxOwners = 20
	// maxFollowed is of how many owners, the busiest ones, the counters are remembered from one look to the next. One
	// that was not among them has no figures in the minute in which it gets there.
	maxFollowed = 500
)

// Look is what has happened in a process since it began.
type Look struct {
	All    dispatch.Flow
	Owners []dispatch.OwnerWork // the busiest, at most as many as were asked for
}

// Ring keeps the last minutes. Any goroutine may call its methods.
type Ring struct {
	look func(owners int) Look

	mu      sync.Mutex
	minutes []minute // the oldest first
	before  Look
	began   time.Time // of the minute that goes on; zero: there was no look yet
}

// minute is what happened in a minute that is over.
type minute struct {
	control.Minute
	owners map[string]control.Minute
}

// New returns a Ring. look returns what has happened so far, with at most so many owners.
func New(look func(owners int) Look) *Ring { return &Ring{look: look} }

// Tick keeps a minute when it is over. The caller calls it about every second: it looks only then.
func (r *Ring) Tick(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	begins := now.Truncate(time.Minute)
	switch {
	case r.began.IsZero():
		r.before, r.began = r.look(maxFollowed), now
		return
	case !begins.After(r.began):
		return
	}
	l := r.look(maxFollowed)
	r.minutes = append(r.minutes, between(r.began.Truncate(time.Minute), r.before, l))
	r.minutes = slices.Delete(r.minutes, 0, max(0, len(r.minutes)-kept))
	r.before, r.began = l, begins
}

// between is what happened between two looks, in the minute that began at a time.
func between(at time.Time, before, now Look) minute {
	count := func(n, was uint64) uint64 { return n - min(n, was) }
	m := minute{Minute: control.Minute{At: at.UTC(), Ended: count(now.All.Duration.Count, before.All.Duration.Count),
		Failed:   count(now.All.Failed+now.All.Retried, before.All.Failed+before.All.Retried),
		Duration: since(now.All.Duration.Buckets, before.All.Duration.Buckets)}}
	known := make(map[string]dispatch.OwnerWork, len(before.Owners))
	for _, o := range before.Owners {
		known[o.Owner] = o
	}
	type busy struct {
		owner string
		did   control.Minute
	}
	var list []busy
	for _, o := range now.Owners {
		was, ok := known[o.Owner]
		if !ok && len(before.Owners) >= maxFollowed {
			continue // it is not known what it had done before
		}
		if ended := count(o.Ended, was.Ended); ended > 0 {
			list = append(list, busy{o.Owner, control.Minute{At: m.At, Ended: ended, Failed: count(o.Failed, was.Failed),
				Duration: since(o.Duration.Buckets, was.Duration.Buckets)}})
		}
	}
	slices.SortFunc(list, func(a, b busy) int {
		return cmp.Or(cmp.Compare(b.did.Ended, a.did.Ended), cmp.Compare(a.owner, b.owner))
	})
	m.owners = make(map[string]control.Minute, min(len(list), maxOwners))
	for _, o := range list[:min(len(list), maxOwners)] {
		m.owners[o.owner] = o.did
	}
	return m
}

// since is what buckets count beyond earlier ones.
func since(now, before []uint64) []uint64 {
	d := make([]uint64, len(now))
	for i, n := range now {
		if d[i] = n; i < len(before) {
			d[i] -= min(n, before[i])
		}
	}
	return d
}

// Of returns the minutes of an owner, the oldest first; "" = those of the process. A minute in which an owner was not
// among the busiest says nothing of it.
func (r *Ring) Of(owner string) []control.Minute {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]control.Minute, 0, len(r.minutes))
	for _, m := range r.minutes {
		one := m.Minute
		if owner != "" {
			var ok bool
			if one, ok = m.owners[owner]; !ok {
				one = control.Minute{At: m.At}
			}
		}
		list = append(list, one)
	}
	return list
}
