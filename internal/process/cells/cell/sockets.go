package cell

import (
	"context"
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
)

// sockets are the WebSockets of clients that replies have, by numbers that the cell gives them. Any goroutine may call
// the methods.
type sockets struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*events.Socket     // no client's end has come yet
	serving map[uint64]context.CancelFunc // of those that are served
	served  sync.WaitGroup
}

func (x *sockets) add(s *events.Socket) (number uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.waiting == nil {
		x.waiting, x.serving = map[uint64]*events.Socket{}, map[uint64]context.CancelFunc{}
	}
	x.last++
	x.waiting[x.last] = s
	return x.last
}

// serve gives a WebSocket the client's end, which open opens; nil = there is none.
func (x *sockets) serve(number uint64, open func(context.Context) (events.SocketConn, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	x.mu.Lock()
	s := x.waiting[number]
	delete(x.waiting, number)
	if s == nil {
		x.mu.Unlock()
		cancel()
		return
	}
	x.serving[number] = cancel
	x.mu.Unlock()
	x.served.Go(func() {
		defer func() {
			cancel()
			x.mu.Lock()
			delete(x.serving, number)
			x.mu.Unlock()
		}()
		var conn events.SocketConn
		if open != nil {
			if got, err := open(ctx); err == nil { // otherwise the broker has ended it
				conn = got
			}
		}
		s.Serve(ctx, conn)
	})
}

// end has a WebSocket say that the process ends.
func (x *sockets) end(number uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if cancel := x.serving[number]; cancel != nil {
		cancel()
	}
}

// open returns how many WebSockets there are.
func (x *sockets) open() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.waiting) + len(x.serving)
}
