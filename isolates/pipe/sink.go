package pipe

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
)

// Sink is where a body goes. One goroutine at a time calls Write.
type Sink interface {
	// Write takes the next bytes. It returns when more may come. If free, it does not keep their memory, which may be used
	// again; otherwise it takes it over. An error says that no more is taken.
	Write(ctx context.Context, data []byte) (free bool, err error)
	// Close says that the body is complete, or why it is not. It is called once, by any goroutine.
	Close(err error)
}

// Outlet is the Sink of the body of a reply: the chunks go to its publisher as far as that grants.
type Outlet struct {
	offer   func(events.Chunk) (write func([]byte) error)
	closed  func(error)
	granted atomic.Int64  // bytes, in all
	more    chan struct{} // capacity 1: granted has grown
	sent    int64
	waits   bool // the publisher knows that there are more bytes than it granted
}

// NewOutlet makes an Outlet that may offer credit bytes before the first Grant. offer is that of an events.Stream.
func NewOutlet(credit int64, offer func(events.Chunk) (write func([]byte) error), closed func(error)) *Outlet {
	o := &Outlet{offer: offer, closed: closed, more: make(chan struct{}, 1)}
	o.granted.Store(credit)
	return o
}

// Grant lets the body grow to upTo bytes in all. Any goroutine may call it.
func (o *Outlet) Grant(upTo int64) {
	for {
		before := o.granted.Load()
		if upTo <= before {
			return
		}
		if o.granted.CompareAndSwap(before, upTo) {
			break
		}
	}
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// Write implements Sink.
func (o *Outlet) Write(ctx context.Context, data []byte) (free bool, err error) {
	free = true
	for len(data) > 0 {
		n := min(o.granted.Load()-o.sent, int64(len(data)))
		if n > 0 || !o.waits {
			if write := o.offer(events.Chunk{Data: data[:n:n], Waits: n == 0}); write != nil {
				return free, write(data)
			}
			free, o.sent, o.waits, data = free && n == 0, o.sent+n, n == 0, data[n:]
			continue
		}
		select {
		case <-o.more:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return free, ctx.Err()
}

// Close implements Sink.
func (o *Outlet) Close(err error) { o.closed(err) }

// ErrTooLong is the error of a Gather whose body is longer than it may be.
var ErrTooLong = errors.New("the body is too large")

// Gather is a Sink that makes one value of a body.
type Gather struct {
	most int64
	hold func(n int) error
	done func(data []byte, held int, err error)
	data []byte
	held int
}

// NewGather makes a Gather of at most this many bytes. hold charges the memory before it is used. done gets the body,
// or why there is none, and how many bytes were charged.
func NewGather(most int64, hold func(n int) error, done func(data []byte, held int, err error)) *Gather {
	return &Gather{most: most, hold: hold, done: done}
}

// leastGathered is the memory that a Gather begins with, bytes. It doubles.
const leastGathered = 64 << 10

// Write implements Sink.
func (g *Gather) Write(ctx context.Context, data []byte) (free bool, err error) {
	size := len(g.data) + len(data)
	if int64(size) > g.most {
		return true, ErrTooLong
	}
	if size > cap(g.data) {
		room := max(size, 2*g.held, leastGathered)
		if err := g.hold(room - g.held); err != nil {
			return true, err
		}
		g.held = room
		g.data = append(make([]byte, 0, room), g.data...) // g.held and cap(g.data) are the same
	}
	g.data = append(g.data, data...)
	return true, ctx.Err()
}

// Close implements Sink.
func (g *Gather) Close(err error) {
	g.done(g.data, g.held, err)
}

// Joint returns a Sink, and a reader of what goes there. The Sink takes no more when the reader is closed.
func Joint() (Sink, io.ReadCloser) {
	r, w := io.Pipe()
	return joint{w}, r
}

type joint struct{ w *io.PipeWriter }

// Write implements Sink.
func (j joint) Write(_ context.Context, data []byte) (free bool, err error) {
	_, err = j.w.Write(data)
	return true, err // io.Pipe copies
}

// Close implements Sink.
func (j joint) Close(err error) { _ = j.w.CloseWithError(err) }
