package cells

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// assigned are the attempts that a cell has. The number of an attempt is an index, in the low 32 bits, and how often
// the index was used before, in the others: no number is used twice. The caller locks.
type assigned struct {
	list []*assignment // one for each index, used again
	free []uint32
	n    int // attempts
}

// assignment is an attempt that a cell has, or had last at its index.
type assignment struct {
	attempt *lifecycle.Attempt // nil = the cell has reported its end
	uses    uint32
	thread  int // of the cell
	replied bool
	calls   int // of services, under way
	away    bool
	stream  *stream // the body of its reply, if it comes in chunks
}

const indexBits = 32

// add notes that an attempt is handed out.
func (h *assigned) add(a *lifecycle.Attempt, thread int) (id uint64) {
	if len(h.free) == 0 {
		h.free = append(h.free, uint32(len(h.list)))
		h.list = append(h.list, &assignment{})
	}
	last := len(h.free) - 1
	i := h.free[last]
	h.free = h.free[:last]
	h.n++
	uses := h.list[i].uses + 1
	*h.list[i] = assignment{attempt: a, uses: uses, thread: thread}
	return uint64(uses)<<indexBits | uint64(i)
}

// find returns the attempt with a number. known says that it was handed out once.
func (h *assigned) find(id uint64) (x *assignment, known bool) {
	i, uses := id&(1<<indexBits-1), uint32(id>>indexBits)
	if i >= uint64(len(h.list)) || uses == 0 || uses > h.list[i].uses {
		return nil, false
	}
	if x = h.list[i]; x.attempt == nil || x.uses != uses {
		return nil, true
	}
	return x, true
}

// remove notes that the end of an attempt was reported.
func (h *assigned) remove(id uint64) {
	i := uint32(id)
	h.list[i].attempt, h.list[i].stream = nil, nil
	h.free = append(h.free, i)
	h.n--
}

// all returns the attempts that the cell has, with their numbers.
func (h *assigned) all(f func(id uint64, x *assignment)) {
	for i, x := range h.list {
		if x.attempt != nil {
			f(uint64(x.uses)<<indexBits|uint64(i), x)
		}
	}
}

// errForeign says that a cell named an attempt that it never had, or whose end it has reported.
var errForeign = errors.New("the cell has no such attempt")

// stream is the body of a reply that comes in chunks.
type stream struct {
	*events.Stream
	pushed  int64 // bytes
	granted atomic.Int64
	ended   bool
}

// firstChunks is how much of a body a cell may send beyond what was granted: isolates grants itself the half before
// anything is, and its last chunk may be longer than what is left.
const firstChunks = 2 * isolates.FirstCredit

// push adds a chunk. The error is a lie: more came than was granted, or something after the end.
func (s *stream) push(c events.Chunk) error {
	if s.ended {
		return errors.New("a body goes on after its end")
	}
	if s.pushed += int64(len(c.Data)); s.pushed > s.granted.Load()+firstChunks {
		return fmt.Errorf("a body has %d bytes, and %d were granted", s.pushed, s.granted.Load())
	}
	s.ended = c.End || c.Failure != nil
	s.Push(c)
	return nil
}

// breakOff ends a body that its cell has not ended.
func (s *stream) breakOff(f *events.Failure) {
	if s != nil && !s.ended {
		s.ended = true
		s.Push(events.Chunk{Failure: f})
	}
}
