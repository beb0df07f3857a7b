package compression

import (
	"bufio"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// The formats that Node's zlib reads. What follows the data is ignored, but for what
// begins another gzip.
const (
	Gunzip       = "gunzip" // one gzip after the other
	Inflate      = "inflate"
	InflateRaw   = "inflate-raw"
	Unzip        = "unzip" // Gunzip or Inflate, as the data begins
	BrotliFormat = "brotli"
)

// isNodes reports whether the format is one of Node's.
func isNodes(format string) bool {
	switch format {
	case Gunzip, Inflate, InflateRaw, Unzip, BrotliFormat:
		return true
	}
	return false
}

// Holds returns how many bytes a Compressor or Decompressor of the format holds.
func Holds(format string) int {
	if format == BrotliFormat {
		return BrotliMemory
	}
	return 5 << 18
}

// nodes returns the reader of one of Node's formats.
func nodes(format string, source *bufio.Reader) (io.ReadCloser, error) {
	if format == Unzip {
		format = Inflate
		if head, err := source.Peek(2); err == nil && isGzip(head) {
			format = Gunzip
		}
	}
	switch format {
	case Gunzip:
		if err := checkMagic(source); err != nil {
			return nil, err
		}
		r, err := gzip.NewReader(source)
		if err != nil {
			return nil, err
		}
		r.Multistream(false)
		return &members{r, source}, nil
	case Inflate:
		return zlib.NewReader(source)
	}
	return io.NopCloser(&brotliReader{brotli.NewReader(ending{source})}), nil
}

// ending is a source whose end is io.EOF, by which a brotli.Reader sees whether its data is whole.
type ending struct{ *bufio.Reader }

func (e ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// brotliReader ignores what follows the data.
type brotliReader struct{ *brotli.Reader }

func (r *brotliReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err.Error() == "brotli: excessive input" {
		err = io.EOF
	}
	return n, err
}

// checkMagic returns an error if what comes is not the beginning of a gzip, as short as it may be.
func checkMagic(source *bufio.Reader) error {
	head, err := source.Peek(2)
	if errors.Is(err, ErrClosed) {
		return err
	}
	if len(head) > 0 && head[0] != 0x1f || len(head) > 1 && head[1] != 0x8b {
		return gzip.ErrHeader
	}
	return nil
}

func isGzip(head []byte) bool { return head[0] == 0x1f && head[1] == 0x8b }

// members reads one gzip after the other.
type members struct {
	*gzip.Reader
	source *bufio.Reader
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.Reader.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		head, err := m.source.Peek(1)
		switch {
		case errors.Is(err, ErrClosed):
			return 0, err
		case err != nil || head[0] == 0: // zeros fill the space after an archive
			return 0, io.EOF
		}
		if err := checkMagic(m.source); err != nil {
			return 0, err
		}
		if err := m.Reset(m.source); err != nil {
			return 0, err
		}
		m.Multistream(false)
	}
}
