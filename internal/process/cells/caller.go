package cells

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// caller is a cell as its calls.Server sees it. Any goroutine may call the methods.
type caller struct{ cell *cell }

// Owner implements calls.Given.
func (c caller) Owner(owner string) bool {
	c.cell.mu.Lock()
	defer c.cell.mu.Unlock()
	_, has := c.cell.given.owners[owner]
	return has
}

// Worker implements calls.Given.
func (c caller) Worker(owner, name, of string) *workers.Worker {
	c.cell.mu.Lock()
	defer c.cell.mu.Unlock()
	return c.cell.given.named[version{owner, name, of}]
}

// Attempt implements calls.Given.
func (c caller) Attempt(id uint64) (a *lifecycle.Attempt, was bool) {
	c.cell.mu.Lock()
	defer c.cell.mu.Unlock()
	x, was := c.cell.assigned.find(id)
	if x == nil {
		return nil, was
	}
	return x.attempt, true
}

// Socket implements calls.Given.
func (c caller) Socket(number uint64) events.SocketConn { return c.cell.sockets.take(number) }

// errCalls is the lie of a cell whose connection for calls the broker's HTTP/2 gave up.
var errCalls = errors.New("what comes by the connection of its calls is no HTTP/2")

// serveCalls answers the calls of the cell. They end with their connection. A cell whose calls ended before it was told
// to end is killed: its handlers would get no answers.
func (c *cell) serveCalls(ctx context.Context) {
	conn := &leaving{Conn: c.process.Calls}
	if err := c.calls.Serve(context.WithoutCancel(ctx), conn); err != nil {
		c.pools.log.Debug().Err(err).Str("class", c.class.name).Msg("the calls of a cell ended")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == ending {
		return
	}
	if !conn.left.Load() && c.lie == nil {
		c.lie = errCalls
	}
	c.process.Kill()
}

// leaving is a connection that notes when the other side has left it.
type leaving struct {
	net.Conn
	left atomic.Bool
}

// Read implements net.Conn.
func (l *leaving) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.note(err)
	return n, err
}

// Write implements net.Conn.
func (l *leaving) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	l.note(err)
	return n, err
}

func (l *leaving) note(err error) {
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		l.left.Store(true)
	}
}

// clients are the clients' ends of the WebSockets of a cell.
type clients struct {
	mu   sync.Mutex
	last uint64
	over bool
	of   map[uint64]*client
}

// client is one of them, while it is served.
type client struct {
	conn  events.SocketConn
	taken bool
	ended chan struct{}
	once  sync.Once
}

func (x *client) end() { x.once.Do(func() { close(x.ended) }) }

// add notes a client's end, unless the cell has ended.
func (x *clients) add(conn events.SocketConn) (number uint64, of *client) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return 0, nil
	}
	if x.of == nil {
		x.of = map[uint64]*client{}
	}
	x.last++
	of = &client{conn: conn, ended: make(chan struct{})}
	x.of[x.last] = of
	return x.last, of
}

// take returns a client's end once. What it returns says by Close that nothing passes messages any more.
func (x *clients) take(number uint64) events.SocketConn {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := x.of[number]
	if of == nil || of.taken {
		return nil
	}
	of.taken = true
	return &clientConn{SocketConn: of.conn, of: of}
}

func (x *clients) remove(number uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.of, number)
}

// end ends all: the cell has.
func (x *clients) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	for _, of := range x.of {
		of.end()
	}
}

// clientConn is a connection that says when it is closed.
type clientConn struct {
	events.SocketConn
	of *client
}

// Close closes the connection.
func (c *clientConn) Close() error {
	defer c.of.end()
	return c.SocketConn.Close()
}

// socket is the end of a WebSocket that a worker in the cell has. of is its number there.
func (c *cell) socket(of uint64) *events.Socket {
	return &events.Socket{Serve: func(ctx context.Context, conn events.SocketConn) {
		if conn == nil {
			c.serveSocket(of, 0)
			return
		}
		number, client := c.sockets.add(conn)
		if client == nil {
			_ = conn.Close()
			return
		}
		defer c.sockets.remove(number)
		defer func() { _ = conn.Close() }()
		c.serveSocket(of, number)
		select {
		case <-client.ended:
			return
		case <-ctx.Done():
		}
		c.about(wire.Unserve, of)
		<-client.ended // the cell says goodbye, or ends
	}}
}

func (c *cell) serveSocket(of, number uint64) {
	f := c.conn.Begin(wire.Serve)
	f.Uint(of)
	f.Uint(number)
	c.conn.End()
	c.conn.Flush()
}
