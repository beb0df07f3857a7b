package gateway

import (
	"context"
	"encoding/base64"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pinwheel-run/pinwheel/events"
)

// upgrades reports whether a request asks for a WebSocket, and can have one.
func upgrades(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Method == http.MethodGet && websocket.IsWebSocketUpgrade(r)
}

const (
	headerSocketVersion = "Sec-Websocket-Version"
	headerSocketKey     = "Sec-Websocket-Key"
)

// checkUpgrade returns why a request cannot have the WebSocket that it asks for; nil = it can. A page of an origin that
// may not read responses gets none: browsers do not ask first.
func (x *exchange) checkUpgrade() *refusal {
	h := x.r.Header
	key, err := base64.StdEncoding.DecodeString(h.Get(headerSocketKey))
	switch origin := h.Get("Origin"); {
	case x.g.leaving.Load():
		return &refusal{http.StatusServiceUnavailable, "the process ends"}
	case len(h[headerSocketVersion]) != 1 || h.Get(headerSocketVersion) != "13":
		x.w.Header()[headerSocketVersion] = []string{"13"}
		return &refusal{http.StatusUpgradeRequired, "the version of WebSocket is 13"}
	case len(h[headerSocketKey]) != 1 || err != nil || len(key) != 16:
		return &refusal{http.StatusBadRequest, "the header " + headerSocketKey + " is not 16 bytes in base64"}
	case origin != "" && x.service.CORS != nil && !x.service.CORS.Allows(origin):
		return &refusal{http.StatusForbidden, "the worker does not answer pages of this origin"}
	}
	return nil
}

// sockets are the open WebSockets of a Gateway. All methods may be called from any goroutine.
type sockets struct {
	ctx    context.Context //nolint:containedctx // done when the process ends
	cancel func()

	mu     sync.Mutex
	open   int
	closed chan struct{} // closed when the process ends and none is open
}

func newSockets() *sockets {
	s := &sockets{closed: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// enter counts a WebSocket. It returns false when the process ends.
func (s *sockets) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.open++
	return true
}

func (s *sockets) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.open == 0 && s.ctx.Err() != nil {
		close(s.closed)
	}
}

// end has all WebSockets closed.
func (s *sockets) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil && s.open == 0 {
		close(s.closed)
	}
	s.cancel()
}

// wait returns when all are closed, or when ctx is done. It comes after end.
func (s *sockets) wait(ctx context.Context) {
	select {
	case <-s.closed:
	case <-ctx.Done():
	}
}

// upgrader makes connections WebSockets. The worker, and http.cors, say which origins may connect. With a size for
// reading it does not keep the larger buffer of the server.
var upgrader = websocket.Upgrader{
	CheckOrigin: func(*http.Request) bool { return true }, ReadBufferSize: 1 << 10, WriteBufferPool: &sync.Pool{},
	WriteBufferSize: 4 << 10,
	Error:           func(http.ResponseWriter, *http.Request, int, error) {}, // see upgrade
}

// upgrade makes the connection a WebSocket.
func (x *exchange) upgrade(r *events.Reply) {
	h := http.Header{}
	for name, values := range x.w.Header() {
		if name != "Content-Type" && name != "Content-Length" && name != "Sec-Websocket-Extensions" {
			h[name] = values
		}
	}
	x.cookies(h)
	if !x.g.sockets.enter() {
		r.Socket.Serve(context.Background(), nil)
		x.cut()
	}
	w := &framesWriter{ResponseWriter: x.w}
	conn, err := upgrader.Upgrade(w, x.r, h)
	if err != nil {
		x.g.sockets.leave()
		r.Socket.Serve(context.Background(), nil)
		x.cut()
	}
	w.frames.attend(conn)
	x.status, x.upgraded = http.StatusSwitchingProtocols, true
	x.record()
	x.g.talk(x.event.Owner, r.Socket, conn)
}

// recovered ends a WebSocket after a panic, which would end the process. It is deferred.
func (g *Gateway) recovered(owner string, conn *websocket.Conn) {
	why := recover()
	if why == nil {
		return
	}
	g.log.Error().Str("owner", owner).Interface("panic", why).Bytes("stack", debug.Stack()).
		Msg("a WebSocket of a client ended by a fault of this program")
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseInternalServerErr, ""),
		time.Now().Add(time.Second))
	_ = conn.Close()
}

// talk passes the messages of a WebSocket on until it ends. The goroutine of the request ends at once, and with it its
// stack, its headers and the buffers of the server: they are more than the WebSocket itself takes.
func (g *Gateway) talk(owner string, s *events.Socket, conn *websocket.Conn) {
	g.metrics.sockets.Inc()
	go func() {
		defer g.sockets.leave()
		defer g.owners.leave(owner)
		defer g.metrics.sockets.Dec()
		defer g.recovered(owner, conn)
		s.Serve(g.sockets.ctx, conn)
	}()
}
