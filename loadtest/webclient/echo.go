package webclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httputil"
	"os"
	"sync"
	"time"
)

// patternBytes is the period of the body of an Echo. It is odd: a block of the usual sizes that comes twice, or not at
// all, changes the body.
const patternBytes = 1<<20 - 3

// pieceBytes is how much of the body of an Echo is written and read at once.
const pieceBytes = 256 << 10

// pattern is what bodies are made of: a period, and a piece more, so that each piece is in it as a whole.
var pattern = sync.OnceValue(func() []byte {
	p := make([]byte, patternBytes, patternBytes+pieceBytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p)
	return append(p, p[:pieceBytes]...)
})

// stretch returns the bytes of a body of size bytes from at on, a piece at most.
func stretch(at, size int64) []byte {
	from := at % patternBytes
	return pattern()[from : from+min(size-at, pieceBytes)]
}

// sendBody sends the body of an Echo. It ends with the connection.
func (c *Conn) sendBody() error {
	for at := int64(0); at < c.echo; {
		n, err := c.conn.Write(stretch(at, c.echo))
		if at += int64(n); err != nil {
			return fmt.Errorf("send the body, of which %d bytes are sent: %w", at, err)
		}
	}
	return nil
}

// receiveBody reads the body of the answer, and compares it with what was sent.
func (c *Conn) receiveBody(h head) error {
	if h.status != "200" || !h.chunked && int64(h.length) != c.echo {
		return fmt.Errorf("status %s and %d bytes: it must be 200 and %d", h.status, h.length, c.echo)
	}
	var from io.Reader = c.in
	if h.chunked {
		from = httputil.NewChunkedReader(c.in)
	}
	if c.body == nil {
		c.body = make([]byte, pieceBytes)
	}
	for at := int64(0); at < c.echo; {
		n, err := from.Read(c.body[:min(pieceBytes, c.echo-at)])
		if !bytes.Equal(c.body[:n], stretch(at, c.echo)[:n]) {
			return fmt.Errorf("the %d bytes after the first %d of the body are not those that were sent", n, at)
		}
		if at += int64(n); err != nil && at < c.echo {
			return fmt.Errorf("read the body, of which %d bytes came: %w", at, err)
		}
	}
	if !h.chunked {
		return nil
	}
	if n, err := from.Read(c.body[:1]); n > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("the body does not end after %d bytes: %w", c.echo, err)
	}
	end, err := c.line()
	if err == nil && len(end) > 0 {
		err = fmt.Errorf("%q comes after the last chunk", clip(end))
	}
	return err
}

// Echo sends the prepared request with a body of Exchange.Echo bytes, and checks that the answer has the same body. It
// sends and receives at the same time.
func (c *Conn) Echo() error {
	if err := c.Send(); err != nil {
		return err
	}
	sent := make(chan error, 1)
	var sender sync.WaitGroup
	sender.Go(func() { sent <- c.sendBody() })
	h, err := c.head()
	if err == nil {
		err = c.receiveBody(h)
	}
	if err != nil {
		_ = c.conn.SetWriteDeadline(time.Unix(1, 0)) // the server may not read the rest
	}
	sender.Wait()
	if failed := <-sent; err == nil || !errors.Is(failed, os.ErrDeadlineExceeded) {
		err = errors.Join(err, failed)
	}
	return err
}

// Echoes reports whether Echo asks, instead of Send and Receive.
func (c *Conn) Echoes() bool { return c.echo > 0 }
