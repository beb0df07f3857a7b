package fleet

// What waits for a minute begins first. So the other tests run meanwhile.

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// The context of a version that is not the active one any more ends after a minute without an event, which this test
// waits for. Its clients learn that they may come again at once, and those of other workers notice nothing.
func TestDeployClosesWebSockets(t *testing.T) {
	t.Parallel()
	h := openHouse(t, withWeb)
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
