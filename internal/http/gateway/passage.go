package gateway

import (
	"errors"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// passage lets the goroutine that moves a body write it to the client itself: a part costs no hand-off to the goroutine
// of the exchange. The exchange writes nothing of the body meanwhile.
type passage struct {
	x       *exchange
	cancel  func(why string) // of the body
	gone    chan struct{}    // closed when the client takes no more
	writing sync.Mutex       // held while a part is written

	mu   sync.Mutex
	over bool
}

func newPassage(x *exchange, s *events.Stream) *passage {
	return &passage{x: x, cancel: s.Cancel, gone: make(chan struct{})}
}

var errLeft = errors.New("the response is over")

// clientGone is why a body is cancelled whose client takes no more.
const clientGone = "the client has gone"

// write writes a part. It returns when the connection has it.
func (p *passage) write(data []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := p.begin(); err != nil {
		return err
	}
	n, err := p.x.w.Write(data)
	p.x.sent += int64(n)
	p.x.seen.add(data[:n])
	if err == nil {
		err = p.x.control.Flush()
	}
	if err != nil && !p.left() {
		p.cancel(clientGone)
		close(p.gone)
	}
	return err
}

// left says that nothing more is written, and reports whether that was so before.
func (p *passage) left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.over
	p.over = true
	return before
}

func (p *passage) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return errLeft
	}
	return p.x.control.SetWriteDeadline(time.Now().Add(p.x.g.times.write))
}

// leave ends the writing, also a write that waits for the client: nothing of the exchange is used after it.
func (p *passage) leave() {
	p.left()
	if !p.writing.TryLock() {
		_ = p.x.control.SetWriteDeadline(past)
		p.writing.Lock()
	}
	p.writing.Unlock()
}

// end cuts the connection because the body broke off, unless the client had gone before.
func (p *passage) end(why *events.Failure) {
	p.leave()
	select {
	case <-p.gone:
	default:
		p.x.broken = why
		_ = p.x.control.Flush()
	}
	p.x.cut()
}
