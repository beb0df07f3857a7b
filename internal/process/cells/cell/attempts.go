package cell

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// attempts are those that the cell has, by their numbers. The low 32 bits of a number are an index, which the broker
// uses again; the others make it one that was never used before. Any goroutine may call the methods.
type attempts struct {
	mu   sync.Mutex
	list []*wire.Attempt
}

const indexBits = 32

func index(id uint64) int { return int(id & (1<<indexBits - 1)) }

func (x *attempts) add(a *wire.Attempt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for index(a.ID) >= len(x.list) {
		x.list = append(x.list, nil)
	}
	x.list[index(a.ID)] = a
}

// find returns the attempt with that number; nil = its end was reported.
func (x *attempts) find(id uint64) *wire.Attempt {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := index(id); i < len(x.list) && x.list[i] != nil && x.list[i].ID == id {
		return x.list[i]
	}
	return nil
}

func (x *attempts) remove(a *wire.Attempt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list[index(a.ID)] = nil
}

// streams are the bodies that attempts make in chunks, by the numbers of the attempts. Any goroutine may call the
// methods.
type streams struct {
	mu sync.Mutex
	of map[uint64]*events.Stream
}

func (x *streams) add(id uint64, s *events.Stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of = map[uint64]*events.Stream{}
	}
	x.of[id] = s
}

func (x *streams) find(id uint64) *events.Stream {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.of[id]
}

func (x *streams) remove(id uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.of, id)
}
