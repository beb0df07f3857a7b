package consumer

import (
	"sync/atomic"
	"time"
)

// flow counts the events of a source that come and go. When a source's events are brief, the rest is held back in the
// stream: the lane asks only for as many as will end soon, so that their owner's queue does not overflow. Parking such
// events would take longer than running them. When a source's events are slow or do not end, the lane asks for more
// than an owner may have queued. What is too much for an owner is parked, and the owners behind it continue.
type flow struct {
	held    atomic.Int64
	acking  atomic.Int64  // of held: events that have ended, and whose ack NATS has not confirmed
	changes atomic.Uint64 // events that came, ended or left, so far
	slow    atomic.Int32  // about how many of 65536 events that ended were not brief; written by the settle goroutine
}

const (
	// slowFlow is how many of 65536 events must be slow for a source to count as slow. A worker whose events are
	// usually brief has slow first runs and garbage collections too.
	slowFlow = 65536 / 2
	// laneBytes is about how many bytes of one lane may be on their way to this process, and allBytes how many of all
	// lanes. nats-server closes a connection with 64 MB of unread data.
	laneBytes = 4 << 20
	allBytes  = 32 << 20
	// stuckAfter is after how long a source counts as slow when it holds as many events as it may and none of them
	// ends. Only time in which this process could run events counts.
	stuckAfter = 300 * time.Millisecond
)

// comes notes that one more event is in flight.
func (f *flow) comes() {
	f.held.Add(1)
	f.changes.Add(1)
}

// leaves notes that an event is no longer in flight. ended is whether it has ended.
func (f *flow) leaves(ended bool) {
	f.held.Add(-1)
	if ended {
		f.acking.Add(-1)
	}
	f.changes.Add(1)
}

// ended notes how an event ended. About the last hundred events make up half of the average.
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

// weigh adjusts the message size that byteRoom uses: quickly for large messages, slowly for small ones.
func (l *lane) weigh(size int) {
	if size > l.size {
		l.size += (size - l.size + 3) / 4
	} else {
		l.size -= (l.size - size) / 64
	}
}

// expect sets the size of the messages that wait in the stream, so that the lanes need not learn it from the first
// ones.
func (p *puller) expect(size int) {
	for _, l := range p.lanes {
		l.size = size
	}
}

// onTheirWay is about how many bytes were asked for and have not arrived.
func (p *puller) onTheirWay() (bytes int) {
	for l := range p.all {
		bytes += l.credits * l.size
	}
	return bytes
}

// byteRoom is how many more messages may be on their way, if they have the size of the earlier ones. It is 0 until half
// of them have arrived. One message is always allowed.
func (p *puller) byteRoom(l *lane) int {
	size := max(1, l.size)
	most := max(1, laneBytes/size)
	if l.credits*2 > most {
		return 0
	}
	return min(most-l.credits, max((allBytes-p.coming)/size, 1-l.credits))
}

// flowRoom is how many more events may be asked for. It is limited while events are brief, and then 0 or enough to be
// worth a request.
func (p *puller) flowRoom(l *lane) int {
	f := &l.src.flow
	held := int(f.held.Load())
	if changes := f.changes.Load(); changes != l.changes {
		l.changes, l.moved = changes, p.active.total
	}
	if p.c.cfg.LaneHeld == 0 {
		return p.c.cfg.Window
	}
	taken, chunk := held+l.credits, p.c.cfg.chunk()
	if room := p.c.cfg.LaneHeld - taken; room >= chunk {
		return room
	}
	// Events that have ended and wait for NATS fill no owner's queue.
	stuck := held > int(f.acking.Load()) && p.active.total-l.moved >= stuckAfter
	if room := p.c.cfg.slowHeld() - taken; room >= chunk && (stuck || f.slow.Load() >= slowFlow) {
		return room
	}
	p.full = true
	return 0
}
