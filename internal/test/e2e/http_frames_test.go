package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// listener is a worker that keeps what each client says, until it is asked for that.
const listener = `
const all = new Map();
export default {
  async fetch(request) {
    const id = new URL(request.url).searchParams.get("id");
    if (request.headers.get("upgrade") !== "websocket") {
      await all.get(id).closed;
      const { said } = all.get(id);
      all.delete(id);
      return Response.json(said);
    }
    const [client, server] = Object.values(new WebSocketPair());
    const said = [];
    server.binaryType = "arraybuffer";
    server.accept();
    server.addEventListener("message", ({ data }) => said.push(typeof data === "string" ? "text " + data : "bytes " + Array.from(new Uint8Array(data), (b) => b.toString(16).padStart(2, "0")).join("")));
    all.set(id, { said, closed: new Promise((done) => server.addEventListener("close", done)) });
    return new Response(null, { status: 101, webSocket: client });
  },
};`

// understood is what a server makes of frames (RFC 6455): the messages up to the first fault or close frame, and with
// which of the codes it closes.
func understood(data []byte) (said []string, codes []int) {
	const most = 4 << 20
	none := []int{websocket.CloseAbnormalClosure} // the connection ends within a frame, or without a close frame
	wrong := []int{websocket.CloseProtocolError}
	var kind byte // of the message that is not complete; 0 = there is none
	var message []byte
	for len(data) >= 2 {
		last, reserved, op, masked, size := data[0]&0x80 != 0, data[0]&0x70 != 0, data[0]&0xf, data[1]&0x80 != 0, uint64(
			data[1]&0x7f)
		control := op >= 8
		switch {
		case reserved, !masked, op > 2 && !control, op > 10, control && (!last || size > 125), op == 0 && kind == 0,
			(op == 1 || op == 2) && kind != 0:
			return said, wrong
		}
		data = data[2:]
		if extra := map[uint64]int{126: 2, 127: 8}[size]; extra > len(data) {
			return said, none
		} else if extra > 0 {
			size = binary.BigEndian.Uint64(append(make([]byte, 8-extra), data[:extra]...))
			data = data[extra:]
			if size>>63 != 0 {
				return said, []int{websocket.CloseProtocolError, websocket.CloseMessageTooBig}
			}
		}
		if len(data) < 4 {
			return said, none
		}
		mask, rest := data[:4], data[4:]
		if !control && uint64(len(message))+size > most {
			return said, []int{websocket.CloseMessageTooBig}
		}
		if size > uint64(len(rest)) {
			return said, none
		}
		payload := slices.Clone(rest[:size])
		for i := range payload {
			payload[i] ^= mask[i%4]
		}
		data = rest[size:]
		switch {
		case op == websocket.CloseMessage:
			return said, closing(payload)
		case control:
			continue
		case op != 0:
			kind = op
		}
		if message = append(message, payload...); !last {
			continue
		}
		if kind == websocket.BinaryMessage {
			said = append(said, "bytes "+hex.EncodeToString(message))
		} else if utf8.Valid(message) {
			said = append(said, "text "+string(message))
		} else {
			return said, []int{websocket.CloseInvalidFramePayloadData}
		}
		kind, message = 0, nil
	}
	return said, none
}

// closing returns the codes with which a server may answer a close frame.
func closing(payload []byte) []int {
	wrong := []int{websocket.CloseProtocolError, websocket.CloseInvalidFramePayloadData}
	if len(payload) == 0 {
		return []int{websocket.CloseNoStatusReceived}
	}
	if len(payload) == 1 || !utf8.Valid(payload[2:]) {
		return wrong
	}
	switch code := int(binary.BigEndian.Uint16(payload)); {
	case code >= 1000 && code <= 1003, code >= 1007 && code <= 1013, code >= 3000 && code <= 4999:
		return []int{code}
	case code == 1014: // younger than the standard
		return append(wrong, code)
	default:
		return wrong
	}
}

// masked is a frame with the mask 0.
func masked(first byte, payload string) string {
	return string([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}) + payload
}

// framesOfClients are what clients send, with the code that they get.
var framesOfClients = []struct {
	data string
	code int
}{
	{masked(0x81, "hello") + masked(0x82, "\x00\xff") + masked(0x88, "\x03\xe8bye"), 1000},
	{masked(0x01, "a") + masked(0x89, "ping") + masked(0x00, "\xc3") + masked(0x80, "\xa9") + masked(0x88, ""), 1005},
	{"\x81\x85\x01\x02\x03\x04idomd" + masked(0x88, "\x0f\xa1why"), 4001},
	{"\x81\x01x", 1002},
	{masked(0xc1, "x"), 1002},
	{masked(0x83, "x"), 1002},
	{"\x89\xfe\x00\x7e\x00\x00\x00\x00", 1002},
	{masked(0x09, "x"), 1002},
	{masked(0x80, "x"), 1002},
	{masked(0x01, "x") + masked(0x81, "y"), 1002},
	{masked(0x88, "\x03\xed"), 1002},
	{masked(0x88, "\x03"), 1002},
	{masked(0x88, "\x03\xe8\xff"), 1002},
	{masked(0x81, "x") + masked(0x81, "\xff"), 1007},
	{masked(0x01, "\xc3") + masked(0x80, "x"), 1007},
	{masked(0x81, "x") + "\x82\xff\x00\x00\x00\x00\x00\x40\x00\x01\x00\x00\x00\x00", 1009},
	{masked(0x02, "x") + "\x80\xff\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00", 1009},
	{masked(0x02, "x") + "\x80\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", 1009},
	{"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", 1009},
	{masked(0x81, "x") + "\x81\x85\x00\x00", 1006},
}

// FuzzWebSocket: whatever a client sends on its WebSocket, the worker gets the messages that are whole, in order, and
// the client learns what was wrong.
func FuzzWebSocket(f *testing.F) {
	for _, c := range framesOfClients {
		f.Add([]byte(c.data))
	}
	h := openFleet(f, withWeb)
	h.deploy("acme", "listener", listener, `{"mode": "persistent"}`)
	w := openWeb(f, h.fleet.HTTPAddr())
	n := 0
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return // it may have more than 200 pings, which is another reason to close
		}
		n++
		code, said := talk(t, w, n, data)
		want, codes := understood(data)
		require.Equal(t, want, said, "%q", data)
		require.Contains(t, codes, code, "%q", data)
	})
}

func TestFramesOfClients(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	h.deploy("acme", "listener", listener, `{"mode": "persistent"}`)
	w := openWeb(t, h.fleet.HTTPAddr())
	for i, c := range framesOfClients {
		code, _ := talk(t, w, i, []byte(c.data))
		require.Equal(t, c.code, code, "%q", c.data)
		_, codes := understood([]byte(c.data))
		require.Contains(t, codes, code, "%q", c.data)
	}
	said, _ := understood([]byte(framesOfClients[1].data))
	require.Equal(t, []string{"text aé"}, said)
}

// talk sends data on a WebSocket of its own, and nothing after it. It returns the code with which the server closes,
// and what the worker has heard.
func talk(t *testing.T, w *web, n int, data []byte) (code int, said []string) {
	t.Helper()
	at := fmt.Sprintf("listener--acme.w.test/?id=%d", n)
	d := websocket.Dialer{NetDial: func(_, _ string) (net.Conn, error) { return net.Dial("tcp", w.addr) }}
	c, _, err := d.Dial("ws://"+at, nil)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	tcp := c.NetConn().(*net.TCPConn)
	_, err = tcp.Write(data)
	require.NoError(t, err)
	require.NoError(t, tcp.CloseWrite())
	for err == nil {
		_, _, err = c.ReadMessage()
	}
	var closed *websocket.CloseError
	require.True(t, errors.As(err, &closed), "%v after %q", err, data)
	resp, err := w.client.Get("http://" + at)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", text)
	require.NoError(t, json.NewDecoder(bytes.NewReader(text)).Decode(&said), strings.TrimSpace(string(text)))
	if len(said) == 0 {
		said = nil
	}
	return closed.Code, said
}
