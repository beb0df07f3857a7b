package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// extras knows the versions for which several threads hold a context. One is enough for most, and an isolate takes
// more memory than all else that an owner has. So a context that was needed only for a moment is closed again.
type extras struct {
	versions []*version
	due      time.Time // of the next look at them; zero = there are none
}

// closing is a context to close.
type closing struct {
	thread int
	worker *events.Worker
}

// note adds a version if threads hold several contexts of it. It returns true if Run has to compute anew when to look.
func (x *extras) note(v *version, now time.Time) bool {
	if v.extra || v.warm.len() < 2 || v.worker.Mode.OrDefault() != events.Pinned {
		return false
	}
	v.extra = true
	x.versions = append(x.versions, v)
	if !x.due.IsZero() {
		return false
	}
	x.due = now.Add(keepExtra)
	return true
}

// look returns contexts that were not needed for keepExtra, of at most closeAtOnce versions: their threads run no event
// meanwhile. It forgets versions that have one context, or are removed: a thread closes the contexts of these anyway.
func (x *extras) look(owners map[string]*owner, now time.Time) (unneeded []closing) {
	if x.due.IsZero() || now.Before(x.due) {
		return nil
	}
	all, left := x.versions, closeAtOnce
	x.versions, x.due = all[:0], time.Time{}
	for _, v := range all {
		if v.extra = v.warm.len() > 1 && installed(owners, v.worker) == v; !v.extra {
			continue
		}
		x.versions = append(x.versions, v)
		if now.Before(v.keep) {
			continue
		}
		if left--; left < 0 {
			continue
		}
		v.keep = now.Add(keepExtra) // if something runs there now, it is asked again
		(v.warm &^ v.keeper()).each(func(thread int) { unneeded = append(unneeded, closing{thread, v.worker}) })
	}
	clear(all[len(x.versions):])
	switch {
	case left < 0:
		x.due = now.Add(closeEvery)
	case len(x.versions) > 0:
		x.due = now.Add(keepExtra)
	}
	return unneeded
}

// keeper returns the thread that keeps its context of v when one is enough: the one that has had it for longest.
func (v *version) keeper() threadSet {
	if v.home&v.warm == 0 {
		v.home = v.warm.any()
	}
	return v.home
}
