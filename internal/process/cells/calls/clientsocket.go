package calls

import (
	"bufio"
	"context"
	"io"
	"math"
	"net"
	"os"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pinwheel-run/pinwheel/events"
)

// socketOpen is how long the broker may take to give a WebSocket to the cell.
const socketOpen = 30 * time.Second

// socket is the client's end of a WebSocket, in the cell. One goroutine reads, and others write.
type socket struct {
	d       *duplex
	in      *bufio.Reader
	limit   uint32
	started bool
	end     error // that NextReader returned
	left    *message
	writing chan struct{} // capacity 1; has an element while a frame is written
	within  time.Time     // the write deadline of messages; for who has writing
}

// Socket returns the client's end of the WebSocket that waits for the cell under a number. It is called once for each.
func (c *Client) Socket(ctx context.Context, id uint64) (events.SocketConn, error) {
	ctx, cancel := context.WithTimeout(ctx, socketOpen)
	defer cancel()
	h := newHead()
	h.number(id)
	d, err := c.open(ctx, "/socket", h)
	if err != nil {
		return nil, err
	}
	return &socket{d: d, in: bufio.NewReaderSize(d, 1<<10), writing: make(chan struct{}, 1)}, nil
}

// SetReadLimit implements events.SocketConn. It counts until the first NextReader. The broker has a limit of its own.
func (s *socket) SetReadLimit(bytes int64) { s.limit = uint32(min(max(0, bytes), math.MaxUint32)) }

// NextReader implements events.SocketConn.
func (s *socket) NextReader() (kind int, m io.Reader, err error) {
	if !s.started {
		s.started = true
		if err := s.write(frame{op: frameStart, number: s.limit}, nil, time.Time{}); err != nil {
			s.end = err
		}
	}
	if s.left != nil {
		_, _ = io.Copy(io.Discard, s.left)
		s.left = nil
	}
	f := s.next()
	if s.end != nil {
		return 0, nil, s.end
	}
	s.left = &message{s: s, left: int(f.size), last: f.op == frameLast}
	return int(f.kind), s.left, nil
}

// next reads the next piece. After an error or the end, s.end is why.
func (s *socket) next() frame {
	if s.end != nil {
		return frame{}
	}
	f, err := readFrame(s.in)
	switch {
	case err != nil:
		s.end = &net.OpError{Op: "read", Net: "tcp", Err: err}
	case f.op == frameEnd && f.size <= maxReason:
		text := make([]byte, f.size)
		_, _ = io.ReadFull(s.in, text)
		s.end = f.reason(string(text))
	case f.op != framePiece && f.op != frameLast:
		s.end = errAnswer
	}
	return f
}

// message is a message that comes in pieces.
type message struct {
	s    *socket
	left int // bytes of the piece
	last bool
}

// Read implements io.Reader.
func (m *message) Read(p []byte) (int, error) {
	for m.left == 0 && m.s.end == nil {
		if m.last {
			return 0, io.EOF
		}
		f := m.s.next()
		m.left, m.last = int(f.size), f.op == frameLast
	}
	if m.s.end != nil {
		return 0, m.s.end
	}
	n, err := m.s.in.Read(p[:min(len(p), m.left)])
	m.left -= n
	if err != nil {
		m.s.end = &net.OpError{Op: "read", Net: "tcp", Err: err}
		return n, m.s.end
	}
	return n, nil
}

// WriteMessage implements events.SocketConn.
func (s *socket) WriteMessage(kind int, data []byte) error {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	return s.locked(frame{op: frameMessage, kind: byte(kind)}, data, s.within)
}

// WriteControl implements events.SocketConn.
func (s *socket) WriteControl(kind int, data []byte, deadline time.Time) error {
	return s.write(frame{op: frameControl, kind: byte(kind)}, data, deadline)
}

// SetWriteDeadline implements events.SocketConn.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.writing <- struct{}{}
	s.within = t
	<-s.writing
	return nil
}

// write writes a frame after those that other goroutines write. It waits for them until the deadline; zero = none.
func (s *socket) write(f frame, data []byte, deadline time.Time) error {
	var late <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case s.writing <- struct{}{}:
	case <-late:
		return os.ErrDeadlineExceeded
	}
	defer func() { <-s.writing }()
	return s.locked(f, data, deadline)
}

// locked writes a frame. The caller has writing.
func (s *socket) locked(f frame, data []byte, deadline time.Time) error {
	if len(data) > maxMessage {
		return websocket.ErrReadLimit
	}
	f.size = uint32(len(data))
	if f.op != frameStart && !deadline.IsZero() {
		f.number = uint32(min(max(1, time.Until(deadline).Milliseconds()), frameWrite.Milliseconds()))
	}
	if err := s.d.SetWriteDeadline(deadline); err != nil {
		return err
	}
	defer func() { _ = s.d.SetWriteDeadline(time.Time{}) }()
	_, err := s.d.Write(append(f.append(make([]byte, 0, frameBytes+len(data))), data...))
	return err
}

// Close implements events.SocketConn. It does not wait: what was written before is still sent.
func (s *socket) Close() error { return s.d.Close() }

var _ events.SocketConn = (*socket)(nil)
