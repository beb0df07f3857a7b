package compression

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/bits"
	"sync"
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

// Compressors makes Compressors, and reuses the writers of finished ones: making a writer takes longer than compressing
// a page. Its zero value is ready to use, by any goroutine.
type Compressors struct{ gzip, zlib, flate sync.Pool }

// resetter is the common interface of the writers of all formats.
type resetter interface {
	io.WriteCloser
	Reset(w io.Writer)
}

// Compressor is a stream of data to compress. It holds about 1 MiB.
type Compressor struct {
	out  bytes.Buffer
	w    resetter // nil after the end of the stream
	home *sync.Pool

	head, tail int // bytes of the format before and after the deflate stream; head without returned bytes
	total      int // bytes taken so far; exact only up to oneBlock
}

// oneBlock is a number of bytes that always fit in one block of a deflate stream. The library starts another block
// after that many tokens, and a byte is at most one token.
const oneBlock = 1<<14 - 1

// New starts a stream.
func (p *Compressors) New(format string) (*Compressor, error) {
	c := &Compressor{}
	switch format {
	case Gzip:
		c.home, c.head, c.tail = &p.gzip, 10, 8
	case Deflate:
		c.home, c.head, c.tail = &p.zlib, 2, 4
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

// Step takes a piece of the data and returns the compressed bytes that are ready. last says that no more data follows,
// and ends the stream. The output is hardly longer than the input since the last output.
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
	c.total = min(c.total+len(in), oneBlock+1)
	out = bytes.Clone(c.out.Bytes())
	c.out.Reset()
	if !last {
		c.head = max(0, c.head-len(out))
		return out, nil
	}
	c.w.Reset(io.Discard)
	c.home.Put(c.w)
	c.w = nil
	return c.ended(out), nil
}

// ended returns the end of a stream with another last block. The library ends a stream with an empty block of up to
// seven bytes. zlib does not. For a few bytes of data that is much.
func (c *Compressor) ended(out []byte) []byte {
	stream, tail := out[:len(out)-c.tail], out[len(out)-c.tail:]
	// The empty block has the bit BFINAL, the kind 00, zeros up to a byte boundary, its length, and the complement of
	// the length. BFINAL is the last bit set before the length.
	end := len(stream) - 4
	for stream[end-1] == 0 {
		end--
	}
	bit := bits.Len8(stream[end-1]) - 1
	if c.total > 0 && c.total <= oneBlock { // the previous block is the first, and becomes the last
		stream[c.head] |= 1
		if stream[end-1] &^= 1 << bit; bit == 0 {
			end--
		}
		return append(stream[:end:end], tail...)
	}
	// Use kind 01 instead: an empty block of that kind has ten bits.
	stream = append(stream[:end:end], 0, 0)
	if bit < 7 {
		stream[end-1] |= 2 << bit
	} else {
		stream[end] = 1
	}
	return append(stream[:end-1+(bit+10+7)/8], tail...)
}
