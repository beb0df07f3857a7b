package hostcalls

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// socketEnd is how a WebSocket ended. It is clean if the server sent a close frame. code and reason are then those of
// that frame.
type socketEnd struct {
	code    int
	reason  string
	clean   bool
	failure error // why this side gave up
}

var errNotUTF8 = errors.New("a text message is not UTF-8")

// live opens the connection and reads until it ends. It runs in its own goroutine.
func (s *socket) live(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	end := s.converse(ctx)
	lifecycle.EndSpan(s.c.span, end.failure)
	s.dropAll()
	s.reportEnd(end)
}

func (s *socket) converse(ctx context.Context) socketEnd {
	conns := s.r.process.Egress.Of(s.r.run.Attempt().Worker.Owner)
	defer conns.Release()
	conn, protocol, err := conns.Upgrade(ctx, s.url, s.protocols)
	if err != nil {
		return s.failed(err)
	}
	s.conn = conn
	s.c.status(http.StatusSwitchingProtocols)
	s.r.answer(s.c, false, func(call *v8x.Call) []byte {
		call.Reset(js.OpSocketOpened).Number(s.c.id).String(protocol)
		return nil
	})
	return s.talk(ctx)
}

// talk passes messages on until the connection ends.
func (s *socket) talk(ctx context.Context) socketEnd {
	leave := sync.OnceFunc(func() {
		if ctx.Err() != nil { // the event is over, or the socket was given up
			s.refuse(s.goodbye())
		}
		_ = s.conn.Close()
	})
	defer leave()
	defer context.AfterFunc(ctx, leave)()
	s.begin()
	return s.read(ctx)
}

// failed returns the end because of err, or because of the earlier reason for which the socket was given up.
func (s *socket) failed(err error) socketEnd {
	return socketEnd{code: websocket.CloseAbnormalClosure, failure: s.reason(err)}
}

// read passes on messages, one at a time. It reads at most one message ahead of the one that JavaScript has not taken
// yet.
func (s *socket) read(ctx context.Context) socketEnd {
	s.conn.SetReadLimit(MaxSocketMessage)
	taken := make(chan struct{}, 1)
	taken <- struct{}{}
	for {
		kind, data, held, err := s.message()
		if err != nil {
			if errors.Is(err, websocket.ErrReadLimit) { // the library says so itself, except of lengths beyond all numbers
				s.refuse(websocket.CloseMessageTooBig)
			}
			return s.ended(err)
		}
		select {
		case <-taken:
			s.deliver(kind, data, held, taken)
		case <-ctx.Done():
			return s.ended(ctx.Err())
		}
	}
}

// ended returns the end for a reader's error err. A socket that was given up has failed, even if the server still
// answers with a close frame.
func (s *socket) ended(err error) socketEnd {
	end := s.failed(err)
	if !errors.Is(end.failure, err) {
		return end
	}
	var closed *websocket.CloseError
	if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
		return socketEnd{code: closed.Code, reason: closed.Text, clean: true}
	}
	var network net.Error
	if closed != nil || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) {
		end.failure = nil
	}
	return end
}

// message reads a message. held is how many bytes it counts as beyond the usual.
func (s *socket) message() (kind int, data []byte, held int, err error) {
	kind, in, err := s.conn.NextReader()
	if err != nil {
		return 0, nil, 0, err
	}
	data = make([]byte, 0, 512)
	for err == nil {
		if len(data) == cap(data) {
			grown := 2 * cap(data)
			if more := grown - held; grown > s.own {
				if err := s.hold(more); err != nil {
					s.refuse(websocket.CloseTryAgainLater)
					return 0, nil, 0, err
				}
				held += more
			}
			data = append(make([]byte, 0, grown), data...)
		}
		var n int
		n, err = in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
	}
	if !errors.Is(err, io.EOF) {
		return 0, nil, 0, err
	}
	if kind == websocket.TextMessage && !utf8.Valid(data) {
		s.refuse(websocket.CloseInvalidFramePayloadData)
		return 0, nil, 0, errNotUTF8
	}
	return kind, data, held, nil
}

// refuse sends the server the reason why the connection ends.
func (s *socket) refuse(code int) {
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}

// deliver passes a message to the run's JavaScript.
func (s *socket) deliver(kind int, data []byte, held int, taken chan<- struct{}) {
	s.r.run.Later(func() {
		defer func() { // also if the turn continues on another OS thread
			s.drop(held)
			s.take(taken)
		}()
		if !s.r.over && s.r.pending[s.c.id] == s.c {
			call := s.r.run.Call()
			call.Reset(js.OpSocketMessage).Number(s.c.id).Bool(kind == websocket.BinaryMessage).Body()
			s.r.run.Turn(call.Bytes(), data)
		}
	})
}

// putFrame is put of a WebSocket. kind is websocket.TextMessage, BinaryMessage or CloseMessage.
func (s *socket) putFrame(f frame) (told bool, err error) {
	if s.client != nil {
		_ = s.conn.SetWriteDeadline(time.Now().Add(clientWrite))
	}
	err = s.conn.WriteMessage(f.kind, f.data)
	if err != nil && s.client != nil { // it takes nothing, or has gone
		_ = s.conn.Close()
	}
	return f.kind != websocket.CloseMessage, err
}

// reportEnd reports to JavaScript how the socket ended, and writes a failure to the worker's output.
func (s *socket) reportEnd(end socketEnd) {
	if end.code == 0 {
		end.code = websocket.CloseAbnormalClosure
	}
	s.r.answer(s.c, true, func(call *v8x.Call) []byte {
		s.remove()
		if end.failure != nil {
			s.r.run.Log("warn", "WebSocket "+s.peer()+": "+end.failure.Error())
		}
		call.Reset(js.OpSocketClosed).Number(s.c.id).Number(float64(end.code)).String(end.reason).Bool(end.clean).
			Bool(end.failure != nil)
		return nil
	})
}

// clipped returns the beginning of a URL without its password, for messages.
func clipped(address string) string {
	const most = 200
	if u, err := url.Parse(address); err == nil {
		address = u.Redacted()
	}
	if len(address) > most {
		return address[:most] + "…"
	}
	return address
}
