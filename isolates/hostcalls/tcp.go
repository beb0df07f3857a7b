package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Bounds of TCP sockets. fetch/tcp.js has the bound on bytes of a send.
const (
	maxTCP      = 32               // open at once in a run
	tcpBytes    = 128 << 10        // what a socket counts as, without what waits to be sent: two chunks, buffers of TLS
	tcpChunk    = 32 << 10         // bytes of the largest piece that goes to JavaScript
	tcpFirst    = 2 << 10          // of the first one: most sockets bring little
	tcpAhead    = 128 << 10        // bytes that JavaScript has and its reader does not want yet
	maxTCPHead  = 128 << 10        // of a command that opens or secures one
	tcpGoodbye  = 30 * time.Second // from close() to the end of the connection, whatever the server takes
	maxHostName = 255
)

// What of a TCP socket is written.
const (
	tcpData   = iota
	tcpEnd    // this side sends no more
	tcpClose  // the connection ends
	tcpSecure // the connection becomes one of TLS
)

// tcpSocket is a TCP socket of a run. It ends with the run.
type tcpSocket struct {
	line
	address string          // HOST:PORT
	with    *egress.TLS     // nil = it does not speak TLS yet. For the thread, and for who begins TLS afterwards
	direct  bool            // it speaks TLS from the beginning
	ctx     context.Context //nolint:containedctx // of the socket, which ends with it; set before it is open
	conn    net.Conn        // set before it is open; afterwards only the goroutine that writes uses and sets it
	leave   func()          // closes the connection; set before it is open
	secured func(with *egress.TLS, over net.Conn) (*egress.Secured, error)
	late    *time.Timer // fires when the server takes too long to take what was sent before close(); guarded by mu
	feed    *feed       // where the bytes of the server go once TLS is spoken on the open connection
	inner   chan error  // capacity 1; how that ended
	ended   chan struct{}
	ending  sync.Once // closes ended: this side sends no more

	taken   chan struct{} // capacity 1; has an element when JavaScript takes another piece
	unread  int           // bytes given since the reader asked for more; for the thread
	stalled bool          // JavaScript takes no piece before the reader asks for more; for the thread
}

func newTCP(r *Calls, id float64) *tcpSocket {
	s := &tcpSocket{
		line: line{r: r, c: r.register(id), sentOp: js.OpTCPSent}, feed: newFeed(), inner: make(chan error, 1),
		ended: make(chan struct{}), taken: make(chan struct{}, 1),
	}
	s.put, s.c.cancel = s.putFrame, func() {}
	s.taken <- struct{}{}
	return s
}

// tcpSockets are the TCP sockets of a run that are not closed yet.
type tcpSockets struct {
	of map[float64]*tcpSocket // by id; nil until the first
}

var (
	errTCPHead    = fmt.Errorf("the options of the socket are too long: at most %d bytes", maxTCPHead)
	errTCPMany    = fmt.Errorf("too many sockets: at most %d per event may be open", maxTCP)
	errTCPAddress = errors.New("the address is not HOST:PORT")
	errTCPOptions = errors.New("the options of TLS are not known")
)

// begin carries out a command to open a socket: id, host, port, whether it is of TLS, and if so its options.
func (x *tcpSockets) begin(r *Calls, in *v8x.Commands) {
	size := in.Left()
	s := newTCP(r, in.Number())
	r.fetches.made++
	if err := x.admit(s, in, size); err != nil {
		s.reportEnd(err)
		return
	}
	ctx, cancel := context.WithCancel(r.callContext())
	s.c.cancel = cancel
	if x.of == nil {
		x.of = map[float64]*tcpSocket{}
	}
	x.of[s.c.id] = s
	s.c.span = r.run.Attempt().Begin(lifecycle.Operation{
		Kind: lifecycle.Subrequest, Method: "CONNECT", Target: "tcp://" + s.address,
	})
	go s.live(ctx, cancel) // it ends with the run
}

// admit reads where a socket goes, and says why it must not be opened.
func (x *tcpSockets) admit(s *tcpSocket, in *v8x.Commands, size int) error {
	if size > maxTCPHead {
		return errTCPHead
	}
	host, port := in.Text(), in.Int()
	s.address, s.direct = net.JoinHostPort(host, fmt.Sprint(port)), in.Bool()
	switch many := s.r.fetches.tooMany(s.r); {
	case host == "" || len(host) > maxHostName || port < 1 || port > 65535:
		return errTCPAddress
	case many != nil:
		return many
	case len(x.of) >= maxTCP:
		return errTCPMany
	}
	if s.direct {
		if s.with = readTLS(in); s.with == nil {
			return errTCPOptions
		}
	}
	return s.hold(tcpBytes)
}

// Bits of the versions of TLS.
const (
	tls12   = 1 << iota // no newer version than 1.2
	tls13               // no older version than 1.3
	tlsBits             // how many values there are
)

// readTLS reads the options of TLS: the server's name, protocols of ALPN, what is verified, authorities, certificate,
// key, bits of versions. nil = they are none.
func readTLS(in *v8x.Commands) *egress.TLS {
	t := &egress.TLS{
		ServerName: in.Text(), Protocols: in.Strings(), Verify: egress.Verify(in.Int()), Authorities: in.Text(),
		Certificate: in.Text(), Key: in.Text(),
	}
	versions := in.Int()
	if !t.Verify.Known() || versions < 0 || versions >= tlsBits || in.Err() != nil {
		return nil
	}
	t.TLS12, t.TLS13 = versions&tls12 != 0, versions&tls13 != 0
	return t
}

// send carries out a command to send bytes: id, bytes. Like the next ones it ignores a late command.
func (x *tcpSockets) send(in *v8x.Commands) {
	if s := x.of[in.Number()]; s != nil {
		s.enqueue(frame{tcpData, slices.Clone(in.View())})
	}
}

// more says that the reader of a socket wants more: id.
func (x *tcpSockets) more(in *v8x.Commands) {
	s := x.of[in.Number()]
	if s == nil {
		return
	}
	if s.unread = 0; s.stalled {
		s.stalled = false
		s.taken <- struct{}{}
	}
}

// end carries out a command to end a socket: id, whether both sides end, whether what waits is not sent.
func (x *tcpSockets) end(in *v8x.Commands) {
	s := x.of[in.Number()]
	if s == nil {
		return
	}
	both, now := in.Bool(), in.Bool()
	switch {
	case now:
		s.giveUp(net.ErrClosed)
	case both:
		s.enqueue(frame{kind: tcpClose})
		s.mu.Lock()
		s.late = time.AfterFunc(tcpGoodbye, s.c.cancel)
		s.mu.Unlock()
	default:
		s.enqueue(frame{kind: tcpEnd})
	}
}

// secure has a socket speak TLS when what was sent before is written: id, options.
func (x *tcpSockets) secure(in *v8x.Commands) {
	size := in.Left()
	s := x.of[in.Number()]
	if s == nil || s.with != nil {
		return
	}
	if size > maxTCPHead {
		s.giveUp(errTCPHead)
		return
	}
	with := readTLS(in)
	if with == nil {
		s.giveUp(errTCPOptions)
		return
	}
	s.with = with
	s.enqueue(frame{kind: tcpSecure})
}

// reportEnd reports to JavaScript how the socket ended: with a failure, or without one.
func (s *tcpSocket) reportEnd(failure error) {
	if errors.Is(failure, net.ErrClosed) || errors.Is(failure, io.EOF) {
		failure = nil
	}
	s.r.answer(s.c, true, func(call *v8x.Call) []byte {
		if s.r.tcp.of[s.c.id] == s {
			delete(s.r.tcp.of, s.c.id)
		}
		call.Reset(js.OpTCPClosed).Number(s.c.id)
		if failure == nil {
			call.Null().Null()
			return nil
		}
		told := egress.Told{Text: failure.Error()}
		if known, ok := errors.AsType[egress.Told](failure); ok {
			told = known
		}
		call.String(told.Text).String(told.Code)
		return nil
	})
}
