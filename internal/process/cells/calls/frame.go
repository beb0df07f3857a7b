package calls

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// A WebSocket of a client is a stream of frames both ways.
const (
	frameBytes = 10       // of a frame without its data
	maxMessage = 16 << 20 // of a message of a worker, bytes; js/fetch/websocket.js lets 8 MiB wait
	maxControl = 125      // of a control frame (RFC 6455 §5.5)
	maxReason  = 4 << 10  // of the text of an end
	pieceBytes = 16 << 10 // of a message that passes at once
	frameWrite = time.Minute
)

// What a frame is. To the broker: start, once, and then messages and controls. From it: pieces, and end.
const (
	frameStart   = 's' // the cell reads: number is the longest message that it takes
	frameMessage = 'm' // a message: number is the time that the client has to take it, milliseconds
	frameControl = 'c' // the same of a control frame
	framePiece   = 'p' // the beginning of a message, or more of it
	frameLast    = 'l' // the rest of a message
	frameEnd     = 'e' // no message follows: kind says why, and number is a close code
)

// Why no message follows.
const (
	endClosed  = iota + 1 // the client sent a close frame
	endLimit              // a message was too long
	endNetwork            // the connection broke
	endOther
)

// frame is a frame without its data, whose bytes size counts.
type frame struct {
	op, kind     byte
	number, size uint32
}

func (f frame) append(to []byte) []byte {
	to = append(to, f.op, f.kind)
	to = binary.BigEndian.AppendUint32(to, f.number)
	return binary.BigEndian.AppendUint32(to, f.size)
}

func readFrame(r io.Reader) (f frame, err error) {
	var b [frameBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return f, err
	}
	return frame{b[0], b[1], binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint32(b[6:])}, nil
}

// check returns an error unless a cell may send the frame. started: it has sent start.
func (f frame) check(started bool) error {
	most := uint32(0)
	switch {
	case f.op == frameStart && !started && f.kind == 0:
	case f.op == frameMessage && (f.kind == websocket.TextMessage || f.kind == websocket.BinaryMessage ||
		f.kind == websocket.CloseMessage):
		if most = maxMessage; f.kind == websocket.CloseMessage {
			most = maxControl
		}
	case f.op == frameControl && f.kind >= websocket.CloseMessage && f.kind <= websocket.PongMessage:
		most = maxControl
	default:
		return lie("a frame %q of kind %d of a WebSocket", f.op, f.kind)
	}
	if f.size > most {
		return lie("a frame %q of a WebSocket has %d bytes: at most %d", f.op, f.size, most)
	}
	return nil
}

// endOf is the frame that says why no message follows.
func endOf(err error) []byte {
	f, text := frame{op: frameEnd, kind: endOther}, err.Error()
	var network net.Error
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
		f.kind, f.number, text = endClosed, uint32(closed.Code), closed.Text
	} else if errors.Is(err, websocket.ErrReadLimit) {
		f.kind = endLimit
	} else if errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		f.kind = endNetwork
	}
	text = text[:min(len(text), maxReason)]
	f.size = uint32(len(text))
	return append(f.append(nil), text...)
}

// reason is the error that endOf was made of.
func (f frame) reason(text string) error {
	switch f.kind {
	case endClosed:
		return &websocket.CloseError{Code: int(f.number), Text: text}
	case endLimit:
		return websocket.ErrReadLimit
	case endNetwork:
		return &net.OpError{Op: "read", Net: "tcp", Err: errors.New(text)}
	}
	return errors.New(text)
}
