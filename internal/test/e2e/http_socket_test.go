package e2e

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// room is a worker that passes on what each client says to all clients.
const room = `
const all = new Set();
export default {
  fetch(request, env) {
    if (request.headers.get("upgrade") !== "websocket") return new Response("clients: " + all.size, { status: 426 });
    if (new URL(request.url).pathname === "/full") return new Response("full", { status: 409 });
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    all.add(server);
    server.addEventListener("message", ({ data }) => { for (const s of all) s.send(data); });
    server.addEventListener("close", () => all.delete(server));
    server.send("from " + request.headers.get("origin") + " " + request.headers.get("x-forwarded-proto"));
    return new Response(null, { status: 101, webSocket: client, headers: { "set-cookie": "a=b" } });
  },
};`

const roomManifest = `{"mode": "persistent"}`

// socket opens a WebSocket of a worker. It returns the response where there is none.
func (w *web) socket(path string, header ...string) (*websocket.Conn, *http.Response) {
	w.t.Helper()
	d := websocket.Dialer{NetDial: func(_, _ string) (net.Conn, error) { return net.Dial("tcp", w.addr) }}
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	c, resp, err := d.Dial("ws://"+path, h)
	if err != nil {
		require.ErrorIs(w.t, err, websocket.ErrBadHandshake)
		return nil, resp
	}
	w.t.Cleanup(func() { _ = c.Close() })
	require.NoError(w.t, c.SetReadDeadline(time.Now().Add(patience)))
	return c, resp
}

func (w *web) hears(c *websocket.Conn, want string) {
	w.t.Helper()
	_, data, err := c.ReadMessage()
	require.NoError(w.t, err)
	require.Equal(w.t, want, string(data))
}

func TestHTTPWebSockets(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	h.deploy("acme", "room", room, roomManifest)
	h.deploy("acme", "pages", room, `{"mode": "persistent", "http": {"cors": "https://a.test"}}`)
	h.deploy("acme", "later", room, `{"mode": "persistent", "http": {"delivery": "stored"}}`)
	const at = "room--acme.w.test/"

	one, resp := w.socket(at, "Origin", "https://any.test")
	require.Equal(t, "a=b", resp.Header.Get("Set-Cookie"))
	require.NotEmpty(t, resp.Header.Get("Event-Id"))
	w.hears(one, "from https://any.test http")
	two, _ := w.socket(at)
	w.hears(two, "from null http")
	require.NoError(t, one.WriteMessage(websocket.TextMessage, []byte("hello")))
	w.hears(one, "hello")
	w.hears(two, "hello")

	// Other answers are those of any request.
	_, resp = w.socket(at + "full")
	require.Equal(t, http.StatusConflict, resp.StatusCode)
	resp, text := w.ask("GET", "acme/room", "/", "")
	require.Equal(t, http.StatusUpgradeRequired, resp.StatusCode)
	require.Equal(t, "clients: 2", text)
	// A stored event has no connection, so its handler does not see the wish.
	_, resp = w.socket("later--acme.w.test/")
	require.Equal(t, http.StatusUpgradeRequired, resp.StatusCode)
	// Pages of other origins get a WebSocket only where they may read responses. Programs send no origin.
	_, resp = w.socket("pages--acme.w.test/", "Origin", "https://b.test")
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	for _, header := range [][]string{{"Origin", "https://a.test"}, nil} {
		c, _ := w.socket("pages--acme.w.test/", header...)
		require.NotNil(t, c)
	}

	for want, header := range map[string]string{
		"426 Upgrade Required": "Sec-WebSocket-Version: 12\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
		"400 Bad Request":      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n",
	} {
		c, err := net.Dial("tcp", w.addr)
		require.NoError(t, err)
		_, err = c.Write([]byte("GET / HTTP/1.1\r\nHost: room--acme.w.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + header + "\r\n"))
		require.NoError(t, err)
		buffer := make([]byte, 100)
		n, err := c.Read(buffer)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 "+want), "%s", buffer[:n])
		_ = c.Close()
	}

}

// SIGTERM closes the WebSockets of a process, and the clients learn why. The process ends.
func TestDrainClosesWebSockets(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	p, addr := startWeb(t, srv.URL())
	h := &testFleet{t: t}
	h.connect(srv.URL())
	h.deploy("acme", "room", room, roomManifest)
	w := openWeb(t, addr)
	var all []*websocket.Conn
	for range 20 {
		c, _ := w.socket("room--acme.w.test/")
		w.hears(c, "from null http")
		all = append(all, c)
	}
	p.Signal(syscall.SIGTERM)
	for _, c := range all {
		_, _, err := c.ReadMessage()
		var e *websocket.CloseError
		require.ErrorAs(t, err, &e)
		require.Equal(t, websocket.CloseGoingAway, e.Code)
	}
	require.NoError(t, p.Wait())
}

// The context of a version that is not the active one any more ends after some time without an event. Its clients learn
// that they may come again at once, and those of other workers notice nothing.
func TestDeployClosesWebSockets(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb, func(c *config.Config) { c.OldVersionIdle = time.Second })
	w := openWeb(t, h.fleet.HTTPAddr())
	h.deploy("acme", "room", room, roomManifest)
	h.deploy("acme", "other", room, roomManifest)
	other, _ := w.socket("other--acme.w.test/")
	w.hears(other, "from null http")
	var all []*websocket.Conn
	for range 20 {
		c, _ := w.socket("room--acme.w.test/")
		w.hears(c, "from null http")
		all = append(all, c)
	}
	h.deploy("acme", "room", strings.Replace(room, `"from "`, `"new "`, 1), roomManifest)
	again, _ := w.socket("room--acme.w.test/")
	w.hears(again, "new null http")
	for _, c := range all {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(2*patience)))
		_, _, err := c.ReadMessage()
		var e *websocket.CloseError
		require.ErrorAs(t, err, &e)
		require.Equal(t, websocket.CloseServiceRestart, e.Code)
	}
	require.NoError(t, again.SetReadDeadline(time.Now().Add(patience)))
	require.NoError(t, again.WriteMessage(websocket.TextMessage, []byte("here")))
	w.hears(again, "here")
	require.NoError(t, other.SetReadDeadline(time.Now().Add(patience)))
	require.NoError(t, other.WriteMessage(websocket.TextMessage, []byte("hello")))
	w.hears(other, "hello")
}
