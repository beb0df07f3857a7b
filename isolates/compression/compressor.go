package compression

import (
	"bytes"
	"fmt"
	"io"

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

// Compressor is a stream of data to compress. It holds about 1 MiB.
type Compressor struct {
	out bytes.Buffer
	w   io.WriteCloser
}

// NewCompressor begins a stream.
func NewCompressor(format string) (*Compressor, error) {
	c := &Compressor{}
	switch format {
	case Gzip:
		c.w = gzip.NewWriter(&c.out)
	case Deflate:
		c.w = zlib.NewWriter(&c.out)
	case DeflateRaw:
		w, err := flate.NewWriter(&c.out, flate.DefaultCompression)
		if err != nil {
			return nil, err
		}
		c.w = w
	default:
		return nil, errFormat(format)
	}
	return c, nil
}

// Step takes a piece of the data and gives what is ready of the compressed form; last says that no more follows. What it gives
// is hardly longer than what it took since it last gave something.
func (c *Compressor) Step(in []byte, last bool) (out []byte, err error) {
	if _, err = c.w.Write(in); err == nil && last {
		err = c.w.Close()
	}
	if err != nil {
		return nil, err
	}
	out = bytes.Clone(c.out.Bytes())
	c.out.Reset()
	return out, nil
}
