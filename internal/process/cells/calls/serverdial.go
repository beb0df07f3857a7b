package calls

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pinwheel-run/pinwheel/events"
)

// dial connects for an owner, and passes bytes both ways until one side ends. The owner has as many connections as
// without cells.
func (s *Server) dial(x *exchange) error {
	owner, network, address := x.text(), x.text(), x.text()
	streams := x.streams
	if x.streams = false; x.done() != nil || !streams || network != "tcp" {
		return lie("the request for a connection is malformed")
	}
	if host, port, _ := net.SplitHostPort(address); host == "" || port == "" { // both are, after an error
		return lie("the address of a connection is %.80q: it is HOST:PORT", address)
	}
	if !s.cfg.Given.Owner(owner) {
		return lie("the cell was given no worker of %.80q", owner)
	}
	x.arguments.free()
	ctx := x.r.Context()
	conns := s.cfg.Egress.Of(owner)
	defer conns.Release()
	conn, err := conns.Dial(ctx, network, address)
	if err != nil {
		return x.reply(err, nil, nil)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // a server may take nothing and send nothing
	if err := x.begin(nil, nil); err != nil {
		return err
	}
	if err := x.flush(); err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	var left atomic.Bool // the cell ended the connection
	group.Go(func() {
		_, err := io.CopyBuffer(onlyWriter{conn}, x.r.Body, make([]byte, window))
		if err == nil && x.r.Trailer.Get(half) != "" { // the cell sends no more, and reads
			if c, ok := conn.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil {
				return
			}
		}
		left.Store(isEnd(err))
		_ = conn.Close()
	})
	err = x.copyFrom(conn)
	if !isEnd(err) && !left.Load() {
		x.fail(err)
	}
	_ = x.r.Body.Close()
	_ = conn.Close() // the other goroutine may write to it
	return nil
}

// maxName is how long a name may be, bytes: as in isolates/hostcalls.
const maxName = 255

// lookup finds the addresses of a name for an owner.
func (s *Server) lookup(x *exchange) error {
	owner, host := x.text(), x.text()
	switch err := x.done(); {
	case err != nil:
		return err
	case host == "" || len(host) > maxName:
		return lie("the name to look up has %d bytes", len(host))
	case !s.cfg.Given.Owner(owner):
		return lie("the cell was given no worker of %.80q", owner)
	}
	conns := s.cfg.Egress.Of(owner)
	defer conns.Release()
	found, err := conns.Lookup(x.r.Context(), host)
	var h head
	h.number(uint64(len(found)))
	for _, a := range found {
		h.text(a.String())
	}
	return x.reply(err, h, nil)
}

// onlyWriter is a connection without ReadFrom, which would make a buffer of its own.
type onlyWriter struct{ io.Writer }

// copyFrom sends what a connection brings, at once.
func (x *exchange) copyFrom(conn io.Reader) error {
	buffer := make([]byte, window)
	for {
		n, err := conn.Read(buffer)
		if n > 0 {
			if _, err := x.w.Write(buffer[:n]); err != nil {
				return err
			}
			if err := x.flush(); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// socket passes the messages of a WebSocket between its client and the cell.
func (s *Server) socket(x *exchange) error {
	id, streams := x.number(), x.streams
	if x.streams = false; x.done() != nil || !streams {
		return lie("the request for a WebSocket is malformed")
	}
	conn := s.cfg.Given.Socket(id)
	if conn == nil {
		return lie("no WebSocket %d waits for the cell", id)
	}
	x.arguments.free()
	defer func() { _ = conn.Close() }()
	err := x.begin(nil, nil)
	if err == nil {
		err = x.flush()
	}
	if err != nil {
		return err
	}
	c := &conversation{x: x, conn: conn, message: held{of: &s.messages}}
	defer c.group.Wait()
	err = c.take()
	if _, lied := err.(lieError); !isEnd(err) && !lied && !c.closing { //nolint:errorlint // made here
		_ = conn.WriteControl(websocket.CloseMessage,
			websocket.FormatCloseMessage(websocket.CloseServiceRestart, ""), time.Now().Add(time.Second))
	}
	_ = conn.Close()
	if isEnd(err) {
		return nil
	}
	return err
}

// conversation is a WebSocket of a client and a cell.
type conversation struct {
	x       *exchange
	conn    events.SocketConn
	group   sync.WaitGroup
	message held // the message that is written
	closing bool // a close frame was written, or cannot be
}

// take carries out the frames of the cell.
func (c *conversation) take() error {
	for started := false; ; {
		f, err := readFrame(c.x.r.Body)
		if err != nil {
			return err
		}
		if err := f.check(started); err != nil {
			return err
		}
		if f.op == frameStart {
			started = true
			limit := int64(maxMessage)
			if f.number > 0 {
				limit = min(limit, int64(f.number))
			}
			c.conn.SetReadLimit(limit)
			c.group.Go(c.give)
			continue
		}
		if err := c.write(f); err != nil {
			return err
		}
	}
}

// write writes a frame of the cell to the client. Its error ends the WebSocket: give tells the cell why.
func (c *conversation) write(f frame) error {
	within := frameWrite
	if f.number > 0 {
		within = min(within, time.Duration(f.number)*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(c.x.r.Context(), within)
	defer cancel()
	if err := c.message.take(ctx, int(f.size)); err != nil {
		return err
	}
	defer c.message.free()
	data := make([]byte, f.size)
	if _, err := io.ReadFull(c.x.r.Body, data); err != nil {
		return err
	}
	c.closing = c.closing || f.kind == websocket.CloseMessage
	deadline := time.Now().Add(within)
	if f.op == frameControl { // its error is not the end: the client may still say why
		_ = c.conn.WriteControl(int(f.kind), data, deadline)
		return nil
	}
	_ = c.conn.SetWriteDeadline(deadline)
	err := c.conn.WriteMessage(int(f.kind), data)
	if err != nil {
		c.closing = true // the client takes nothing
	}
	return err
}

// give sends the messages of the client to the cell, and in the end why there are no more.
func (c *conversation) give() {
	buffer := make([]byte, frameBytes+pieceBytes)
	for {
		kind, message, err := c.conn.NextReader()
		for op := byte(framePiece); err == nil && op == framePiece; {
			n := 0
			if n, err = io.ReadFull(message, buffer[frameBytes:]); n < pieceBytes && isLast(err) {
				op, err = frameLast, nil
			}
			if err == nil {
				_ = frame{op: op, kind: byte(kind), size: uint32(n)}.append(buffer[:0])
				if !c.send(buffer[:frameBytes+n]) {
					return
				}
			}
		}
		if err != nil {
			c.send(endOf(err))
			return
		}
	}
}

func (c *conversation) send(data []byte) bool {
	_, err := c.x.w.Write(data)
	return err == nil && c.x.flush() == nil
}
