package calls

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// upgrade has a worker accept a WebSocket. With a cell, it serves what the cell got under a number.
func (f *fleet) upgrade(code string) (client *websocket.Conn, served chan struct{}) {
	f.t.Helper()
	f.install("chat", code)
	f.mu.Lock()
	f.workers["chat"].Mode = workers.Persistent
	f.mu.Unlock()
	d := &lifecycle.Delivery{Upgrade: true, Runs: events.Runs{Attempt: 1}, Event: events.Event{Kind: events.Fetch,
		Owner: "acme", Worker: "chat", ID: "chat", Request: events.Request{Method: "GET", URL: "http://w.test/"}}}
	d.HTTPHeaders = []string{"upgrade", "websocket"}
	r := <-f.start(d)
	require.NotNil(f.t, r.Socket, string(r.Body))
	waits := f.cell
	if waits == nil {
		waits = &cell{t: f.t, sockets: map[uint64]events.SocketConn{}}
	}
	client, broker := waits.wait(1)
	conn := events.SocketConn(broker)
	if f.cell != nil {
		var err error
		conn, err = f.cell.client.Socket(f.t.Context(), 1)
		require.NoError(f.t, err)
	}
	served = make(chan struct{})
	go func() {
		defer close(served)
		r.Socket.Serve(context.Background(), conn)
	}()
	return client, served
}

// A worker and its client see no difference, whoever ends the WebSocket.
func TestClientsSeeNoDifference(t *testing.T) {
	t.Parallel()
	r, _ := newReal(t)
	const code = `export default { fetch() {
		const [client, server] = Object.values(new WebSocketPair());
		server.accept();
		server.send("welcome");
		server.addEventListener("message", ({ data }) => data === "close" ? server.close(4001, "said so") : server.send("echo " + data.length));
		server.addEventListener("close", ({ code, reason, wasClean }) => console.log([code, reason, wasClean].join()));
		return new Response(null, { status: 101, webSocket: client });
	} };`
	for _, inCell := range []bool{false, true} {
		f := newFleet(t, r, inCell)
		says := func(client *websocket.Conn, text, want string) {
			t.Helper()
			if text != "" {
				require.NoError(t, client.WriteMessage(websocket.TextMessage, []byte(text)))
			}
			require.NoError(t, client.SetReadDeadline(time.Now().Add(patience)))
			_, data, err := client.ReadMessage()
			if err != nil {
				require.Equal(t, want, err.Error())
				return
			}
			require.Equal(t, want, string(data))
		}
		closed := func(line string) {
			t.Helper()
			require.Eventually(t, func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return slices.Contains(f.lines, line)
			}, patience, time.Millisecond, line)
		}
		client, served := f.upgrade(code)
		says(client, "", "welcome")
		says(client, "hello", "echo 5")
		says(client, string(make([]byte, 300_000)), "echo 300000")
		says(client, "close", "websocket: close 4001: said so")
		<-served
		closed("4001,,true") // a client's library echoes the code alone
		client, served = f.upgrade(code)
		says(client, "", "welcome")
		require.NoError(t, client.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4002, "bye")))
		<-served
		closed("4002,bye,true")
		client, served = f.upgrade(code)
		says(client, "", "welcome")
		require.NoError(t, client.Close())
		<-served
		closed("1006,,false")
		if inCell {
			require.Empty(t, f.cell.lies)
		}
	}
}
