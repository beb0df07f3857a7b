package gateway

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"
)

// Bounds of the frames of a client's WebSocket that no handler sees, so that no owner is charged for them.
const (
	controlRate  = 20 // pings, pongs and closes a second
	controlBurst = 200
	pieceRate    = 500 // frames a second that continue a message with less than smallPiece bytes
	pieceBurst   = 10_000
	smallPiece   = 1 << 10
)

// frames is the connection of a client's WebSocket. It sees the headers of the frames that are read from it. The
// goroutine that reads has it.
type frames struct {
	net.Conn
	conn *websocket.Conn // that reads from it; nil until the handshake is over

	control, pieces *rate.Limiter

	head    [maxFrameHead]byte // of the frame that comes
	have    int                // bytes of head
	payload uint64             // bytes that are still to come of the frame's payload
	stub    bool               // a close frame of one byte has come
	failed  error
}

const (
	maxFrameHead = 10 // bytes before the masking key
	maskBytes    = 4
)

var (
	errManyFrames = errors.New("the client sends too many control frames, or too many small pieces of messages")
	errStub       = errors.New("the client sent a close frame of one byte")
)

func newFrames(c net.Conn) *frames {
	return &frames{Conn: c, control: rate.NewLimiter(controlRate, controlBurst),
		pieces: rate.NewLimiter(pieceRate, pieceBurst)}
}

// attend is called when c reads from f.
func (f *frames) attend(c *websocket.Conn) {
	f.conn = c
	c.SetCloseHandler(func(code int, text string) error {
		if f.stub { // the library takes it for one without a code
			f.say(websocket.CloseProtocolError)
			return errStub
		}
		f.close(code, text) // the client gets its own words back
		return nil
	})
}

// say tells the client why the connection ends.
func (f *frames) say(code int) {
	if f.conn != nil {
		f.close(code, "")
	}
}

func (f *frames) close(code int, text string) {
	_ = f.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
}

// Read implements net.Conn.
func (f *frames) Read(into []byte) (int, error) {
	if f.failed != nil {
		return 0, f.failed
	}
	n, err := f.Conn.Read(into)
	if !f.look(into[:n], time.Now()) {
		f.failed = errManyFrames
		f.say(websocket.ClosePolicyViolation)
		return 0, f.failed
	}
	return n, err
}

// look reads the headers of frames in data. It returns false when there are too many frames.
func (f *frames) look(data []byte, now time.Time) bool {
	for len(data) > 0 {
		if f.payload > 0 {
			n := min(f.payload, uint64(len(data)))
			data, f.payload = data[n:], f.payload-n
			continue
		}
		f.head[f.have] = data[0]
		data, f.have = data[1:], f.have+1
		if f.have < f.headSize() {
			continue
		}
		size := f.size()
		if !f.allow(f.head[0]&0xf, size, now) {
			return false
		}
		f.have, f.payload = 0, size
		if f.head[1]&0x80 != 0 { // else the library refuses the frame
			f.payload += maskBytes
		}
	}
	return true
}

// headSize returns how long the head is, as far as it is known.
func (f *frames) headSize() int {
	if f.have < 2 {
		return 2
	}
	switch f.head[1] & 0x7f {
	case 126:
		return 4
	case 127:
		return maxFrameHead
	}
	return 2
}

// size returns the size of the payload. The library refuses those of more than maxSize.
func (f *frames) size() uint64 {
	const maxSize = 1 << 62
	switch n := f.head[1] & 0x7f; n {
	case 126:
		return uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		return min(binary.BigEndian.Uint64(f.head[2:]), maxSize)
	default:
		return uint64(n)
	}
}

// allow counts a frame. The first frame of a message is free: its owner is charged for the message.
func (f *frames) allow(kind byte, size uint64, now time.Time) bool {
	const continuation, control = 0, 8 // the least kind of a control frame
	switch {
	case kind >= control:
		f.stub = f.stub || kind == websocket.CloseMessage && size == 1
		return f.control.AllowN(now, 1)
	case kind == continuation && size < smallPiece:
		return f.pieces.AllowN(now, 1)
	}
	return true
}

// framesWriter is a ResponseWriter whose connection is frames when it becomes a WebSocket.
type framesWriter struct {
	http.ResponseWriter
	frames *frames
}

// Hijack implements http.Hijacker.
func (w *framesWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.frames = newFrames(c)
	return w.frames, buffers, nil
}
