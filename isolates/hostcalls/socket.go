package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Bounds of WebSockets. fetch/websocket.js has the bound on bytes that wait to be sent.
const (
	maxSockets       = 16               // open at once in a run
	MaxSocketMessage = 4 << 20          // bytes of a received message
	socketBytes      = 64 << 10         // what a WebSocket counts as, without longer messages and unsent data
	socketGoodbye    = 30 * time.Second // from close() to the end of the connection, whatever the server does
)

// socket is a WebSocket of a run. One goroutine opens the connection and reads. Another one writes, while there is
// something to write. The socket ends with the run.
type socket struct {
	line
	url       string // "" = a client opened it
	protocols []string
	conn      events.SocketConn // set before the thread is notified that it is open
	client    *accepted         // nil = the worker opened it
	own       int               // bytes that it counts as, messages of up to that included

	late *time.Timer // fires when the server takes too long to answer close(); guarded by mu
}

// newSocket makes a WebSocket that counts as own bytes.
func newSocket(r *Calls, id float64, own int) *socket {
	s := &socket{line: line{r: r, c: r.register(id), sentOp: js.OpSocketSent}, own: own}
	s.put = s.putFrame
	return s
}

// sockets are the WebSockets of a run that are not closed yet.
type sockets struct {
	of       map[float64]*socket // by id; nil until the first
	accepted int                 // of them, opened by clients
}

// begin carries out a command to open a WebSocket: id, URL, protocols.
func (x *sockets) begin(r *Calls, in *v8x.Commands) {
	id := in.Number()
	if in.Left() > maxRequestHead {
		x.open(r, id, "", nil)
		return
	}
	x.open(r, id, in.Text(), in.Strings())
}

// send carries out a command to send a message: id, whether it is text, bytes. It ignores a late command, to a
// WebSocket that is closed.
func (x *sockets) send(in *v8x.Commands) {
	if s := x.of[in.Number()]; s != nil {
		kind := websocket.BinaryMessage
		if in.Bool() {
			kind = websocket.TextMessage
		}
		s.enqueue(frame{kind, append([]byte(nil), in.View()...)})
	}
}

// end carries out a command to close a WebSocket: id, code or 0, reason, whether to give it up.
func (x *sockets) end(in *v8x.Commands) {
	s := x.of[in.Number()]
	if s == nil {
		return
	}
	code, reason := int(in.Int()), in.Text()
	if in.Bool() {
		s.giveUp(errors.New("closed before it was open, or more was to be sent than may wait"))
		return
	}
	var payload []byte
	if code != 0 {
		payload = websocket.FormatCloseMessage(code, reason)
	}
	s.enqueue(frame{websocket.CloseMessage, payload})
	s.mu.Lock()
	s.late = time.AfterFunc(socketGoodbye, s.hangUp)
	s.mu.Unlock()
}

// open starts to open a WebSocket, which counts as a subrequest.
func (x *sockets) open(r *Calls, id float64, url string, protocols []string) {
	s := newSocket(r, id, socketBytes)
	s.url, s.protocols = url, protocols
	r.fetches.made++
	switch many := r.fetches.tooMany(r); {
	case url == "":
		s.reportEnd(socketEnd{failure: fmt.Errorf("the URL and the protocols are too long: at most %d bytes", maxRequestHead)})
		return
	case many != nil:
		s.reportEnd(socketEnd{failure: many})
		return
	case len(x.of)-x.accepted >= maxSockets:
		s.reportEnd(socketEnd{failure: fmt.Errorf("too many WebSockets: at most %d per event may be open", maxSockets)})
		return
	}
	if err := s.hold(s.own); err != nil {
		s.reportEnd(socketEnd{failure: err})
		return
	}
	ctx, cancel := context.WithCancel(r.callContext())
	s.c.cancel = cancel
	x.add(id, s)
	s.c.span = r.run.Attempt().Begin(lifecycle.Operation{Kind: lifecycle.Subrequest, Method: http.MethodGet, Target: url})
	go s.live(ctx, cancel)
}

func (x *sockets) add(id float64, s *socket) {
	if x.of == nil {
		x.of = map[float64]*socket{}
	}
	x.of[id] = s
}

// dropAll uncounts all bytes. After it nothing is counted.
func (s *socket) dropAll() {
	s.line.dropAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late != nil {
		s.late.Stop()
	}
}

// hangUp ends a connection whose other side does not answer close().
func (s *socket) hangUp() {
	if s.client != nil { // it may not have its end yet
		s.c.cancel()
		return
	}
	_ = s.conn.Close()
}
