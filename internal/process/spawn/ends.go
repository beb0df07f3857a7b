package spawn

import "sync"

// What is kept of a cell's output. V8 and Go say first why they give up, and then where.
const (
	mostFirst  = 6 << 10
	mostLast   = 2 << 10
	mostOutput = 16 << 20 // bytes of it that are read. A cell has nothing to say before it dies
)

// ends keeps the beginning and the end of what is written to it. full is closed when more is written than is read.
type ends struct {
	mu          sync.Mutex
	first, last []byte
	cut         bool // there was something between them
	read        int
	full        chan struct{}
}

// Write keeps what it can of b. It never fails.
func (e *ends) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.read
	if e.read += len(b); before <= mostOutput && e.read > mostOutput {
		close(e.full)
	}
	n := min(mostFirst-len(e.first), len(b))
	e.first, e.last = append(e.first, b[:n]...), append(e.last, b[n:]...)
	if over := len(e.last) - mostLast; over > 0 {
		e.last, e.cut = append(e.last[:0], e.last[over:]...), true
	}
	return len(b), nil
}

func (e *ends) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	between := ""
	if e.cut {
		between = "\n...\n"
	}
	return string(e.first) + between + string(e.last)
}
