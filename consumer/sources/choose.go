package sources

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// find returns where in has the record of a source is: one with the same filters, or else the newest one of the same
// stream that no other source has. -1: there is none.
func (l *looking) find(w want) int {
	best := -1
	for i, r := range l.has {
		if r.target() != w.owner+"/"+w.worker || !r.of(w.source) || l.used[r.key()] {
			continue
		}
		if best < 0 || better(r, l.has[best], w.source) {
			best = i
		}
	}
	return best
}

// better reports whether a is more likely than b to be the record of a source: it has the same filters, or is newer.
func better(a, b Record, s workers.Source) bool {
	if a.hasFilters(s) != b.hasFilters(s) {
		return a.hasFilters(s)
	}
	return a.Made.After(b.Made)
}

// isNew returns 0 if there is a record with the filters of a source, else 1.
func (l *looking) isNew(w want) int {
	if i := l.find(w); i >= 0 && l.has[i].hasFilters(w.source) {
		return 0
	}
	return 1
}

// known returns the key of a source whose connection is away. Its feed stays, and its record is not removed.
func (l *looking) known(w want, key string) string {
	if i := l.find(w); i >= 0 {
		return l.has[i].key()
	}
	return key
}

// recordOf returns the record of a source, and makes it if there is none.
func (l *looking) recordOf(w want) (Record, error) {
	i := l.find(w)
	if i < 0 {
		n := 0
		for slices.ContainsFunc(l.has, func(r Record) bool { return r.target() == w.owner+"/"+w.worker && r.N == n }) {
			n++
		}
		r, err := l.b.put(l.ctx, newRecord(w.owner, w.worker, n, w.source, l.now))
		if err == nil {
			l.has = append(l.has, r)
		}
		return r, err
	}
	r := l.has[i]
	if r.Removed.IsZero() && r.hasFilters(w.source) {
		return r, nil
	}
	r.Removed, r.Filters = time.Time{}, w.source.Filters()
	r, err := l.b.put(l.ctx, r)
	l.has[i] = r
	return r, err
}
