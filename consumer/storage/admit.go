package storage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// book estimates how many bytes each owner has waiting in the streams of events and of parked events, of what this
// process admitted: calls, and tasks that its workers send. JetStream counts an owner's messages, not their bytes. So
// each admitted message is entered in the book, and an owner's bytes shrink in proportion to the number of its
// messages.
type book struct {
	mu     sync.Mutex
	owners map[string]*entry
}

// entry is the entry of one owner.
type entry struct {
	bytes, messages float64
	since           float64 // part of bytes that was entered after the last count
	counted         time.Time
}

// all is about how many bytes the owner has. Calls are spread evenly over the processes, and this process does not know
// what came to the others since the last count.
func (e *entry) all(processes int64) float64 { return e.bytes + e.since*float64(max(1, processes)-1) }

const (
	// maxOwners is the maximum number of owners in the book. countedOwners is the number of owners whose messages are
	// counted at a look: those with the most bytes.
	maxOwners, countedOwners = 10_000, 16
	// Any owner may have 1/ownerPart of the stream of events. Below that, no owner is counted. When less is free,
	// JetStream refuses messages.
	ownerPart = 16
	// parkedOverhead is about how many bytes parking adds to a message. Most of them are headers of parked events.
	parkedOverhead = 320
)

// room is how many bytes an owner may have waiting: the smaller of what is free in the two streams. used is how many
// bytes all owners have.
func (u *Usage) room(processes int64) (room, used uint64) {
	stream, parked := u.events, u.parked
	return min(stream.free(processes), parked.free(processes)), stream.used(processes) + parked.used(processes)
}

// over reports whether an owner, whose entry may be nil, has more than its share: what is free. The lock of the book
// must be held.
func (u *Usage) over(e *entry, processes int64) (room uint64, over bool) {
	room, used := u.room(processes)
	return room, used > room/2 && e != nil &&
		e.all(processes) > float64(max(room, u.events.limit.Load()/ownerPart))
}

// OverShareOf reports whether Admit would refuse a message of the owner now, or the server does not write events.
func (u *Usage) OverShareOf(owner string) bool {
	if u.WriteFailure(events.StreamEvents) != nil {
		return true
	}
	if guard.StoredShares.Off() {
		return false
	}
	u.book.mu.Lock()
	defer u.book.mu.Unlock()
	e := u.book.owners[owner]
	_, over := u.over(e, u.processes.Load())
	if over && time.Since(e.counted) > lookPause {
		jsapi.Signal(u.now)
	}
	return over
}

// Admit checks whether a message of size bytes of owner may be stored. If so, it enters the message in the book and
// returns nil. Otherwise it returns why not.
func (u *Usage) Admit(owner string, size int) *events.Failure {
	if guard.StoredShares.Off() {
		return nil
	}
	size += parkedOverhead
	processes := u.processes.Load()
	b := &u.book
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.owners[owner]
	if room, over := u.over(e, processes); over {
		if time.Since(e.counted) > lookPause {
			jsapi.Signal(u.now)
		}
		return events.Fail(events.ReasonRate, "owner %s has about %.0f bytes of events waiting, and may have as many as are free: %d", owner, e.all(processes), room)
	}
	if e == nil {
		if len(b.owners) >= maxOwners {
			return nil
		}
		if b.owners == nil {
			b.owners = make(map[string]*entry)
		}
		e = &entry{}
		b.owners[owner] = e
	}
	e.bytes, e.since, e.messages = e.bytes+float64(size), e.since+float64(size), e.messages+1
	u.grew(u.events, size)
	return nil
}

// countAdmitted corrects the book by the number of messages in the streams.
func (u *Usage) countAdmitted(ctx context.Context) error {
	room, used := u.room(u.processes.Load())
	b := &u.book
	b.mu.Lock()
	if used < u.events.limit.Load()/ownerPart {
		clear(b.owners)
	}
	owners := slices.SortedFunc(maps.Keys(b.owners),
		func(x, y string) int { return cmp.Compare(b.owners[y].bytes, b.owners[x].bytes) })
	before := map[string]entry{}
	for _, owner := range owners {
		before[owner] = *b.owners[owner]
	}
	b.mu.Unlock()
	if used <= room/2 {
		return nil
	}
	for _, owner := range owners[:min(len(owners), countedOwners)] {
		n, err := jsapi.CountMessages(ctx, u.nc, events.StreamEvents, u.cfg.Prefix.StoredOwner(owner), 0)
		if err != nil {
			return err
		}
		m, err := jsapi.CountMessages(ctx, u.nc, events.StreamParked, u.cfg.Prefix.ParkedOwner(owner), 0)
		if err != nil {
			return err
		}
		b.counted(owner, before[owner], float64(n+m))
	}
	return nil
}

// counted corrects an owner's entry by n, the number of its messages. before is the entry as it was when they were
// counted. Messages that left, and messages that came another way, are assumed to have the mean size.
func (b *book) counted(owner string, before entry, n float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.owners[owner]
	if e == nil || before.messages == 0 {
		return
	}
	e.bytes += before.bytes * (n/before.messages - 1)
	e.messages += n - before.messages
	e.since -= before.since
	if e.counted = time.Now(); e.messages <= 0 {
		delete(b.owners, owner)
	}
}
