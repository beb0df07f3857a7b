package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	headBytes = 4
	// firstBytes is how much a Conn reads at once at first. A buffer grows with what comes, and is kept up to keptBytes:
	// a batch of 64 events of 1 KB has 80 KB, and making the memory for it each time takes a tenth of their CPU time.
	firstBytes = 16 << 10
	keptBytes  = 256 << 10
)

// ErrStuck says that the other side does not read.
var ErrStuck = errors.New("the other side does not take what was sent")

// Conn sends and receives frames. Any goroutine may send; one receives.
type Conn struct {
	conn *net.UnixConn
	most int // bytes of a frame that is received
	full int // bytes that may wait to be written

	in     []byte // what has come; only the goroutine that receives uses it
	filled int    // bytes of in

	mu      sync.Mutex
	out     Writer // frames that wait to be written
	spare   []byte
	frame   int  // where the frame begins that is being written into out
	writing bool // somebody writes
	broken  error
	writers sync.WaitGroup
}

// NewConn makes a Conn of a stream socket. It receives frames of at most so many bytes. At most full bytes wait to be
// written; if there are more, the other side does not read, and the Conn breaks.
func NewConn(conn *net.UnixConn, most, full int) *Conn {
	return &Conn{conn: conn, most: most, full: full}
}

// Begin begins a frame. The caller appends its fields, calls End, and soon Flush. It keeps others from sending until
// then, so it does nothing else meanwhile.
func (c *Conn) Begin(kind Kind) *Writer {
	c.mu.Lock()
	c.frame = len(c.out.b)
	c.out.b = append(c.out.b, 0, 0, 0, 0, byte(kind))
	return &c.out
}

// End ends a frame.
func (c *Conn) End() {
	binary.LittleEndian.PutUint32(c.out.b[c.frame:], uint32(len(c.out.b)-c.frame-headBytes))
	switch {
	case c.broken != nil:
		c.out.b = c.out.b[:0]
	case len(c.out.b) > c.full:
		c.fail(ErrStuck)
	}
	c.mu.Unlock()
}

// fail breaks the Conn: nothing is sent any more, and Receive ends. c.mu must be held.
func (c *Conn) fail(err error) {
	if c.broken == nil {
		c.broken, c.out.b = err, nil
		_ = c.conn.Close()
	}
}

// Waiting returns how many bytes wait to be written.
func (c *Conn) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out.b)
}

// Flush writes the frames that wait. It does not block: what the socket does not take, a goroutine writes.
func (c *Conn) Flush() {
	c.mu.Lock()
	if c.writing || c.broken != nil || len(c.out.b) == 0 {
		c.mu.Unlock()
		return
	}
	c.writing = true
	batch := c.swap()
	c.writers.Add(1) // before Close may wait
	c.mu.Unlock()
	defer c.writers.Done()
	n, err := c.try(batch)
	if err == nil && n == len(batch) && !c.more(batch) {
		return
	}
	c.writers.Go(func() { c.write(batch, n, err) })
}

// swap returns the frames that wait. c.mu must be held, and writing is set.
func (c *Conn) swap() []byte {
	batch := c.out.b
	c.out.b, c.spare = c.spare[:0], nil
	return batch
}

// more takes back the memory of what was written, and reports whether frames came meanwhile. Otherwise nobody writes.
func (c *Conn) more(written []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap(written) <= keptBytes {
		c.spare = written[:0]
	}
	c.writing = len(c.out.b) > 0 && c.broken == nil
	return c.writing
}

// try writes what the socket takes at once.
func (c *Conn) try(b []byte) (n int, err error) {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), b)
		return true
	})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		n, err = 0, nil
	}
	return max(n, 0), errors.Join(failed, err)
}

// write writes the rest of a batch, and what comes meanwhile.
func (c *Conn) write(batch []byte, n int, err error) {
	for {
		if err == nil && n < len(batch) {
			_, err = c.conn.Write(batch[n:])
		}
		if err != nil {
			c.mu.Lock()
			c.fail(err)
			c.writing = false
			c.mu.Unlock()
			return
		}
		if !c.more(batch) {
			return
		}
		c.mu.Lock()
		batch, n = c.swap(), 0
		c.mu.Unlock()
	}
}

// Receive calls handle with each frame that comes, and after when there is none left of what was read at once. It
// returns the first error, of either or of the connection; io.EOF is the end of the other side. After an error of
// handle it may be called again, and goes on with the next frame.
func (c *Conn) Receive(handle func(Kind, *Reader) error, after func()) error {
	if c.in == nil {
		c.in = make([]byte, firstBytes)
	}
	for {
		used, err := c.frames(c.in[:c.filled], handle)
		c.filled = copy(c.in, c.in[used:c.filled])
		c.in = c.resize(c.in, c.filled)
		if err != nil {
			return err
		}
		if used > 0 {
			after()
		}
		n, err := c.conn.Read(c.in[c.filled:])
		if err != nil {
			return errors.Join(c.why(), err)
		}
		c.filled += n
	}
}

// frames handles the whole frames at the beginning of b, and returns how many bytes they have. That includes one whose
// handler returns an error.
func (c *Conn) frames(b []byte, handle func(Kind, *Reader) error) (used int, err error) {
	for len(b)-used >= headBytes {
		size := binary.LittleEndian.Uint32(b[used:])
		if size == 0 || int64(size) > int64(c.most) {
			return used, fmt.Errorf("a frame has %d bytes: it has 1 to %d", size, c.most)
		}
		whole := used + headBytes + int(size)
		if len(b) < whole {
			return used, nil
		}
		frame := b[used+headBytes : whole]
		used = whole
		r := Reader{b: frame[1:]}
		if err = handle(Kind(frame[0]), &r); err == nil {
			err = r.Done()
		}
		if err != nil {
			return used, fmt.Errorf("frame of kind %d: %w", frame[0], err)
		}
	}
	return used, nil
}

// resize returns a buffer with the first bytes of b, and room for more. It grows with what has come: the length of a
// frame says nothing. It shrinks when it is empty.
func (c *Conn) resize(b []byte, filled int) []byte {
	switch {
	case filled == len(b):
		return append(b, make([]byte, len(b))...)
	case filled == 0 && len(b) > keptBytes:
		return make([]byte, firstBytes) // b is not kept
	}
	return b
}

// why returns what broke the Conn, if something did.
func (c *Conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Close ends the Conn, and waits for what writes.
func (c *Conn) Close() {
	c.mu.Lock()
	c.fail(net.ErrClosed)
	c.mu.Unlock()
	c.writers.Wait()
}
