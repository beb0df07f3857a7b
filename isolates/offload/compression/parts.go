package compression

import (
	"bytes"
	"errors"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
)

// Window is how much of what came before a part of a deflate stream refers to, in bytes.
const Window = 32 << 10

// MaxPart is the largest part that DeflatePart takes, in bytes.
const MaxPart = 1 << 20

// Checksums of a stream that is compressed in parts.
const (
	NoSum = iota
	CRC32
	Adler32
)

// writers has writers to use again, by level. Making one takes longer than compressing a page.
var writers [flate.BestCompression - flate.HuffmanOnly + 1]sync.Pool

// DeflatePart compresses a part of a deflate stream. before is the end of the parts before it, at most Window bytes.
// The part ends at a whole byte: a stream is its parts one after the other, and last ends it. sum is continued with the
// uncompressed bytes. level is -2 to 9, as zlib has them.
func DeflatePart(level int, before, part []byte, kind int, sum uint32, last bool) (out []byte, next uint32, err error) {
	if level < flate.HuffmanOnly || level > flate.BestCompression || len(before) > Window || len(part) > MaxPart {
		return nil, 0, fmt.Errorf("deflate takes parts of at most %d bytes, and levels from -2 to 9", MaxPart)
	}
	var b bytes.Buffer
	pool := &writers[level-flate.HuffmanOnly]
	w, ok := pool.Get().(*flate.Writer)
	if ok {
		w.ResetDict(&b, before)
	} else if w, err = flate.NewWriterDict(&b, level, before); err != nil {
		return nil, 0, err
	}
	defer func() {
		w.ResetDict(io.Discard, nil)
		pool.Put(w)
	}()
	if _, err = w.Write(part); err != nil {
		return nil, 0, err
	}
	if last {
		err = w.Close()
	} else {
		err = w.Flush()
	}
	switch kind {
	case CRC32:
		next = crc32.Update(sum, crc32.IEEETable, part)
	case Adler32:
		next = adlerFrom(sum, part)
	}
	return b.Bytes(), next, err
}

// adlerFrom continues the checksum of zlib.
func adlerFrom(sum uint32, b []byte) uint32 {
	const mod = 65521
	added, n := adler32.Checksum(b), uint32(len(b)%mod)
	low, high := sum&0xffff, sum>>16
	// The first sum of b alone begins with 1, and each of its bytes adds low - 1 to the second.
	s1 := (low + added&0xffff + mod - 1) % mod
	s2 := (uint64(high) + uint64(added>>16) + uint64(n)*uint64(low+mod-1)) % mod
	return uint32(s2)<<16 | s1
}

// Bounds of brotli: its best qualities take seconds for a megabyte, so what asks for them gets the best that does not.
const (
	MaxBrotli        = 4 << 20 // bytes to compress
	MaxBrotliQuality = 9
	BrotliMemory     = 24 << 20 // bytes that a writer or a reader holds
)

// Brotli compresses data. It calls goOn between pieces. window is 0, or the logarithm of the window's size.
func Brotli(quality, window int, data []byte, goOn func() error) ([]byte, error) {
	known := quality >= 0 && quality <= brotli.BestCompression && (window == 0 || window >= 10 && window <= 24)
	if !known || len(data) > MaxBrotli {
		return nil, fmt.Errorf("brotli takes at most %d bytes, and qualities from 0 to 11", MaxBrotli)
	}
	var b bytes.Buffer
	w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: min(quality, MaxBrotliQuality), LGWin: min(window, 22)})
	for len(data) > 0 {
		if err := goOn(); err != nil {
			return nil, err
		}
		n := min(len(data), 64<<10)
		if _, err := w.Write(data[:n]); err != nil {
			return nil, err
		}
		data = data[n:]
	}
	err := w.Close()
	return b.Bytes(), err
}

// ErrTooMuch is the error of Decompress if the result is longer than it may be.
var ErrTooMuch = errors.New("the decompressed data is longer than it may be")

// Decompress returns the content of data, at most limit bytes. likely is how long it may be. partly says that data may
// end too early. It calls goOn at least once for each 32 KB of data, which may have no content. An error of goOn ends
// the work.
func Decompress(format string, data []byte, likely, limit int, partly bool, goOn func() error) (out []byte, err error) {
	d := &Decompressor{format: format, in: data, last: true, goOn: goOn}
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("decompression failed: %v", failed)
		}
		if d.stopped != nil { // the libraries may have another error for it
			out, err = nil, d.stopped
		}
	}()
	source := newSource(d)
	r, err := d.reader(source)
	if err != nil {
		if err = d.wrong(err); partly && errors.Is(err, ErrTruncated) {
			err = nil
		}
		return nil, err
	}
	defer func() { _ = r.Close() }()
	b := bytes.NewBuffer(make([]byte, 0, min(likely, limit)+bytes.MinRead))
	_, err = b.ReadFrom(io.LimitReader(r, int64(limit)+1))
	switch {
	case b.Len() > limit:
		return nil, ErrTooMuch
	case err != nil:
		if err = d.wrong(err); !partly || !errors.Is(err, ErrTruncated) {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
