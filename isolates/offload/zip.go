package offload

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/isolates/offload/compression"
)

// Zip is a CompressionStream or a DecompressionStream. It does one step at a time.
type Zip struct {
	busy         atomic.Bool // a step is under way
	compressor   *compression.Compressor
	decompressor *compression.Decompressor
}

// NewZip makes a Zip for a format of the Compression standard.
func (p *Pool) NewZip(format string, compress bool) (z *Zip, err error) {
	z = &Zip{}
	if compress {
		z.compressor, err = p.compressors.New(format)
	} else {
		z.decompressor, err = compression.NewDecompressor(format, perowner.ThreadTime)
	}
	return z, err
}

// Compresses reports whether z is a CompressionStream. Its steps work on the calling goroutine. A decompressor has its
// own goroutine.
func (z *Zip) Compresses() bool { return z.compressor != nil }

// Close frees the memory of a decompressor. It may be called again.
func (z *Zip) Close() {
	if z.decompressor != nil {
		z.decompressor.Close()
	}
}

// Flags that a step reports to JavaScript with its bytes.
const (
	zipMore  = 1 // there is more output from the input given so far
	zipWrong = 2 // the data is wrong after these bytes; the error text follows
	zipEnd   = 4 // this was the end of the data
)

// errBusy is the error of a step that does not wait for the one before it.
var errBusy = errors.New("a step of the stream is under way")

// Step carries out a step. It also returns the CPU time that was used on another thread. Code of the worker can have
// two steps of a stream begin at once, on two goroutines: the second one fails.
func (z *Zip) Step(in []byte, last bool) (Product, time.Duration) {
	if !z.busy.CompareAndSwap(false, true) {
		return Failed(errBusy), 0
	}
	defer z.busy.Store(false)
	if z.compressor != nil {
		out, err := z.compressor.Step(in, last)
		return List(err, out, []byte{0}), 0
	}
	a := z.decompressor.Step(in, last)
	switch {
	case a.Err != nil && len(a.Out) > 0:
		return List(nil, a.Out, []byte{zipWrong}, []byte(a.Err.Error())), a.CPU
	case a.More:
		return List(nil, a.Out, []byte{zipMore}), a.CPU
	case a.End:
		return List(a.Err, a.Out, []byte{zipEnd}), a.CPU
	}
	return List(a.Err, a.Out, []byte{0}), a.CPU
}
