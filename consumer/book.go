package consumer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// book is about how many bytes each owner has waiting in the streams of events and of parked events, of what passed this process's door: calls, and tasks
// that its workers send. JetStream counts an owner's messages, not their bytes. So each message is entered as it passes, and what is entered
// shrinks as the number of the owner's messages does.
type book struct {
	mu     sync.Mutex
	owners map[string]*entry
}

// entry is one owner's.
type entry struct {
	bytes, messages float64
	since           float64 // of bytes, those that were entered after it was counted
	counted         time.Time
}

// all is about how many bytes the owner has. Calls come to each of so many processes alike, and of what came to the others since it was counted this one
// knows nothing.
func (e *entry) all(processes int64) float64 { return e.bytes + e.since*float64(max(1, processes)-1) }

const (
	// bookOwners is how many owners are in the book at most, and bookCounts of how many of them it is counted at a look what they have: those with the most.
	bookOwners, bookCounts = 10_000, 16
	// bookPart is the part of the stream of events that any owner may have, and below which nobody needs to be counted. Where less is free, JetStream says so.
	bookPart = 16
	// bookOverhead is about what a message takes when it is parked, beside what its publisher sent: the headers that say so are most of it.
	bookOverhead = 320
)

// room is how many bytes an owner may have waiting: as many as there are free in each of both streams. used is how many all have.
func (s *usage) room(processes int64) (room, used uint64) {
	stream, parked := s.events, s.parked
	return min(stream.free(processes), parked.free(processes)), stream.used(processes) + parked.used(processes)
}

// admitStored says why a message of so many bytes that owner wants to have stored is not, or nil: then it is entered in the book.
func (c *Consumer) admitStored(owner string, size int) *events.Failure {
	if guard.StoredShares.Off() {
		return nil
	}
	size += bookOverhead
	s, processes := c.usage, c.processes.Load()
	b := &s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.owners[owner]
	if room, used := s.room(processes); used > room/2 && e != nil && e.all(processes) > float64(max(room, s.events.limit.Load()/bookPart)) {
		if time.Since(e.counted) > storedPause {
			signal(s.now)
		}
		return events.Fail(events.ReasonRate, "owner %s has about %.0f bytes of events waiting, and may have as many as are free: %d", owner, e.all(processes), room)
	}
	if e == nil {
		if len(b.owners) >= bookOwners {
			return nil
		}
		if b.owners == nil {
			b.owners = make(map[string]*entry)
		}
		e = &entry{}
		b.owners[owner] = e
	}
	e.bytes, e.since, e.messages = e.bytes+float64(size), e.since+float64(size), e.messages+1
	c.grew(s.events, size)
	return nil
}

// countBooked compares the book with what the streams have.
func (c *Consumer) countBooked(ctx context.Context) error {
	s := c.usage
	room, used := s.room(c.processes.Load())
	b := &s.book
	b.mu.Lock()
	if used < s.events.limit.Load()/bookPart {
		clear(b.owners)
	}
	owners := slices.SortedFunc(maps.Keys(b.owners), func(x, y string) int { return cmp.Compare(b.owners[y].bytes, b.owners[x].bytes) })
	before := map[string]entry{}
	for _, owner := range owners {
		before[owner] = *b.owners[owner]
	}
	b.mu.Unlock()
	if used <= room/2 {
		return nil
	}
	for _, owner := range owners[:min(len(owners), bookCounts)] {
		n, err := c.countMessages(ctx, StreamEvents, c.cfg.Prefix.StoredOwner(owner), 0)
		if err != nil {
			return err
		}
		m, err := c.countMessages(ctx, StreamParked, c.cfg.Prefix.ParkedOwner(owner), 0)
		if err != nil {
			return err
		}
		b.counted(owner, before[owner], float64(n+m))
	}
	return nil
}

// counted corrects an entry that was before when n messages of its owner were counted: those that went had the mean size, and so have those that came by
// another way.
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

// behindAll is an offset behind the last subject: the answer has how many there are, and names none.
const behindAll = 1 << 30

// countMessages counts the messages of a filter that has few subjects, at most a hundred thousand behind an offset, and one for each of the others.
func (c *Consumer) countMessages(ctx context.Context, stream, filter string, offset int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, tickWait)
	defer cancel()
	subjects, total, err := c.countSubjects(ctx, stream, filter, offset)
	if err != nil {
		return 0, err
	}
	n := max(0, int(total)-len(subjects)) //nolint:gosec // subjects of a stream
	for _, of := range subjects {
		n += int(of) //nolint:gosec // messages of a subject
	}
	return n, nil
}

// countSubjects asks how many messages each subject of a filter has. nats-server names so many at a time, from offset on; total is how many
// subjects there are.
func (c *Consumer) countSubjects(ctx context.Context, stream, filter string, offset int) (counts map[string]uint64, total uint64, err error) {
	ask, _ := json.Marshal(map[string]any{"subjects_filter": filter, "offset": offset}) // a string and a number cannot fail
	m, err := c.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, ask)
	if err != nil {
		return nil, 0, fmt.Errorf("stream %s: %w", stream, err)
	}
	var a struct {
		Error *apiError `json:"error"`
		Total uint64    `json:"total"` // absent when there is none
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err = json.Unmarshal(m.Data, &a); err == nil && a.Error != nil {
		err = a.Error
	}
	if err != nil {
		return nil, 0, fmt.Errorf("stream %s: %w", stream, err)
	}
	return a.State.Subjects, a.Total, nil
}
