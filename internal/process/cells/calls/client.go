package calls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// ahead is how many bytes the broker may send ahead of who reads them, for each call. It is as much as a server may
// send ahead to egress.
const ahead = 128 << 10

// Client is the side of a cell. Any goroutine may use it.
type Client struct {
	conn  *http.ClientConn
	raw   net.Conn
	ids   func(*lifecycle.Attempt) uint64
	group sync.WaitGroup // goroutines of calls under way
}

// NewClient makes the Client of the connection to the broker, which it closes. It waits for the broker's first answer:
// a request that is sent before the broker's settings have come may not keep to its windows. ctx bounds that. ids
// returns the number that the broker gave an attempt; 0 = it gave none, because the attempt stands for what a
// persistent context does between events. Any goroutine may call it.
func NewClient(ctx context.Context, conn net.Conn, ids func(*lifecycle.Attempt) uint64) (*Client, error) {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	t := &http.Transport{
		Protocols:          protocols,
		DisableCompression: true,
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		HTTP2:              &http.HTTP2Config{MaxReceiveBufferPerStream: ahead, MaxReadFrameSize: ahead / 2},
	}
	c := &Client{raw: conn, ids: ids}
	var err error
	if c.conn, err = t.NewClientConn(ctx, "http", "broker:80"); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("calls: %w", err)
	}
	a, err := c.ask(ctx, "/hello", newHead(), nil)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("calls: %w", err)
	}
	a.close()
	return c, nil
}

// Close ends the connection and all calls, and waits for them. It is called when no more calls begin.
func (c *Client) Close() {
	_ = c.conn.Close()
	_ = c.raw.Close()
	c.group.Wait()
}

// Err is why no more calls can be made; nil = they can.
func (c *Client) Err() error { return c.conn.Err() }

var (
	errBroker = errors.New("the process that carries out calls for this one does not answer")
	errAnswer = errors.New("the answer of the process that carries out calls for this one is malformed")
)

// answer is the answer to a call, after its prefix.
type answer struct {
	fields
	size   int // of the body, bytes, or streams
	body   io.ReadCloser
	resp   *http.Response
	cancel context.CancelFunc
	// unwatch stops closing the body when the context ends.
	unwatch func() bool
}

// close ends the call. Bytes that are not read are not sent any more.
func (a *answer) close() {
	a.unwatch()
	a.cancel()
	_ = a.body.Close()
}

// whole reads a body that comes as a whole.
func (a *answer) whole() ([]byte, error) {
	if a.size == streams {
		return nil, errAnswer
	}
	data := make([]byte, a.size)
	if _, err := io.ReadFull(a.body, data); err != nil {
		return nil, errBroker
	}
	return data, nil
}

// read reads a part of a body that streams. The error at its end is that of the trailer, or io.EOF.
func (a *answer) read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if failure := decodeTrailer(a.resp.Trailer.Get(trailer)); failure != nil {
		return n, failure
	}
	return n, io.EOF
}

// ask sends a request whose body comes as a whole, and returns its answer, which the caller closes. The failure of the
// call is the error.
func (c *Client) ask(ctx context.Context, path string, h head, body []byte) (*answer, error) {
	first, err := h.finish(len(body))
	if err != nil {
		return nil, err
	}
	size := int64(len(first) + len(body))
	if len(body) == 0 {
		return c.send(ctx, path, bytes.NewReader(first), size)
	}
	return c.send(ctx, path, io.MultiReader(bytes.NewReader(first), bytes.NewReader(body)), size)
}

// stream sends a request whose body streams. body is closed when it is not read any more.
func (c *Client) stream(ctx context.Context, path string, h head, body io.ReadCloser) (*answer, error) {
	first, err := h.finish(streams)
	if err != nil {
		_ = body.Close()
		return nil, err
	}
	return c.send(ctx, path, &streamed{io.MultiReader(bytes.NewReader(first), body), body}, -1)
}

// streamed is a body that streams.
type streamed struct {
	io.Reader
	io.Closer
}

func (c *Client) send(ctx context.Context, path string, body io.Reader, size int64) (*answer, error) {
	inner, cancel := context.WithCancel(ctx)
	a, err := c.exchange(inner, path, body, size)
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	a.cancel, a.unwatch = cancel, func() bool { return true }
	if size < 0 {
		// net/http does not look at the context while the window has no room for more of the request.
		a.unwatch = context.AfterFunc(inner, func() { _ = a.body.Close() })
	}
	return a, nil
}

func (c *Client) exchange(ctx context.Context, path string, body io.Reader, size int64) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://broker"+path, body)
	if err != nil {
		return nil, errBroker
	}
	r.ContentLength = size
	r.Header = http.Header{"User-Agent": {""}} // none is sent
	if b, ok := body.(*streamed); ok {
		if h, ok := b.Closer.(*halves); ok {
			r.Trailer = h.trailer
		}
	}
	resp, err := c.conn.RoundTrip(r)
	if err != nil {
		return nil, errBroker
	}
	a := &answer{resp: resp, body: resp.Body}
	if err := a.begin(); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return a, nil
}

// begin reads the head as far as all answers have the same.
func (a *answer) begin() error {
	if a.resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(a.body, 1<<10))
		return fmt.Errorf("the process that carries out calls for this one refuses it: %s", bytes.TrimSpace(text))
	}
	n, size, err := readPrefix(a.body)
	if err != nil {
		return errBroker
	}
	a.size, a.rest = size, make([]byte, n)
	if _, err := io.ReadFull(a.body, a.rest); err != nil {
		return errBroker
	}
	failure := a.failure()
	if a.err != nil {
		return errAnswer
	}
	return failure
}

// caller adds to a head which run calls. One that has a number needs no worker.
func (c *Client) caller(h *head, a *lifecycle.Attempt) {
	id := c.ids(a)
	h.number(id)
	if id == 0 {
		worker(h, a.Worker)
	}
}

func worker(h *head, w *workers.Worker) {
	h.text(w.Owner)
	h.text(w.Name)
	h.text(w.Version)
}

// until adds a point in time to a head.
func until(h *head, t time.Time) { h.number(uint64(max(0, t.UnixMilli()))) }
