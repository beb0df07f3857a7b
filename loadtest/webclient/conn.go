package webclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// bufferBytes has room for the answers, so that most of them are read by one system call.
const bufferBytes = 16 << 10

// Conn is a connection that carries one request at a time. One goroutine may prepare and send while another one is in
// Await. Otherwise it is for one goroutine at a time.
type Conn struct {
	conn    net.Conn
	in      *bufio.Reader
	request text
	answer  text
	body    []byte // of answers that are longer than the buffer, or in chunks
	echo    int64  // Exchange.Echo
}

// Dial connects to addr, which is host:port.
func Dial(ctx context.Context, addr string, e Exchange) (*Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, in: bufio.NewReaderSize(conn, bufferBytes), request: newText(e.Request),
		answer: newText(e.Answer), echo: e.Echo}, nil
}

// Close ends the connection.
func (c *Conn) Close() { _ = c.conn.Close() }

// SetDeadline is the time after which calls fail.
func (c *Conn) SetDeadline(t time.Time) error { return c.conn.SetDeadline(t) }

// Prepare makes the next request and the answer that it must have, with a number from 0 to MaxNumber, for an owner from
// 0 to MaxOwner. The answer to the request before it must have been received.
func (c *Conn) Prepare(number, owner int) {
	c.request.fill(number, owner)
	c.answer.fill(number, owner)
}

// Send sends the request.
func (c *Conn) Send() error {
	_, err := c.conn.Write(c.request.bytes)
	return err
}

// Await returns when the first byte of an answer is there.
func (c *Conn) Await() error {
	_, err := c.in.Peek(1)
	return err
}

// Receive reads the answer to the last request. The error says how it differs from what it must be.
func (c *Conn) Receive() error {
	h, err := c.head()
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	body, err := c.rest(h)
	if err != nil {
		return fmt.Errorf("read the body of the answer: %w", err)
	}
	if h.status != "200" || !bytes.Equal(body, c.answer.bytes) {
		return fmt.Errorf("status %s and body %q: it must be 200 and %q", h.status, clip(body), clip(c.answer.bytes))
	}
	if h.length <= bufferBytes && !h.chunked {
		_, err = c.in.Discard(h.length) // body was only looked at
	}
	return err
}

func clip(b []byte) []byte { return b[:min(len(b), 300)] }

// head is what is needed of an answer's head.
type head struct {
	status  string
	length  int
	chunked bool
}

var errNoLength = errors.New("the answer has neither Content-Length nor chunks")

func (c *Conn) head() (head, error) {
	h := head{length: -1}
	line, err := c.line()
	if err != nil {
		return h, err
	}
	version, rest, _ := strings.Cut(string(line), " ")
	if h.status, _, _ = strings.Cut(rest, " "); version != "HTTP/1.1" || len(h.status) != 3 {
		return h, fmt.Errorf("the answer begins with %q", clip(line))
	}
	for {
		if line, err = c.line(); err != nil {
			return h, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case len(name) == len("content-length") && strings.EqualFold(string(name), "content-length"):
			if h.length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || h.length < 0 {
				return h, fmt.Errorf("the answer has %q", clip(line))
			}
		case len(name) == len("transfer-encoding") && strings.EqualFold(string(name), "transfer-encoding"):
			h.chunked = strings.EqualFold(string(bytes.TrimSpace(value)), "chunked")
		}
	}
	if h.length < 0 && !h.chunked {
		return h, errNoLength
	}
	return h, nil
}

// line returns the next line without its end. It is valid until the next read.
func (c *Conn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'}), err
}

// rest returns the body. One that has room in the buffer is still in it.
func (c *Conn) rest(h head) ([]byte, error) {
	switch {
	case h.chunked:
		body, err := io.ReadAll(httputil.NewChunkedReader(c.in))
		if err != nil {
			return nil, err
		}
		end, err := c.line()
		if err == nil && len(end) > 0 {
			err = fmt.Errorf("%q comes after the last chunk", clip(end))
		}
		return body, err
	case h.length <= bufferBytes:
		return c.in.Peek(h.length)
	}
	if cap(c.body) < h.length {
		c.body = make([]byte, h.length)
	}
	_, err := io.ReadFull(c.in, c.body[:h.length])
	return c.body[:h.length], err
}
