package hostcalls

import (
	"context"
	"crypto/sha1" //nolint:gosec // a fingerprint that Node has
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// live opens the connection, and reads until it ends. It runs in its own goroutine.
func (s *tcpSocket) live(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	s.ctx = ctx
	err := s.reason(s.converse(ctx))
	s.mu.Lock()
	if s.late != nil {
		s.late.Stop()
	}
	s.mu.Unlock()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	lifecycle.EndSpan(s.c.span, err)
	s.dropAll()
	s.reportEnd(err)
}

func (s *tcpSocket) converse(ctx context.Context) error {
	conns := s.r.process.Egress.Of(s.r.run.Attempt().Worker.Owner)
	defer conns.Release()
	conn, err := conns.Dial(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	leave := sync.OnceFunc(func() { _ = conn.Close() })
	defer leave()
	defer context.AfterFunc(ctx, leave)()
	s.conn, s.leave, s.secured = conn, leave, func(with *egress.TLS, over net.Conn) (*egress.Secured, error) {
		return conns.Secure(ctx, over, s.address, with, s.r.run.ChargeOwner)
	}
	var secured *egress.Secured
	if s.direct {
		if secured, err = s.secured(s.with, conn); err != nil {
			return err
		}
		s.conn = secured
	}
	from := io.Reader(s.conn) // the goroutine that writes may replace it
	s.opened(secured)
	s.begin()
	err = s.read(ctx, from, s.pass)
	if s.feed.end(err) { // what TLS says of the end counts
		return <-s.inner
	}
	return s.after(ctx, err)
}

// after tells that the server sends no more, and why. Without a failure it waits: this side may send more.
func (s *tcpSocket) after(ctx context.Context, why error) error {
	if !errors.Is(why, io.EOF) {
		return s.tell(why)
	}
	s.deliver(nil)
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	return nil
}

// tell is why the connection broke off, in words for the author of a handler.
func (s *tcpSocket) tell(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) {
		return err
	}
	return egress.Tell(err, s.address)
}

// opened notifies JavaScript that the connection is there, or that it speaks TLS from now on.
func (s *tcpSocket) opened(secured *egress.Secured) {
	facts := []string(nil)
	if secured != nil {
		facts = factsOf(secured)
	}
	s.r.answer(s.c, false, func(call *v8x.Call) []byte {
		call.Reset(js.OpTCPOpened).Number(s.c.id).Bool(secured != nil).Strings(facts)
		return nil
	})
}

// read passes on what comes, one piece after the other. It reads at most one piece ahead of the one that JavaScript has
// not taken yet.
func (s *tcpSocket) read(ctx context.Context, from io.Reader, pass func(context.Context, []byte) error) error {
	size := tcpFirst
	buffer := make([]byte, size)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			s.r.moved(n)
			if err := pass(ctx, buffer[:n]); err != nil {
				return err
			}
			if n == size && size < tcpChunk {
				size *= 2
			}
			buffer = make([]byte, size)
		}
		if err != nil {
			return err
		}
	}
}

// pass passes a piece to JavaScript when that takes it, or to TLS once that is spoken on the open connection.
func (s *tcpSocket) pass(ctx context.Context, piece []byte) error {
	select {
	case <-s.feed.begun:
		return s.feed.give(ctx, piece)
	default:
	}
	select {
	case <-s.taken:
		s.deliver(piece)
		return nil
	case <-s.feed.begun:
		return s.feed.give(ctx, piece)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// passSecured passes a piece of what TLS brings to JavaScript when that takes it.
func (s *tcpSocket) passSecured(ctx context.Context, piece []byte) error {
	select {
	case <-s.taken:
		s.deliver(piece)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliver passes a piece to the run's JavaScript; nil = the server sends no more.
func (s *tcpSocket) deliver(piece []byte) {
	s.r.run.Later(func() {
		if s.r.over || s.r.pending[s.c.id] != s.c {
			return
		}
		s.unread += len(piece)
		// The queued call follows the turn, even if the turn leaves its thread.
		s.r.run.Follow(func() {
			switch {
			case piece == nil:
			case s.unread < tcpAhead:
				s.taken <- struct{}{}
			default:
				s.stalled = true
			}
		})
		call := s.r.run.Call().Reset(js.OpTCPData).Number(s.c.id)
		if piece == nil {
			call.Null()
		} else {
			call.Body()
		}
		s.r.run.Turn(call.Bytes(), piece)
	})
}

// putFrame is put of a TCP socket. An error ends the socket: the server may have ended its side, so that nothing reads.
func (s *tcpSocket) putFrame(f frame) (told bool, err error) {
	if err = s.carryOut(f); err != nil {
		s.giveUp(s.tell(err))
	}
	return f.kind != tcpSecure, err
}

func (s *tcpSocket) carryOut(f frame) error {
	switch f.kind {
	case tcpData:
		n, err := s.conn.Write(f.data)
		s.r.moved(n)
		return err
	case tcpEnd:
		half, ok := s.conn.(interface{ CloseWrite() error })
		if !ok {
			return net.ErrClosed // there are no halves
		}
		defer s.ending.Do(func() { close(s.ended) }) // which may end the connection
		return half.CloseWrite()
	case tcpClose:
		_ = s.conn.Close()
		return net.ErrClosed
	}
	return s.becomeSecure()
}

// ---- TLS on an open connection ----

// becomeSecure has the connection speak TLS from now on. It runs in the goroutine that writes: what was sent before is
// written.
func (s *tcpSocket) becomeSecure() error {
	if !s.feed.begin(s.conn) {
		return io.EOF // the server has ended its side
	}
	secured, err := s.secured(s.with, s.feed)
	if err != nil {
		s.inner <- err
		return err
	}
	s.conn = secured
	s.opened(secured)
	go func() { // converse waits for it
		err := s.read(s.ctx, secured, s.passSecured)
		s.feed.stop()
		s.inner <- s.after(s.ctx, err)
		s.leave() // so that converse reads no more
	}()
	return nil
}

// feed is an open connection as TLS sees it: what the server sends comes from the goroutine that reads.
type feed struct {
	net.Conn
	begun  chan struct{} // closed when TLS begins
	pieces chan []byte   // without room
	rest   []byte
	ends   chan struct{} // closed when no more comes
	stops  chan struct{} // closed when TLS takes no more
	why    error         // set before

	mu   sync.Mutex
	on   bool // TLS has begun
	over bool // no more comes
}

func newFeed() *feed {
	return &feed{begun: make(chan struct{}), pieces: make(chan []byte), ends: make(chan struct{}),
		stops: make(chan struct{})}
}

// begin has all that comes go to TLS. It reports whether something can come.
func (f *feed) begin(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.on {
		return false
	}
	f.Conn, f.on = conn, true
	close(f.begun)
	return true
}

// end says why no more comes. It reports whether TLS has begun.
func (f *feed) end(why error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over, f.why = true, why
	close(f.ends)
	return f.on
}

// stop says that TLS takes no more: it has ended, or failed.
func (f *feed) stop() { close(f.stops) }

// give waits until TLS takes a piece.
func (f *feed) give(ctx context.Context, piece []byte) error {
	select {
	case f.pieces <- piece:
		return nil
	case <-f.stops:
		return io.EOF
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		select {
		case f.rest = <-f.pieces:
		case <-f.ends:
			return 0, f.why
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// SetDeadline does nothing, and neither do the next ones: a context bounds the handshake.
func (f *feed) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (f *feed) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (f *feed) SetWriteDeadline(time.Time) error { return nil }

// factsOf is what JavaScript learns of a connection of TLS: version, suite, protocol of ALPN, what of the certificate
// is wrong and its code, and the certificate: subject, issuer, names, from when and until when it is valid,
// fingerprints, number.
func factsOf(c *egress.Secured) []string {
	state := c.ConnectionState()
	facts := []string{
		tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite), state.NegotiatedProtocol, "", "",
	}
	if c.Distrust != nil {
		told := egress.Tell(c.Distrust, "the server")
		facts[3], facts[4] = told.Text, told.Code
	}
	cert := state.PeerCertificates[0]
	var names []string
	for _, n := range cert.DNSNames {
		names = append(names, "DNS:"+altName(n))
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, "IP Address:"+ip.String())
	}
	one, two := sha1.Sum(cert.Raw), sha256.Sum256(cert.Raw) //nolint:gosec // a fingerprint that Node has
	return append(facts, cert.Subject.CommonName, cert.Issuer.CommonName, strings.Join(names, ", "),
		cert.NotBefore.UTC().Format(certTime), cert.NotAfter.UTC().Format(certTime), fmt.Sprintf("% X", one),
		fmt.Sprintf("% X", two), cert.SerialNumber.Text(16))
}

// altName writes a name of a certificate so that it stays one where names are parted by ", ": a name with characters
// that names of hosts do not have is in quotes, with these characters escaped.
func altName(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("*.-_", r)
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	var text strings.Builder
	text.WriteByte('"')
	for _, r := range name {
		if plain(r) {
			text.WriteRune(r)
		} else {
			fmt.Fprintf(&text, `\u%04x`, r)
		}
	}
	text.WriteByte('"')
	return text.String()
}

// certTime is how Node writes a time of a certificate.
const certTime = "Jan _2 15:04:05 2006 GMT"
