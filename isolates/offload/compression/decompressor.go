package compression

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// MaxOutput is the largest output of one step of a Decompressor, in bytes.
const MaxOutput = 64 << 10

// Errors in the compressed data, and of a closed stream.
var (
	ErrTruncated = errors.New("the compressed data ends too early")
	ErrTrailing  = errors.New("there is data after the end of the compressed data")
	ErrClosed    = errors.New("the stream is closed")
)

// Decompressor is a stream of compressed data. The readers of Go's libraries pull their input, but the input of a
// stream is pushed. So each Decompressor runs in its own goroutine. It sleeps between the steps and ends with the data,
// an error, or Close.
type Decompressor struct {
	format string
	clock  func() time.Duration

	asks    chan ask    // to the goroutine: the next step
	answers chan Answer // from the goroutine: the result of the step
	closed  chan struct{}
	close   sync.Once
	begun   bool
	ended   bool // the goroutine has ended

	// Used only by the goroutine.
	in   []byte
	last bool
	out  []byte
	at   time.Duration // value of clock when the step began

	// Of Decompress only.
	goOn    func() error
	stopped error // of goOn
}

type ask struct {
	in   []byte
	last bool
}

// Answer is the result of a step.
type Answer struct {
	Out  []byte
	More bool          // there is more output from the input so far: call Step with no input
	End  bool          // this was the end of the data
	Err  error         // error in the data after Out
	CPU  time.Duration // CPU time of the step
}

// NewDecompressor starts a stream. clock returns the CPU time that the calling thread has used.
func NewDecompressor(format string, clock func() time.Duration) (*Decompressor, error) {
	switch format {
	case Gzip, Deflate, DeflateRaw:
	default:
		if !isNodes(format) {
			return nil, errFormat(format)
		}
	}
	return &Decompressor{
		format: format, clock: clock, asks: make(chan ask), answers: make(chan Answer, 1), closed: make(chan struct{}),
	}, nil
}

// Close ends the stream and frees its memory. It may be called again, and during a Step, which then fails.
func (d *Decompressor) Close() { d.close.Do(func() { close(d.closed) }) }

// Step takes a piece of the compressed data and returns at most MaxOutput bytes of its content. last says that no more
// data follows. The stream may keep in until it ends, so in must not be changed. The caller sees that no two steps are
// under way at once.
func (d *Decompressor) Step(in []byte, last bool) Answer {
	select {
	case <-d.closed: // the goroutine may still be in the step that Close ended
		return Answer{Err: ErrClosed}
	default:
	}
	if d.ended {
		if len(in) > 0 && !isNodes(d.format) {
			return Answer{Err: ErrTrailing}
		}
		return Answer{End: true}
	}
	if !d.begun {
		d.begun = true
		go d.run()
	}
	select {
	case d.asks <- ask{in, last}:
	case <-d.closed:
		return Answer{Err: ErrClosed}
	}
	select {
	case a, ok := <-d.answers:
		if !ok {
			return Answer{Err: ErrClosed}
		}
		return a
	case <-d.closed:
		return Answer{Err: ErrClosed}
	}
}

// run is the function of the goroutine.
func (d *Decompressor) run() {
	defer close(d.answers)
	if !d.take() {
		return
	}
	defer runtime.UnlockOSThread()
	source := newSource(d)
	err := d.try(source)
	if errors.Is(err, ErrClosed) {
		return
	}
	if err == nil && !isNodes(d.format) && (source.Buffered() > 0 || len(d.in) > 0) {
		err = ErrTrailing
	}
	d.ended = true // set before the answer is sent, so the caller of Step sees it
	d.answers <- Answer{Out: d.out, End: err == nil, Err: err, CPU: d.clock() - d.at}
}

// try calls decompress and turns a panic into an error: the data is untrusted.
func (d *Decompressor) try(source *bufio.Reader) (err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("decompression failed: %v", failed)
		}
	}()
	return d.decompress(source)
}

// decompress reads to the end of the data.
func (d *Decompressor) decompress(source *bufio.Reader) error {
	r, err := d.reader(source)
	if err != nil {
		return d.wrong(err)
	}
	defer func() { _ = r.Close() }()
	d.out = make([]byte, 0, MaxOutput)
	piece := make([]byte, MaxOutput/2)
	for {
		// Not into out: a step may end within Read, and take the bytes in out.
		n, err := r.Read(piece[:min(len(piece), cap(d.out)-len(d.out))])
		d.out = append(d.out, piece[:n]...)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return d.wrong(err)
		}
		if len(d.out) == cap(d.out) && !d.give(true) {
			return ErrClosed
		}
	}
}

func (d *Decompressor) reader(source *bufio.Reader) (io.ReadCloser, error) {
	switch d.format {
	case Gzip:
		// The reader accepts flags that must be zero in RFC 1952.
		if head, err := source.Peek(4); err == nil && head[3]&0xe0 != 0 {
			return nil, gzip.ErrHeader
		}
		r, err := gzip.NewReader(source)
		if err == nil {
			r.Multistream(false)
		}
		return r, err
	case Deflate:
		return zlib.NewReader(source)
	case Gunzip, Inflate, Unzip, BrotliFormat:
		return nodes(d.format, source)
	}
	return flate.NewReader(source), nil
}

func (d *Decompressor) wrong(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	switch {
	case errors.Is(err, ErrClosed):
		return err
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, zlib.ErrHeader):
		return fmt.Errorf("the compressed data does not begin as %s does", d.format)
	case errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zlib.ErrChecksum):
		return errors.New("the checksum or the length of the compressed data is wrong")
	case errors.Is(err, zlib.ErrDictionary):
		return errors.New("the compressed data needs a dictionary")
	}
	return fmt.Errorf("the compressed data is not valid %s", d.format)
}

// give ends a step and starts the next. It returns false if the stream is closed.
func (d *Decompressor) give(more bool) bool {
	answer := Answer{Out: bytes.Clone(d.out), More: more, CPU: d.clock() - d.at}
	d.out = d.out[:0]
	runtime.UnlockOSThread()
	d.answers <- answer
	if !d.take() {
		runtime.LockOSThread() // run unlocks it
		return false
	}
	return true
}

// take waits for the next step and starts it. It locks the goroutine to its OS thread because clock is per thread. It
// returns false if the stream is closed.
func (d *Decompressor) take() bool {
	select {
	case a := <-d.asks:
		d.last = a.last
		if len(d.in) == 0 {
			d.in = a.in
		} else {
			d.in = slices.Concat(d.in, a.in)
		}
	case <-d.closed:
		return false
	}
	runtime.LockOSThread()
	d.at = d.clock()
	return true
}

func newSource(d *Decompressor) *bufio.Reader { return bufio.NewReaderSize((*source)(d), 8<<10) }

// maxRead is the most that a source gives at once, in bytes.
const maxRead = 32 << 10

// source is the input of the goroutine: the data that the steps bring. A read with no data left ends the step.
type source Decompressor

func (s *source) Read(p []byte) (int, error) {
	d := (*Decompressor)(s)
	if d.goOn != nil && d.stopped == nil {
		d.stopped = d.goOn()
	}
	if d.stopped != nil {
		return 0, d.stopped
	}
	for len(d.in) == 0 {
		if d.last {
			return 0, io.ErrUnexpectedEOF
		}
		if !d.give(false) {
			return 0, ErrClosed
		}
	}
	n := copy(p[:min(len(p), maxRead)], d.in)
	d.in = d.in[n:]
	if len(d.in) == 0 {
		d.in = nil
	}
	return n, nil
}
