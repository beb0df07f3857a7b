package calls

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

const (
	// MaxStreams is how many calls and connections a cell may have at once. More wait in the cell.
	MaxStreams = 4096
	// window is how many bytes of a request may be in the broker before they are read. The window of the connection has
	// room for all streams: one that is not read holds up no other.
	window = 16 << 10
	// maxHeaders is how many bytes the headers of a request may have. Those of a Client have about 100.
	maxHeaders = 4 << 10
	// WornAfter is the number of calls after which the broker should replace a cell. HTTP/2 numbers the streams of a
	// connection, and a Client can make 2^30 calls on it.
	WornAfter = 1 << 29
)

// Given is what a cell was given. Any goroutine calls its methods; they must not block.
type Given interface {
	// Owner reports whether the cell was given a worker of that owner, now or before.
	Owner(owner string) bool
	// Worker returns that version of a worker if the cell was given it; nil = it was not. A cell may still call for a
	// version a moment after it reported that it has no context of it.
	Worker(owner, name, version string) *workers.Worker
	// Attempt returns an attempt that the cell has now. Without one, was says that the cell had it: its end was reported,
	// and a call may come a moment later, because it comes by another connection.
	Attempt(id uint64) (a *lifecycle.Attempt, was bool)
	// Socket returns the client's end of a WebSocket that waits for the cell under that number, also if the client has
	// gone; nil = none does. It is returned once.
	Socket(id uint64) events.SocketConn
}

// Host is what of a process carries out sends and calls of bindings.
type Host interface {
	bindings.Queues
	bindings.Caller
}

// Config is what a Server has.
type Config struct {
	Given    Given
	Host     Host
	Files    bindings.Files    // nil = requests for files are lies
	Services bindings.Services // nil = calls of services are lies
	Egress   *egress.Client
	// Lie is told of the first request that the cell cannot have made by mistake. It is called once, from any goroutine,
	// and must not block. The Server answers nothing any more.
	Lie func(error)
}

// Server is the side of a broker, for one cell.
type Server struct {
	cfg       Config
	arguments budget
	answers   budget
	events    budget
	messages  budget
	running   running
	lied      atomic.Bool
	calls     atomic.Int64

	mu       sync.Mutex
	closed   bool           // no more calls begin
	handlers sync.WaitGroup // calls under way; guarded by mu where one begins
}

// NewServer makes the Server of a cell.
func NewServer(cfg Config) *Server {
	return &Server{cfg: cfg, arguments: newBudget(argumentBytes), answers: newBudget(answerBytes),
		events: newBudget(eventBytes), messages: newBudget(messageBytes)}
}

// Calls is how many calls the cell has made; see WornAfter. Any goroutine may call it.
func (s *Server) Calls() int64 { return s.calls.Load() }

// Over says that an attempt has ended: Given.Attempt does not return it any more. Any goroutine may call it.
func (s *Server) Over(id uint64) { s.running.over(id) }

// Serve answers the calls of the cell until the connection ends or ctx is done. It closes the connection, and returns
// when no call is under way. It is called once. The error is why the connection ended, if that was not its end.
func (s *Server) Serve(ctx context.Context, conn net.Conn) error {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{ //nolint:gosec // a cell that sends slowly holds up nobody else
		Handler:        s,
		Protocols:      protocols,
		MaxHeaderBytes: maxHeaders,
		ErrorLog:       log.New(io.Discard, "", 0), // of what a cell sends
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: MaxStreams, MaxReadFrameSize: window,
			MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: MaxStreams * window},
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	l, left := newListener(conn), make(chan struct{})
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(left)
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = l.conn.Close() })
	defer stop()
	err := server.Serve(l)
	_ = server.Close()
	_ = l.conn.Close()
	if l.accepted {
		<-left
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.handlers.Wait()
	if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listener has one connection. Accept returns an error when that is closed.
type listener struct {
	conn     *noted
	accepted bool
}

// noted is a connection that says when it is closed.
type noted struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (n *noted) Close() error {
	n.once.Do(func() { close(n.closed) })
	return n.Conn.Close()
}

func newListener(conn net.Conn) *listener {
	return &listener{conn: &noted{Conn: conn, closed: make(chan struct{})}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	if !l.accepted {
		l.accepted = true
		return l.conn, nil
	}
	<-l.conn.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *listener) Close() error { return nil }

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.conn.LocalAddr() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begins() {
		return
	}
	defer s.handlers.Done()
	s.calls.Add(1)
	err := errLied
	if !s.lied.Load() {
		err = s.serve(w, r)
	}
	if wrong, ok := errors.AsType[lieError](err); ok {
		http.Error(w, wrong.Error(), http.StatusBadRequest)
		if s.lied.CompareAndSwap(false, true) {
			s.cfg.Lie(wrong)
		}
	}
}

// begins counts a call, unless the connection has ended.
func (s *Server) begins() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.handlers.Add(1)
	return true
}

var errLied = lie("the cell has lied")

// operations carry out requests, by their path.
var operations = map[string]func(*Server, *exchange) error{
	"/call":    (*Server).call,
	"/dial":    (*Server).dial,
	"/enqueue": (*Server).enqueue,
	"/fetch":   (*Server).fetch,
	"/file":    (*Server).file,
	"/hello":   (*Server).hello,
	"/lookup":  (*Server).lookup,
	"/method":  (*Server).method,
	"/part":    (*Server).part,
	"/socket":  (*Server).socket,
}

// serve carries out a request. Its error is a lie, or says that nobody waits for an answer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	carryOut := operations[r.URL.Path]
	if carryOut == nil || r.Method != http.MethodPost || r.ProtoMajor != 2 {
		return lie("the request is %.20s %.20q of HTTP/%d", r.Method, r.URL.Path, r.ProtoMajor)
	}
	x := &exchange{w: w, r: r, arguments: held{of: &s.arguments}, answer: held{of: &s.answers}}
	defer func() {
		x.answer.free()
		x.arguments.free()
	}()
	if err := x.read(); err != nil {
		return err
	}
	return carryOut(s, x)
}

// hello answers the first request of a Client.
func (s *Server) hello(x *exchange) error {
	if err := x.done(); err != nil {
		return err
	}
	return x.reply(nil, nil, nil)
}

// exchange is a request and its answer.
type exchange struct {
	fields
	w         http.ResponseWriter
	r         *http.Request
	body      []byte // nil if the body streams
	streams   bool
	head      int // bytes
	arguments held
	answer    held
}

// textBytes is what a text of a head takes beside its bytes. The shortest one has one byte.
const textBytes = 16

// read reads the head, and the body if it comes as a whole.
func (x *exchange) read() error {
	n, size, err := readPrefix(x.r.Body)
	if err != nil {
		return x.broken(err)
	}
	x.streams = size == streams
	if x.streams {
		size = 0
	}
	if err := x.arguments.take(x.r.Context(), n*textBytes+size); err != nil {
		return err
	}
	x.head, x.rest = n, make([]byte, n)
	if _, err := io.ReadFull(x.r.Body, x.rest); err != nil {
		return x.broken(err)
	}
	if x.streams {
		return nil
	}
	if size > 0 {
		x.body = make([]byte, size)
		if _, err = io.ReadFull(x.r.Body, x.body); err != nil {
			return x.broken(err)
		}
	}
	// With its end read, the request is over before its answer is: otherwise HTTP/2 resets the stream.
	var more [1]byte
	switch n, err := x.r.Body.Read(more[:]); {
	case n > 0:
		return lie("the request to %s does not end where it says", x.r.URL.Path)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// broken is the error of reading a request: a request that ends early is a lie, and one that was reset is not.
func (x *exchange) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return lie("the request to %s ends before it is complete", x.r.URL.Path)
	}
	return err
}

// done returns a lie unless the head was well-formed and its body comes as a whole.
func (x *exchange) done() error {
	if x.end() != nil || x.streams {
		return lie("the request to %s is malformed", x.r.URL.Path)
	}
	return nil
}

// reply writes an answer that comes as a whole. Its head begins with the failure.
func (x *exchange) reply(failure error, more head, body []byte) error {
	h := newHead()
	h.failure(failure)
	first, err := append(h, more...).finish(len(body))
	if err != nil {
		h = newHead()
		h.failure(err)
		if first, err = h.finish(0); err != nil {
			return err
		}
		body = nil
	}
	if len(body) > 0 && len(body) <= window {
		first, body = append(first, body...), nil
	}
	if _, err := x.w.Write(first); err != nil || len(body) == 0 {
		return err
	}
	_, err = x.w.Write(body)
	return err
}

// begin writes the head of an answer that streams.
func (x *exchange) begin(failure error, more head) error {
	h := newHead()
	h.failure(failure)
	first, err := append(h, more...).finish(streams)
	if err == nil {
		_, err = x.w.Write(first)
	}
	return err
}

// flush sends what was written.
func (x *exchange) flush() error { return http.NewResponseController(x.w).Flush() }

// fail says why an answer that streams is not complete.
func (x *exchange) fail(err error) { x.w.Header().Set(http.TrailerPrefix+trailer, encodeTrailer(err)) }

// given reads the name of a version of a worker that the cell was given.
func (s *Server) given(x *exchange) (*workers.Worker, error) {
	owner, name, version := x.text(), x.text(), x.text()
	if x.err != nil {
		return nil, x.done()
	}
	w := s.cfg.Given.Worker(owner, name, version)
	if w == nil {
		return nil, lie("the cell was not given the version %.40q of the worker %.80q of %.80q", version, name, owner)
	}
	return w, nil
}
