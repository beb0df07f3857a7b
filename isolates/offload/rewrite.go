package offload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/offload/rewriter"
)

// RewriteMemory is how many bytes a Rewrite holds at most between steps.
const RewriteMemory = rewriter.Memory

// Rewrite is a page that an HTMLRewriter rewrites. It does one step at a time.
type Rewrite struct {
	tests int
	held  atomic.Int64 // bytes that wait for more

	mu     sync.Mutex
	stream *rewriter.Stream // nil once it is closed
	busy   bool             // a step is under way
	freed  func()           // of Close, while a step is under way
}

// NewRewrite makes a Rewrite. handlers has what is asked for with each selector, and the document's last.
func NewRewrite(selectors []string, handlers []byte) (*Rewrite, error) {
	list := make([]rewriter.Handlers, len(handlers))
	for i, h := range handlers {
		list[i] = rewriter.Handlers(h)
	}
	stream, err := rewriter.New(selectors, list)
	if err != nil {
		return nil, err
	}
	return &Rewrite{stream: stream, tests: stream.Tests()}, nil
}

var errRewriteClosed = errors.New("the page is closed")

// Close lets go of the memory. freed is called when that is free: at once, or when the step that is under way has
// ended. A step that waits in a queue does not keep it. Close may be called again, and then does nothing.
func (w *Rewrite) Close(freed func()) {
	w.mu.Lock()
	if w.stream == nil {
		w.mu.Unlock()
		return
	}
	w.stream = nil
	if w.busy {
		w.freed, freed = freed, nil
	}
	w.mu.Unlock()
	if freed != nil {
		freed()
	}
}

func (w *Rewrite) begin() (*rewriter.Stream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stream == nil:
		return nil, errRewriteClosed
	case w.busy:
		return nil, errBusy
	}
	w.busy = true
	return w.stream, nil
}

func (w *Rewrite) end() {
	w.mu.Lock()
	freed := w.freed
	w.busy, w.freed = false, nil
	w.mu.Unlock()
	if freed != nil {
		freed()
	}
}

// rewriteMore is the flag of a step that says that the input so far has more.
const rewriteMore = 1

// Cost is how many bytes a step with n more reads, times the tests of each element.
func (w *Rewrite) Cost(n int) int { return (int(w.held.Load()) + n) * (1 + w.tests) }

// Holds is how many bytes a step with n more takes beside RewriteMemory: these bytes, values in lower case, and what
// the step hands over.
func (w *Rewrite) Holds(n int) int { return n + 2*(int(w.held.Load())+n) + rewriter.Records }

// Step carries out a step. What it returns is valid also when the next step begins before it is delivered.
func (w *Rewrite) Step(in []byte, last bool, goOn func() error) (Product, time.Duration) {
	stream, err := w.begin()
	if err != nil {
		return Failed(err), 0
	}
	defer w.end()
	out, records, more, err := stream.Step(in, last, goOn)
	w.held.Store(int64(stream.Held()))
	flags := []byte{0}
	if more {
		flags[0] = rewriteMore
	}
	numbers := make([]byte, 0, 4*len(records))
	for _, n := range records {
		numbers = binary.LittleEndian.AppendUint32(numbers, uint32(n))
	}
	return List(err, bytes.Clone(out), numbers, flags), 0
}
