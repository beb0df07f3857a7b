package gateway

import (
	"bytes"
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

// openSockets starts a server whose requests become WebSockets of serve, and returns what opens one of its only owner.
func openSockets(t *testing.T, serve func(context.Context, events.SocketConn)) (dial func() *websocket.Conn) {
	cfg := domain
	cfg.OwnerRequests = 1
	g := newGateway(t, cfg, handler(func(*lifecycle.Delivery) *events.Reply {
		return &events.Reply{Status: http.StatusSwitchingProtocols, Socket: &events.Socket{Serve: serve}}
	}))
	s := httptest.NewServer(g)
	t.Cleanup(func() {
		g.Close()
		s.Close()
	})
	d := websocket.Dialer{NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}}
	return func() (c *websocket.Conn) {
		require.Eventually(t, func() bool { // that before it may still have the owner's place
			c, _, _ = d.DialContext(t.Context(), "ws://shop--acme.w.test/", nil)
			return c != nil
		}, patience, 5*time.Millisecond)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		return c
	}
}

// closes requires that the server closes with that code.
func closes(t *testing.T, c *websocket.Conn, code int) {
	t.Helper()
	for {
		_, _, err := c.ReadMessage()
		if err == nil {
			continue
		}
		var closed *websocket.CloseError
		require.ErrorAs(t, err, &closed)
		require.Equal(t, code, closed.Code)
		return
	}
}

// refused sends first, and then again and again data, which ends with a ping, until the server closes with 1008. It
// sends no more than the server has read: what it has not read when it closes would reset the connection.
func refused(t *testing.T, c *websocket.Conn, first, data []byte) {
	t.Helper()
	pongs, closed := make(chan struct{}, 1), make(chan error, 1)
	c.SetPongHandler(func(string) error { pongs <- struct{}{}; return nil })
	go func() {
		_, _, err := c.ReadMessage()
		closed <- err
	}()
	_, err := c.NetConn().Write(first)
	require.NoError(t, err)
	for {
		_, err = c.NetConn().Write(data)
		require.NoError(t, err)
		select {
		case <-pongs:
		case err := <-closed:
			require.True(t, websocket.IsCloseError(err, websocket.ClosePolicyViolation), "%v", err)
			return
		}
	}
}

// Frames that no handler sees are bounded: control frames, and small pieces of messages.
func TestFramesOfAClientAreBounded(t *testing.T) {
	t.Parallel()
	dial := openSockets(t, mirror)
	ping, empty := []byte("\x89\x80mask"), []byte("\x00\x80mask")
	begin, full := []byte("\x01\x80mask"), append([]byte("\x00\xfe\x04\x00mask"), make([]byte, smallPiece)...)

	refused(t, dial(), nil, ping)
	refused(t, dial(), append(begin, bytes.Repeat(empty, pieceBurst)...), append(bytes.Repeat(empty, 50), ping...))

	c := dial()
	_, err := c.NetConn().
		Write(bytes.Join([][]byte{begin, bytes.Repeat(empty, pieceBurst-1), bytes.Repeat(full, 100), []byte("\x80\x80mask"),
			bytes.Repeat(ping, controlBurst)}, nil))
	require.NoError(t, err)
	_, data, err := c.ReadMessage()
	require.NoError(t, err)
	require.Len(t, data, 100*smallPiece, "a message in pieces, and some pings, are fine")
	for range 2 * pieceBurst {
		require.NoError(t, c.WriteMessage(websocket.TextMessage, nil))
		_, _, err = c.ReadMessage()
		require.NoError(t, err, "messages are the handler's")
	}
}

// A close frame has no payload, or a code of two bytes.
func TestCloseFrameOfOneByte(t *testing.T) {
	t.Parallel()
	dial := openSockets(t, mirror)
	for frame, code := range map[string]int{
		"\x88\x81\x00\x00\x00\x00\x03":     websocket.CloseProtocolError,
		"\x88\x80\x00\x00\x00\x00":         websocket.CloseNoStatusReceived,
		"\x88\x82\x00\x00\x00\x00\x03\xe8": websocket.CloseNormalClosure,
	} {
		c := dial()
		_, err := c.NetConn().Write([]byte(frame))
		require.NoError(t, err)
		closes(t, c, code)
	}
}

// A client that closes gets its own code and reason back.
func TestClientThatClosesGetsItsReason(t *testing.T) {
	t.Parallel()
	c := openSockets(t, mirror)()
	require.NoError(t, c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4000, "bye")))
	_, _, err := c.ReadMessage()
	var closed *websocket.CloseError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, websocket.CloseError{Code: 4000, Text: "bye"}, *closed)
}

// A fault while a WebSocket is served ends the WebSocket, and not the process. Its owner has the place back.
func TestPanicEndsOneWebSocket(t *testing.T) {
	t.Parallel()
	dial := openSockets(t, func(context.Context, events.SocketConn) { panic("a fault") })
	for range 2 {
		closes(t, dial(), websocket.CloseInternalServerErr)
	}
}

// What is seen does not depend on the pieces in which it comes.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x89\x80mask\x01\x83maskabc\x00\xfe\x00\x05maskabcde\x80\xff\x00\x00\x00\x00\x00\x00\x00\x01maska\x88\x81maska"), 3)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		now := time.Now()
		whole, pieces := newFrames(nil), newFrames(nil)
		ok := whole.look(data, now)
		step = max(1, step%64)
		same := true
		for rest := data; len(rest) > 0 && same; rest = rest[min(step, len(rest)):] {
			same = pieces.look(rest[:min(step, len(rest))], now)
		}
		require.Equal(t, ok, same)
		require.Equal(t, whole.stub, pieces.stub)
		require.Equal(t, whole.payload, pieces.payload)
		require.Equal(t, whole.control.TokensAt(now), pieces.control.TokensAt(now))
	})
}
