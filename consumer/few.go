package consumer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// overtakeFew is the part of Config.Overtake that an owner may have in the lane and not be taken for one with a backlog.
	overtakeFew = 64
	// overtakeAtOnce is how many events of a lane are brought past its backlog at a look, those of owners with the fewest, and
	// overtakeOwners of how many owners: each needs a consumer of parked events.
	overtakeAtOnce, overtakeOwners = 512, parkedLanes
	// overtakeSubjects is how many subjects the stream may have and all those of a lane be asked for at once. An owner makes as many as it
	// likes, by names of workers that it has not.
	overtakeSubjects = 1 << 12
	// overtakeCrowd is for how long an owner that had a backlog is not counted again by itself: that is work for the server which grows with
	// its subjects.
	overtakeCrowd = 30 * time.Second
)

// ownerCount is what an owner has in a lane.
type ownerCount struct {
	owner    string
	n        uint64
	subjects []string
}

// counting is what is remembered from one look through a lane to the next. It belongs to overtakeLoop.
type counting struct {
	after  string               // the last owner that was counted by itself
	crowds map[string]time.Time // until when an owner has a backlog
}

// fewIn are owners that have few events in a lane, those with the fewest first. There are none where the others have no backlog. Where
// the stream has very many subjects they are looked for among the owners that have workers, some at each look.
func (c *Consumer) fewIn(ctx context.Context, lane int, at *place, subjects uint64) ([]*ownerCount, error) {
	if subjects <= overtakeSubjects {
		counts, _, err := c.countSubjects(ctx, StreamEvents, c.cfg.Prefix.Lane(lane), 0)
		return c.few(counts, 0), err
	}
	counts := make(map[string]uint64)
	now, others := time.Now(), at.pending
	for _, owner := range c.residents.next(lane, at.counting.after, overtakeOwners) {
		at.counting.after = owner
		if now.Before(at.counting.crowds[owner]) {
			continue
		}
		own, n, err := c.countOwner(ctx, lane, owner)
		if err != nil {
			return nil, err
		}
		if n > c.fewAtMost() {
			at.counting.crowded(owner, now)
			continue
		}
		for subject, n := range own {
			counts[subject] = n
		}
		others -= min(others, n)
	}
	return c.few(counts, others), nil
}

// crowded notes that owner has a backlog, and forgets of whom that is not known any more.
func (t *counting) crowded(owner string, now time.Time) {
	if t.crowds == nil {
		t.crowds = make(map[string]time.Time)
	}
	for other, until := range t.crowds {
		if now.After(until) {
			delete(t.crowds, other)
		}
	}
	t.crowds[owner] = now.Add(overtakeCrowd)
}

// countOwner counts what an owner has in a lane, by subject, unless that are more subjects than an owner with few events can have.
func (c *Consumer) countOwner(ctx context.Context, lane int, owner string) (counts map[string]uint64, n uint64, err error) {
	filter := c.cfg.Prefix.LaneOwner(lane, owner)
	if _, n, err = c.countSubjects(ctx, StreamEvents, filter, behindAll); err != nil || n == 0 || n > c.fewAtMost() {
		return nil, n, err
	}
	if counts, n, err = c.countSubjects(ctx, StreamEvents, filter, 0); err != nil || n > c.fewAtMost() {
		return nil, n, err
	}
	n = 0
	for _, more := range counts {
		n += more
	}
	return counts, n, nil
}

// fewAtMost is how many events are few.
func (c *Consumer) fewAtMost() uint64 {
	return uint64(max(1, c.cfg.Overtake/overtakeFew)) //nolint:gosec // never negative
}

// few are owners that have few events in a lane, by the number of each subject, those with the fewest first. There are none where the others, of
// whom backlog events were not counted, have no backlog.
func (c *Consumer) few(subjects map[string]uint64, backlog uint64) []*ownerCount {
	counts := make(map[string]*ownerCount)
	for subject, n := range subjects {
		_, _, owner, _, ok := c.cfg.Prefix.ParseStored(subject)
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
		if o.n > c.fewAtMost() {
			backlog += o.n
		} else {
			few = append(few, o)
		}
	}
	if !c.isFar(backlog) {
		return nil
	}
	slices.SortFunc(few, func(a, b *ownerCount) int { return cmp.Compare(a.n, b.n) })
	var sum uint64
	for i, o := range few {
		if sum += o.n; sum > overtakeAtOnce || i == overtakeOwners {
			return few[:i]
		}
	}
	return few
}
