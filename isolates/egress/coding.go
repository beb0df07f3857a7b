package egress

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// coderBytes is about what a decoder of Brotli or Zstandard keeps of what it has decoded, and at most (RFC 8878 §7).
const coderBytes = 8 << 20

// Coding returns the coding of bodies with these values of Content-Encoding, or "". Bodies with any other are passed as
// they come.
func Coding(values ...string) string {
	if len(values) != 1 {
		return ""
	}
	switch c := strings.ToLower(strings.TrimSpace(values[0])); c {
	case "gzip", "deflate", "br", "zstd":
		return c
	case "x-gzip":
		return "gzip"
	}
	return ""
}

// CodingOf is Coding of a list of names and values.
func CodingOf(headers []string) string {
	var values []string
	for i := 0; i+1 < len(headers); i += 2 {
		if strings.EqualFold(headers[i], "Content-Encoding") {
			values = append(values, headers[i+1])
		}
	}
	return Coding(values...)
}

// codingOf returns the coding of the body of a response. A part of a body cannot be decoded.
func codingOf(resp *http.Response) string {
	if resp.Body == http.NoBody || resp.StatusCode == http.StatusPartialContent {
		return ""
	}
	return Coding(resp.Header.Values("Content-Encoding")...)
}

// decoder decodes a body. It reads nothing before the first Read.
type decoder struct {
	coding string
	body   source
	from   *bufio.Reader
	to     io.Reader // nil until the first byte has come
	free   func()
}

// source notes why a body ended.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.err = err
	return n, err
}

func newDecoder(coding string, body io.Reader) *decoder {
	d := &decoder{coding: coding, body: source{Reader: body}, free: func() {}}
	d.from = bufio.NewReader(&d.body)
	return d
}

// notCoded is the error of a body that is not in its coding.
type notCoded string

func (e notCoded) Error() string { return "not " + string(e) }

func (d *decoder) Read(p []byte) (n int, err error) {
	if d.to == nil {
		if _, err := d.from.Peek(1); err != nil { // no body at all
			return 0, err
		}
		err = d.open()
	}
	if err == nil {
		n, err = d.to.Read(p)
	}
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case d.body.err != nil && !errors.Is(d.body.err, io.EOF):
		return n, d.body.err
	}
	return n, notCoded(d.coding)
}

func (d *decoder) open() (err error) {
	switch d.coding {
	case "gzip":
		d.to, err = gzip.NewReader(d.from)
	case "deflate": // some servers leave out the header of zlib
		if b, _ := d.from.Peek(2); len(b) == 2 && b[0]&15 == 8 && (int(b[0])<<8|int(b[1]))%31 == 0 {
			d.to, err = zlib.NewReader(d.from)
		} else {
			d.to = flate.NewReader(d.from)
		}
	case "br":
		d.to = brotli.NewReader(d.from)
	case "zstd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(d.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(coderBytes))
		if err == nil {
			d.to, d.free = z, z.Close
		}
	}
	return err
}

// passCoded passes a body that comes in a coding: as it comes to a reader that takes it so, and otherwise decoded.
func passCoded(ctx context.Context, coding string, body io.Reader, from string, to Receiver) error {
	if to.Coding(ctx) == coding {
		return passBody(ctx, body, from, to)
	}
	if (coding == "br" || coding == "zstd") && !to.Grow(coderBytes) {
		return fmt.Errorf("the body of the response from %s is %s, and there are no %d bytes to decode it", from, coding, coderBytes)
	}
	return passDecoded(ctx, newDecoder(coding, body), from, to)
}

// passDecoded passes what d decodes.
func passDecoded(ctx context.Context, d *decoder, from string, to Receiver) error {
	defer func() { d.free() }()
	return passBody(ctx, metered{d, to}, from, to)
}

// metered reports the CPU time of a decoder.
type metered struct {
	*decoder
	to Receiver
}

// Read decodes on one thread, whose CPU time is measured. Waiting for the server takes none.
func (m metered) Read(p []byte) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := perowner.ThreadTime()
	n, err := m.decoder.Read(p)
	m.to.Spent(perowner.ThreadTime() - began)
	return n, err
}
