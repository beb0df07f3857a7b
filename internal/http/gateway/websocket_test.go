package gateway

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// mirror sends back what clients send.
func mirror(_ context.Context, conn events.SocketConn) {
	defer func() { _ = conn.Close() }()
	c := conn.(*websocket.Conn)
	for {
		kind, data, err := c.ReadMessage()
		if err != nil || c.WriteMessage(kind, data) != nil {
			return
		}
	}
}

// The goroutine of the request ends when its WebSocket is open, so that 10 000 of them take little. The owner's place
// is taken until the WebSocket ends.
func TestWebSocketOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	cfg := domain
	cfg.OwnerRequests = 1
	g := newGateway(t, cfg, handler(func(*lifecycle.Delivery) *events.Reply {
		return &events.Reply{Status: http.StatusSwitchingProtocols, Socket: &events.Socket{Serve: mirror}}
	}))
	defer g.Close()
	returned := make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { returned <- struct{}{} }()
		g.ServeHTTP(w, r)
	}))
	defer s.Close()
	d := websocket.Dialer{NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}}
	dial := func() (*websocket.Conn, *http.Response) {
		c, resp, err := d.DialContext(t.Context(), "ws://shop--acme.w.test/", nil)
		if err != nil {
			require.ErrorIs(t, err, websocket.ErrBadHandshake)
		}
		return c, resp
	}
	c, _ := dial()
	require.NotNil(t, c)
	<-returned
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	require.NoError(t, c.WriteMessage(websocket.TextMessage, []byte("hello")))
	_, data, err := c.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))

	none, resp := dial()
	require.Nil(t, none)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "the owner has one place")
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool {
		if c, _ = dial(); c == nil {
			return false
		}
		return c.Close() == nil
	}, patience, 10*time.Millisecond)
}
