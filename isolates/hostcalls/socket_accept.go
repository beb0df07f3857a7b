package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Bounds of the WebSockets that clients open. They belong to what a persistent context does between events.
const (
	maxAccepted   = 1000             // open at once in a context
	AcceptedBytes = 16 << 10         // what one counts as, without longer messages and unsent data
	clientWrite   = 30 * time.Second // for a client to take a message
	clientWait    = 30 * time.Second // from accept() until the client has its end
)

// accepted is what a WebSocket has in addition when a client opened it.
type accepted struct {
	ctx     context.Context //nolint:containedctx // ends with the context of the worker
	offered bool            // a reply has it; owner thread only
	waits   *time.Timer     // fires when no client comes
	ends    atomic.Bool     // the process ends, and not only the context
}

var (
	errNoClient      = errors.New("no Response gave the other end to a client")
	errNotBetween    = errors.New("only a persistent context can accept WebSockets")
	errFault         = errors.New("it ended by a fault of Pinwheel")
	errManySockets   = fmt.Errorf("too many WebSockets of clients: at most %d per context may be open", maxAccepted)
	errNotAsked      = "the fetch handler answered with a webSocket, and the request did not ask for one, or cannot have one"
	errSocketIsGone  = "the webSocket of the Response is closed"
	errSocketOffered = "the webSocket of the Response was given to a client already"
)

// accept makes the worker's end of a WebSocket. What is sent waits until a client has the other end.
func (x *sockets) accept(r *Calls, id float64) {
	s := newSocket(r, id, AcceptedBytes)
	s.client = &accepted{}
	s.client.ctx, s.c.cancel = context.WithCancel(r.callContext())
	err := errNotBetween
	if r.run.BetweenEvents() {
		if err = errManySockets; x.accepted < maxAccepted {
			err = s.hold(s.own)
		}
	}
	if err != nil {
		s.c.cancel()
		s.reportEnd(socketEnd{failure: err})
		return
	}
	x.add(id, s)
	x.accepted++
	s.client.waits = time.AfterFunc(clientWait, func() { s.serve(context.Background(), nil) })
}

// remove removes a WebSocket that has ended. Owner thread only.
func (s *socket) remove() {
	if s.r.sockets.of[s.c.id] != s {
		return
	}
	delete(s.r.sockets.of, s.c.id)
	if s.client != nil {
		s.r.sockets.accepted--
		s.r.run.SocketGone()
	}
}

// Accepted is how many WebSockets that clients opened are open.
func (r *Calls) Accepted() int { return r.sockets.accepted }

// Offer gives the worker's end of a WebSocket to the reply to an event. r is of what the context does between events;
// nil = the context is not persistent.
func (r *Calls) Offer(reply *events.Reply, id float64, e *lifecycle.Delivery) *events.Failure {
	var s *socket
	if r != nil {
		s = r.sockets.of[id]
	}
	why := ""
	switch {
	case s == nil || s.client == nil:
		why = errSocketIsGone
	case s.client.offered:
		why = errSocketOffered
	case e == nil || !e.Upgrade:
		why = errNotAsked
		s.giveUp(errNoClient)
	default:
		s.client.offered = true
		reply.Socket = &events.Socket{Serve: s.serve}
		return nil
	}
	return events.Fail(events.ReasonException, "%s", why)
}

// serve is events.Socket.Serve.
func (s *socket) serve(ctx context.Context, conn events.SocketConn) {
	waited := s.client.waits.Stop()
	if conn == nil || !waited {
		if conn != nil {
			_ = conn.Close()
		}
		s.giveUp(errNoClient)
		s.dropAll()
		s.reportEnd(s.failed(errNoClient))
		return
	}
	defer s.c.cancel()
	defer context.AfterFunc(ctx, func() {
		s.client.ends.Store(true)
		s.c.cancel()
	})()
	s.conn = conn
	end := s.failed(errFault)
	defer func() { // also after a panic
		s.dropAll()
		s.reportEnd(end)
	}()
	end = s.talk(s.client.ctx)
}

// goodbye is the code for the other side when this side ends the connection.
func (s *socket) goodbye() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.client == nil || s.client.ends.Load():
		return websocket.CloseGoingAway
	case s.why != nil:
		return websocket.CloseTryAgainLater
	}
	return websocket.CloseServiceRestart
}

// take lets the reader pass on its next message. A client whose messages take more than what the owner may take between
// events waits.
func (s *socket) take(taken chan<- struct{}) {
	pause := time.Duration(0)
	if s.client != nil {
		pause = s.r.run.Pause()
	}
	if pause == 0 {
		taken <- struct{}{}
		return
	}
	time.AfterFunc(pause, func() { taken <- struct{}{} })
}

// peer names the other side in messages.
func (s *socket) peer() string {
	if s.client != nil {
		return "of a client"
	}
	return "to " + clipped(s.url)
}
