package consumer

import (
	"sync/atomic"
	"time"
)

// flow is how the events of a source come and go. Those that end at once are held back in the stream: no more are asked for than are soon
// through, so that the queue of their owner does not run over. To park them would take longer than to run them. Of what is slow, or does
// not end at all, as many are asked for as the window has room for; what is too much for its owner is parked, and the owners behind it go on.
type flow struct {
	held    atomic.Int64
	acking  atomic.Int64  // of these: they have ended, and NATS is to confirm it
	changes atomic.Uint64 // events that came, ended or left, so far
	slow    atomic.Int32  // about how many of 65536 events that ended were not brief; written by the settle goroutine
}

const (
	// slowFlow is how many of 65536 make a source slow: what is brief as a rule has its first runs, and collections of garbage.
	slowFlow = 65536 / 2
	// laneBytes is about what a lane may have on its way to us, and allBytes what all may. nats-server drops a connection with 64 MB that
	// were not read yet.
	laneBytes = 4 << 20
	allBytes  = 32 << 20
	// stuckAfter is how long no event of a source may end of which as much is held as may be, before it counts as slow: in time in which
	// this process could have run events.
	stuckAfter = 300 * time.Millisecond
)

// comes notes that one event more is held.
func (f *flow) comes() {
	f.held.Add(1)
	f.changes.Add(1)
}

// leaves notes that an event is held no more, and whether it had ended before.
func (f *flow) leaves(ended bool) {
	f.held.Add(-1)
	if ended {
		f.acking.Add(-1)
	}
	f.changes.Add(1)
}

// ended notes how an event ended. Half of the last hundred count, about.
func (f *flow) ended(brief bool) {
	slow := f.slow.Load()
	if brief {
		slow -= slow / 128
	} else {
		slow += (65536 - slow) / 128
	}
	f.slow.Store(slow)
	f.acking.Add(1)
	f.changes.Add(1)
}

// room is how many more events of l may be asked for.
func (p *puller) room(l *lane) int { return min(p.flowRoom(l), p.byteRoom(l)) }

// weigh takes a message into account for byteRoom: a large one soon, small ones slowly.
func (l *lane) weigh(size int) {
	if size > l.size {
		l.size += (size - l.size + 3) / 4
	} else {
		l.size -= (l.size - size) / 64
	}
}

// expect tells how large the messages are that wait, so that not the first ones have to show it.
func (p *puller) expect(size int) {
	for _, l := range p.lanes {
		l.size = size
	}
}

// onTheirWay is about how many bytes the server was asked for that are not here yet.
func (p *puller) onTheirWay() (bytes int) {
	for l := range p.all {
		bytes += l.credits * l.size
	}
	return bytes
}

// byteRoom is how many more messages of the size that they have had may be on their way; none until half of them are there. One may always
// come.
func (p *puller) byteRoom(l *lane) int {
	size := max(1, l.size)
	most := max(1, laneBytes/size)
	if l.credits*2 > most {
		return 0
	}
	return min(most-l.credits, max((allBytes-p.coming)/size, 1-l.credits))
}

// flowRoom is bounded where events are brief, and has what is worth a request only.
func (p *puller) flowRoom(l *lane) int {
	f := &l.src.flow
	held := int(f.held.Load())
	if changes := f.changes.Load(); changes != l.changes {
		l.changes, l.moved = changes, p.able.passed
	}
	if p.c.cfg.LaneHeld == 0 || f.slow.Load() >= slowFlow {
		return p.c.cfg.Window
	}
	room := p.c.cfg.LaneHeld - held - l.credits
	if room >= p.chunk() {
		return room
	}
	// What has ended and waits for NATS keeps nobody's queue full.
	if held > int(f.acking.Load()) && p.able.passed-l.moved >= stuckAfter {
		return p.c.cfg.Window
	}
	p.full = true
	return 0
}
