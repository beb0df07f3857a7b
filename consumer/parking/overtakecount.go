package parking

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// An owner counts as one with a backlog when it has more than 1/overtakeFew of OvertakeConfig.Least in the lane.
	overtakeFew = 64
	// overtakeAtOnce is the maximum number of events that one look brings past a lane's backlog; owners with the fewest
	// come first. overtakeOwners is the maximum number of these owners, because each needs a consumer of parked events.
	overtakeAtOnce, overtakeOwners = 512, parkedLanes
	// overtakeSubjects is the maximum number of subjects in the stream for which all subjects of a lane are asked for
	// at once. An owner can create any number of subjects, with names of workers that do not exist.
	overtakeSubjects = 1 << 12
	// overtakeRecount is for how long an owner that had a backlog is not counted again by itself. The server's work for
	// that grows with the owner's subjects.
	overtakeRecount = 30 * time.Second
)

// ownerCount is how many events an owner has in a lane, and their subjects.
type ownerCount struct {
	owner    string
	n        uint64
	subjects []string
}

// counting is the state that is kept between two looks through a lane. It belongs to Run.
type counting struct {
	after      string               // the last owner that was counted by itself
	backlogged map[string]time.Time // until when an owner counts as one with a backlog
}

// findWithFew returns owners that have few events in a lane, those with the fewest first. It returns none when the
// other owners have no backlog. When the stream has very many subjects, findWithFew looks only at owners that have
// workers, some of them at each look.
func (b *Overtaker) findWithFew(ctx context.Context, lane int, at *position, subjects uint64) ([]*ownerCount, error) {
	if subjects <= overtakeSubjects {
		counts, _, err := jsapi.CountSubjects(ctx, b.js.Conn(), events.StreamEvents, b.cfg.Prefix.Lane(lane), 0)
		return b.withFew(counts, 0), err
	}
	counts := make(map[string]uint64)
	now, others := time.Now(), at.pending
	for _, owner := range workerOwners(b.cfg.Catalog, lane, at.counting.after, overtakeOwners) {
		at.counting.after = owner
		if now.Before(at.counting.backlogged[owner]) {
			continue
		}
		own, n, err := b.countOwner(ctx, lane, owner)
		if err != nil {
			return nil, err
		}
		if n > b.fewMax() {
			at.counting.noteBacklog(owner, now)
			continue
		}
		for subject, n := range own {
			counts[subject] = n
		}
		others -= min(others, n)
	}
	return b.withFew(counts, others), nil
}

// noteBacklog notes that owner has a backlog, and forgets owners whose time is over.
func (t *counting) noteBacklog(owner string, now time.Time) {
	if t.backlogged == nil {
		t.backlogged = make(map[string]time.Time)
	}
	for other, until := range t.backlogged {
		if now.After(until) {
			delete(t.backlogged, other)
		}
	}
	t.backlogged[owner] = now.Add(overtakeRecount)
}

// countOwner counts an owner's events in a lane, by subject. It does not when there are more subjects than an owner
// with few events can have.
func (b *Overtaker) countOwner(ctx context.Context, lane int,
	owner string) (counts map[string]uint64, n uint64, err error) {
	filter := b.cfg.Prefix.LaneOwner(lane, owner)
	if _, n, err = jsapi.CountSubjects(ctx, b.js.Conn(), events.StreamEvents, filter, jsapi.BehindAll); err != nil ||
		n == 0 || n > b.fewMax() {
		return nil, n, err
	}
	if counts, n, err = jsapi.CountSubjects(ctx, b.js.Conn(), events.StreamEvents, filter, 0); err != nil ||
		n > b.fewMax() {
		return nil, n, err
	}
	n = 0
	for _, more := range counts {
		n += more
	}
	return counts, n, nil
}

// fewMax is how many events count as few.
func (b *Overtaker) fewMax() uint64 {
	return uint64(max(1, b.cfg.Least/overtakeFew))
}

// withFew returns owners that have few events in a lane, those with the fewest first. subjects is the number of events
// of each subject, and backlog the number of events of owners that are not in it. withFew returns none when the other
// owners have no backlog.
func (b *Overtaker) withFew(subjects map[string]uint64, backlog uint64) []*ownerCount {
	counts := make(map[string]*ownerCount)
	for subject, n := range subjects {
		_, _, owner, _, ok := b.cfg.Prefix.ParseStored(subject)
		if !ok || !events.ValidName(owner) {
			continue
		}
		o := counts[owner]
		if o == nil {
			o = &ownerCount{owner: owner}
			counts[owner] = o
		}
		o.n += n
		o.subjects = append(o.subjects, subject)
	}
	var few []*ownerCount
	for _, o := range counts {
		if o.n > b.fewMax() {
			backlog += o.n
		} else {
			few = append(few, o)
		}
	}
	if !b.hasBacklog(backlog) {
		return nil
	}
	slices.SortFunc(few, func(x, y *ownerCount) int { return cmp.Compare(x.n, y.n) })
	var sum uint64
	for i, o := range few {
		if sum += o.n; sum > overtakeAtOnce || i == overtakeOwners {
			return few[:i]
		}
	}
	return few
}
