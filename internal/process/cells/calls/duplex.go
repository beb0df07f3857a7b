package calls

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// lastWords is how long the broker may take to end a connection that the cell has closed, until its stream is reset.
// What the cell wrote before is written in that time.
const lastWords = 5 * time.Second

// lastBytes is how much a server may send in that time. Nobody reads it, so nobody pays for it: after CloseWrite the
// broker does not learn of Close before the reset, and goes on.
const lastBytes = 256 << 10

// half is the trailer that ends a request after which the cell still reads. Without it the connection ends.
const half = "Half"

// halves is what a duplex sends. trailer is written before the reader gets the end.
type halves struct {
	*io.PipeReader
	trailer http.Header
}

// duplex is a call whose request and answer stream at once: a connection to the broker. It is a net.Conn. A deadline
// that passes ends it, as it would end every use of the connections of egress.
type duplex struct {
	c    *Client
	a    *answer
	out  *io.PipeWriter
	sent *halves // what out writes to
	once sync.Once
	// halved is done by CloseWrite, and by Close, which must not be taken for it.
	halved sync.Once
	// reading is for who reads the answer: the body of a response wakes only one reader when it ends.
	reading sync.Mutex

	mu     sync.Mutex
	reads  *time.Timer // end the connection; nil = there is no deadline
	writes *time.Timer
	why    error // why it ended on this side
}

// open begins a call that streams both ways. ctx bounds only how long the beginning takes.
func (c *Client) open(ctx context.Context, path string, h head) (*duplex, error) {
	read, out := io.Pipe()
	in := &halves{read, http.Header{half: nil}}
	all, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	a, err := c.stream(all, path, h, in)
	if !stop() && err == nil {
		a.close()
		err = ctx.Err()
	}
	if err == nil && a.end() != nil {
		a.close()
		err = errAnswer
	}
	if err != nil {
		cancel()
		_ = out.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return &duplex{c: c, a: a, out: out, sent: in}, nil
}

// Read implements net.Conn.
func (d *duplex) Read(p []byte) (int, error) {
	d.reading.Lock()
	defer d.reading.Unlock()
	if d.closed() {
		return 0, d.reason("read", net.ErrClosed, nil)
	}
	n, err := d.a.read(p)
	if d.closed() || err != nil && !errors.Is(err, io.EOF) {
		err = d.reason("read", err, syscall.ECONNRESET)
	}
	return n, err
}

// Write implements net.Conn.
func (d *duplex) Write(p []byte) (int, error) {
	n, err := d.out.Write(p)
	if err != nil {
		err = d.reason("write", err, syscall.EPIPE)
	}
	return n, err
}

// reason is why the connection failed: what ended it on this side, or err if the broker said so.
func (d *duplex) reason(op string, err error, other error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why != nil {
		return &net.OpError{Op: op, Net: "tcp", Err: d.why}
	}
	if network := (*net.OpError)(nil); errors.As(err, &network) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Err: other}
}

// closed reports whether Close was called, or a deadline has passed.
func (d *duplex) closed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why != nil
}

// abort ends the connection at once.
func (d *duplex) abort(why error) {
	d.mu.Lock()
	if d.why == nil {
		d.why = why
	}
	d.mu.Unlock()
	_ = d.out.CloseWithError(why)
	d.a.close()
}

// CloseWrite says that nothing more is sent. What the other side sends can be read until it ends the connection. It is
// called by who writes.
func (d *duplex) CloseWrite() error {
	if d.closed() {
		return d.reason("close", net.ErrClosed, nil)
	}
	d.halved.Do(func() {
		d.sent.trailer[half] = []string{"1"}
		_ = d.out.Close()
	})
	return nil
}

// Close implements net.Conn. It does not wait. A Read under way returns when the broker has ended the connection.
func (d *duplex) Close() error {
	d.once.Do(func() {
		_ = d.SetDeadline(time.Time{})
		d.mu.Lock()
		if d.why == nil {
			d.why = net.ErrClosed
		}
		d.mu.Unlock()
		d.halved.Do(func() { _ = d.out.Close() })
		d.c.group.Go(func() {
			late := time.AfterFunc(lastWords, d.a.close)
			defer late.Stop()
			d.reading.Lock()
			defer d.reading.Unlock()
			_, _ = io.CopyN(io.Discard, d.a.body, lastBytes)
			d.a.close()
		})
	})
	return nil
}

// LocalAddr implements net.Conn.
func (d *duplex) LocalAddr() net.Addr { return &net.UnixAddr{Name: "cell", Net: "unix"} }

// RemoteAddr implements net.Conn. The cell does not learn the address.
func (d *duplex) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "broker", Net: "unix"} }

// SetDeadline implements net.Conn.
func (d *duplex) SetDeadline(t time.Time) error {
	_ = d.SetReadDeadline(t)
	return d.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (d *duplex) SetReadDeadline(t time.Time) error { return d.set(&d.reads, t) }

// SetWriteDeadline implements net.Conn.
func (d *duplex) SetWriteDeadline(t time.Time) error { return d.set(&d.writes, t) }

func (d *duplex) set(timer **time.Timer, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
	switch {
	case d.why != nil:
		return d.why
	case !t.IsZero():
		*timer = time.AfterFunc(time.Until(t), func() { d.abort(os.ErrDeadlineExceeded) })
	}
	return nil
}

// Dial connects to address, HOST:PORT, for an owner: it is the Dial of isolates.Config. The broker connects, under its
// guard. The error is in words for the author of a handler.
func (c *Client) Dial(ctx context.Context, owner, network, address string) (net.Conn, error) {
	h := newHead()
	h.text(owner)
	h.text(network)
	h.text(address)
	d, err := c.open(ctx, "/dial", h)
	switch {
	case err == nil:
		return d, nil
	case ctx.Err() != nil:
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
	return nil, err
}

// Lookup finds the addresses of a name for an owner: it is the Lookup of isolates.Config. The broker looks it up, under
// its guard.
func (c *Client) Lookup(ctx context.Context, owner, host string) ([]netip.Addr, error) {
	h := newHead()
	h.text(owner)
	h.text(host)
	a, err := c.ask(ctx, "/lookup", h, nil)
	if err != nil {
		return nil, err
	}
	defer a.close()
	texts := a.list()
	if a.end() != nil {
		return nil, errAnswer
	}
	found := make([]netip.Addr, 0, len(texts))
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, errAnswer
		}
		found = append(found, address)
	}
	return found, nil
}
