package calls

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

// wait has a client open a WebSocket that waits for the cell under a number. It returns the client's connection, and
// that of the broker.
func (c *cell) wait(id uint64) (client, broker *websocket.Conn) {
	c.t.Helper()
	upgraded := make(chan *websocket.Conn, 1)
	up := websocket.Upgrader{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := up.Upgrade(w, r, nil)
		if err == nil {
			upgraded <- conn
		}
	}))
	c.t.Cleanup(s.Close)
	client, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL, "http"), nil)
	require.NoError(c.t, err)
	_ = resp.Body.Close()
	broker = <-upgraded
	c.t.Cleanup(func() { _ = client.Close(); _ = broker.Close() })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sockets[id] = broker
	return client, broker
}

// open gives the cell a WebSocket of a client.
func (c *cell) open() (client *websocket.Conn, in events.SocketConn) {
	c.t.Helper()
	client, _ = c.wait(1)
	in, err := c.client.Socket(c.t.Context(), 1)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = in.Close() })
	return client, in
}

// Messages pass both ways, long ones too, and so does the end.
func TestSocket(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	client, in := c.open()
	in.SetReadLimit(1 << 20)
	for _, size := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 1 << 20} {
		data := bytes.Repeat([]byte("m"), size)
		require.NoError(t, client.WriteMessage(websocket.BinaryMessage, data))
		kind, m, err := in.NextReader()
		require.NoError(t, err)
		require.Equal(t, websocket.BinaryMessage, kind)
		got, err := io.ReadAll(m)
		require.NoError(t, err)
		require.Equal(t, data, got)
		require.NoError(t, in.SetWriteDeadline(time.Now().Add(patience)))
		require.NoError(t, in.WriteMessage(websocket.TextMessage, got))
		kind, got, err = client.ReadMessage()
		require.NoError(t, err)
		require.Equal(t, websocket.TextMessage, kind)
		require.Len(t, got, size)
	}
	require.NoError(t, client.WriteMessage(websocket.TextMessage, []byte("not read")))
	require.NoError(t, client.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "why")))
	_, _, err := in.NextReader()
	require.NoError(t, err)
	for range 2 {
		_, _, err = in.NextReader()
		closed := &websocket.CloseError{}
		require.ErrorAs(t, err, &closed)
		require.Equal(t, websocket.CloseError{Code: 4001, Text: "why"}, *closed)
	}
	require.Empty(t, c.lies)
}

// What the cell writes before it closes arrives.
func TestSocketGoodbye(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	client, in := c.open()
	require.NoError(t, in.WriteMessage(websocket.TextMessage, []byte("last")))
	require.NoError(t, in.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1001, "bye"),
		time.Now().Add(patience)))
	require.NoError(t, in.Close())
	_, data, err := client.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, "last", string(data))
	_, _, err = client.ReadMessage()
	require.True(t, websocket.IsCloseError(err, 1001), err)
}

// A message beyond the limit ends the WebSocket, and the client learns why. So does a connection that breaks.
func TestSocketBreaks(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	client, in := c.open()
	in.SetReadLimit(100)
	require.NoError(t, client.WriteMessage(websocket.TextMessage, make([]byte, 101)))
	_, m, err := in.NextReader()
	if err == nil {
		_, err = io.ReadAll(m)
	}
	require.ErrorIs(t, err, websocket.ErrReadLimit)
	_, _, err = client.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.CloseMessageTooBig), err)
	require.NoError(t, in.Close())

	client, in = c.open()
	require.NoError(t, client.Close())
	_, _, err = in.NextReader()
	closed := &websocket.CloseError{}
	require.ErrorAs(t, err, &closed)
	require.Equal(t, websocket.CloseAbnormalClosure, closed.Code)
}

// A client learns that the cell has gone.
func TestSocketOfALostCell(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	client, in := c.open()
	require.NoError(t, in.WriteMessage(websocket.TextMessage, []byte("hello")))
	_, _, err := client.ReadMessage()
	require.NoError(t, err)
	require.NoError(t, c.raw.Close())
	_, _, err = client.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.CloseServiceRestart), err)
}

// A client that takes nothing ends its WebSocket, and no other.
func TestSocketOfASlowClient(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	_, in := c.open()
	for err := error(nil); err == nil; {
		require.NoError(t, in.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
		err = in.WriteMessage(websocket.BinaryMessage, make([]byte, 1<<20))
	}
	other, second := c.open()
	require.NoError(t, second.WriteMessage(websocket.TextMessage, []byte("hello")))
	_, data, err := other.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))
	require.Empty(t, c.lies)
}

// A connection has deadlines, and Close lets what was written arrive.
func TestDial(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	body := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		body <- string(data)
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	address := s.Listener.Addr().String()
	conn, err := c.client.Dial(t.Context(), "acme", "tcp", address)
	require.NoError(t, err)
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
	require.NoError(t, err)
	require.Equal(t, "body", <-body)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "i/o timeout")
	_, err = conn.Write([]byte("x"))
	require.Error(t, err)
	require.NoError(t, conn.Close())

	conn, err = c.client.Dial(t.Context(), "acme", "tcp", address)
	require.NoError(t, err)
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nlast")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Equal(t, "last", <-body)
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "closed")

	// A server that takes nothing: what ends the stream ends the connection.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	conn, err = c.client.Dial(t.Context(), "acme", "tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	for err == nil {
		_, err = conn.Write(make([]byte, 1<<20))
	}
	accepted, err := l.Accept()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := accepted.Write([]byte("x"))
		return err != nil
	}, patience, time.Millisecond, "it ends")
	require.NoError(t, accepted.Close())

	// A side that sends no more still reads.
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = echo.Close() })
	conn, err = c.client.Dial(t.Context(), "acme", "tcp", echo.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "question")
	require.NoError(t, err)
	half, ok := conn.(interface{ CloseWrite() error })
	require.True(t, ok)
	require.NoError(t, half.CloseWrite())
	accepted, err = echo.Accept()
	require.NoError(t, err)
	question, err := io.ReadAll(accepted)
	require.NoError(t, err)
	_, err = io.WriteString(accepted, "answer to "+string(question))
	require.NoError(t, err)
	require.NoError(t, accepted.Close())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "answer to question", string(answer))
	require.NoError(t, conn.Close())

	// A server that floods one that closes after that is not read for long.
	conn, err = c.client.Dial(t.Context(), "acme", "tcp", echo.Addr().String())
	require.NoError(t, err)
	half, ok = conn.(interface{ CloseWrite() error })
	require.True(t, ok)
	require.NoError(t, half.CloseWrite())
	accepted, err = echo.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	flooded, err := io.Copy(accepted, endless{})
	require.Error(t, err)
	require.Less(t, flooded, int64(64<<20), "buffers of the system, and what is discarded")
	require.NoError(t, accepted.Close())

	_, err = c.client.Dial(t.Context(), "acme", "tcp", "127.0.0.2:80")
	require.ErrorContains(t, err, "127.0.0.2:80: address is not allowed")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.client.Dial(ctx, "acme", "tcp", address)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, c.lies)
}

// The broker looks up names under its guard. What it says of a name reaches the handler with its code.
func TestLookup(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil)
	found, err := c.client.Lookup(t.Context(), "acme", "127.0.0.1")
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, found)
	for _, name := range []string{"127.0.0.2", "nobody.invalid"} {
		_, err = c.client.Lookup(t.Context(), "acme", name)
		var told egress.Told
		require.ErrorAs(t, err, &told)
		require.Equal(t, "ENOTFOUND", told.Code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.client.Lookup(ctx, "acme", "localhost")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, c.lies)
}
