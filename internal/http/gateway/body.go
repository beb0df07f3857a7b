package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// requestBody is the body of a request. One goroutine reads it at a time: that of the exchange before the event runs,
// and then those of the event, until leave.
type requestBody struct {
	from    io.Reader
	control *http.ResponseController
	gone    func() // the client broke off
	times   *times
	parts   int    // that were read
	spare   []byte // memory of a part that is not used any more
	full    bool   // the last part was as large as most are
	owners  *owners
	owner   string    // who is charged
	seen    beginning // for http.log

	mu      sync.Mutex
	came    int64         // bytes
	waited  time.Duration // for the client
	ended   bool
	refused *refusal // why the rest is not read; nil = it is
	over    bool     // the body is not read any more
	reading chan struct{}
}

var (
	tooSlow = &refusal{http.StatusRequestTimeout, "the body comes too slowly"}
	errOver = errors.New("the request is over")
	past    = time.Unix(1, 0)
)

func tooLarge(most int64) *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", most)}
}

// size is how many bytes of a body are read before its event runs.
func (*requestBody) size(length int64) int64 {
	if length < 0 || length > wholeBody {
		return 0
	}
	return length
}

// give gives e the body of a request: at once if it is short, otherwise in parts while the event runs.
func (b *requestBody) give(e *lifecycle.Delivery, length int64) error {
	if length != 0 && b.size(length) == 0 {
		e.Parts = &events.Parts{ID: e.ID, Live: true, Size: max(0, length), Read: b.part, Free: b.free}
		return nil
	}
	body := make([]byte, length)
	for n := 0; n < len(body); {
		got, err := b.read(body[n:])
		if n += got; err != nil && n < len(body) {
			return err
		}
	}
	e.Body = body
	return nil
}

// Read is for events that are stored before they run. One that does not read the body to its end gets an error.
func (b *requestBody) Read(into []byte) (int, error) { return b.read(into) }

// part is the Read of events.Parts.
func (b *requestBody) part(ctx context.Context, i int) ([]byte, error) {
	if i != b.parts {
		return nil, fmt.Errorf("part %d of the body was read before", i)
	}
	defer context.AfterFunc(ctx, b.interrupt)()
	buffer, drop := b.room()
	defer drop()
	for {
		n, err := b.read(buffer)
		if n > 0 { // an error comes again
			b.parts++
			if b.full = n >= partBytes; !b.full && len(buffer) > partBytes {
				return bytes.Clone(buffer[:n]), nil // the reader charges as much as came
			}
			return buffer[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// room returns the memory of the next part. It is larger when a part that is not given back had no room for all that
// had come: JavaScript reads it, and has a turn for each part. What is more than partBytes is charged until the part
// has come; the reader charges that.
func (b *requestBody) room() (buffer []byte, drop func()) {
	if buffer = b.spare; buffer != nil {
		b.spare = nil
		return buffer, func() {}
	}
	if b.full && b.owners.hold(b.owner, maxPart-partBytes) {
		return make([]byte, maxPart), func() { b.owners.drop(b.owner, maxPart-partBytes) }
	}
	return make([]byte, partBytes), func() {}
}

// free is the Free of events.Parts.
func (b *requestBody) free(part []byte) {
	b.full = false
	if cap(part) == partBytes {
		b.spare = part[:partBytes]
	}
}

// interrupt ends the reading, also a read that waits for the client.
func (b *requestBody) interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.reading != nil {
		_ = b.control.SetReadDeadline(past)
	}
}

// read reads once, as long as the client has time left.
func (b *requestBody) read(into []byte) (int, error) {
	began := time.Now()
	if err := b.begin(began); err != nil {
		return 0, err
	}
	n, err := b.from.Read(into)
	b.seen.add(into[:n])
	return n, b.end(n, time.Since(began), err)
}

func (b *requestBody) begin(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return errOver
	}
	left := b.times.body + time.Duration(b.came/bodyRate)*time.Second - b.waited
	if err := b.control.SetReadDeadline(now.Add(min(left, b.times.piece))); err != nil {
		return err
	}
	b.reading = make(chan struct{})
	return nil
}

// end counts what was read. It returns err, or why the rest is not read.
func (b *requestBody) end(n int, took time.Duration, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.reading)
	b.reading = nil
	b.came += int64(n)
	b.waited += took
	b.ended = b.ended || errors.Is(err, io.EOF)
	var most *http.MaxBytesError
	switch {
	case err == nil || b.ended:
		// From now on the server reads itself, to see when the client goes. It waits as long as the event runs.
		_ = b.control.SetReadDeadline(time.Time{})
		return err
	case b.over: // and not the client's fault
		return errOver
	case errors.As(err, &most):
		b.refused = tooLarge(most.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.refused = tooSlow
	default:
		b.gone()
		return err
	}
	return b.refused
}

// why is why the body was not read to its end; nil = it was, or may be.
func (b *requestBody) why() *refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// leave ends the reading: nothing of the connection is used after it. The server reads some of the rest itself, so that
// the connection can be used again. It must not wait long for that.
func (b *requestBody) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if reading := b.reading; reading != nil {
		_ = b.control.SetReadDeadline(past)
		b.mu.Unlock()
		<-reading
		b.mu.Lock()
	}
	if !b.ended && b.refused == nil {
		_ = b.control.SetReadDeadline(time.Now().Add(b.times.rest))
	}
}
