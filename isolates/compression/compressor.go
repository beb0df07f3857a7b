package compression

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// The formats of the Compression standard.
const (
	Gzip       = "gzip"
	Deflate    = "deflate" // zlib, RFC 1950
	DeflateRaw = "deflate-raw"
)

func errFormat(format string) error {
	return fmt.Errorf("unknown format %q: it is %s, %s or %s", format, Gzip, Deflate, DeflateRaw)
}

// Compressors makes Compressors, and lends those that are done with to the next: making one takes longer than compressing a
// page. Its zero value is ready, for any goroutine.
type Compressors struct{ gzip, zlib, flate sync.Pool }

// resetter is what the writers of all formats are.
type resetter interface {
	io.WriteCloser
	Reset(w io.Writer)
}

// Compressor is a stream of data to compress. It holds about 1 MiB.
type Compressor struct {
	out  bytes.Buffer
	w    resetter // nil when the stream is over
	home *sync.Pool
}

// New begins a stream.
func (p *Compressors) New(format string) (*Compressor, error) {
	c := &Compressor{}
	switch format {
	case Gzip:
		c.home = &p.gzip
	case Deflate:
		c.home = &p.zlib
	case DeflateRaw:
		c.home = &p.flate
	default:
		return nil, errFormat(format)
	}
	if w, ok := c.home.Get().(resetter); ok {
		w.Reset(&c.out)
		c.w = w
		return c, nil
	}
	switch format {
	case Gzip:
		c.w = gzip.NewWriter(&c.out)
	case Deflate:
		c.w = zlib.NewWriter(&c.out)
	default:
		w, err := flate.NewWriter(&c.out, flate.DefaultCompression)
		if err != nil {
			return nil, err
		}
		c.w = w
	}
	return c, nil
}

// Step takes a piece of the data and gives what is ready of the compressed form; last says that no more follows, and is the
// end of the stream. What it gives is hardly longer than what it took since it last gave something.
func (c *Compressor) Step(in []byte, last bool) (out []byte, err error) {
	if c.w == nil {
		return nil, ErrClosed
	}
	if _, err = c.w.Write(in); err == nil && last {
		err = c.w.Close()
	}
	if err != nil {
		return nil, err
	}
	out = bytes.Clone(c.out.Bytes())
	c.out.Reset()
	if last {
		c.w.Reset(io.Discard)
		c.home.Put(c.w)
		c.w = nil
	}
	return out, nil
}
