package offload

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/offload/rewriter"
)

// RewriteMemory is how many bytes a Rewrite holds at most.
const RewriteMemory = rewriter.Memory

// Rewrite is a page that an HTMLRewriter rewrites. It does one step at a time.
type Rewrite struct {
	busy   atomic.Bool // a step is under way
	stream *rewriter.Stream
	held   atomic.Int64 // bytes that wait for more
}

// NewRewrite makes a Rewrite. handlers has what is asked for with each selector, and the document's last.
func NewRewrite(selectors []string, handlers []byte) (*Rewrite, error) {
	list := make([]rewriter.Handlers, len(handlers))
	for i, h := range handlers {
		list[i] = rewriter.Handlers(h)
	}
	stream, err := rewriter.New(selectors, list)
	return &Rewrite{stream: stream}, err
}

// rewriteMore is the flag of a step that says that the input so far has more.
const rewriteMore = 1

// Cost is how many bytes a step with n more reads, times the tests of each element.
func (w *Rewrite) Cost(n int) int { return (int(w.held.Load()) + n) * (1 + w.stream.Tests()) }

// Step carries out a step.
func (w *Rewrite) Step(in []byte, last bool, goOn func() error) (Product, time.Duration) {
	if !w.busy.CompareAndSwap(false, true) {
		return Failed(errBusy), 0
	}
	defer w.busy.Store(false)
	out, records, more, err := w.stream.Step(in, last, goOn)
	w.held.Store(int64(w.stream.Held()))
	flags := []byte{0}
	if more {
		flags[0] = rewriteMore
	}
	numbers := make([]byte, 0, 4*len(records))
	for _, n := range records {
		numbers = binary.LittleEndian.AppendUint32(numbers, uint32(n))
	}
	return List(err, out, numbers, flags), 0
}
