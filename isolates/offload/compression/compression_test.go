package compression_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pinwheel-run/pinwheel/isolates/offload/compression"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var formats = []string{compression.Gzip, compression.Deflate, compression.DeflateRaw}

func clock() time.Duration { return 0 }

// standard compresses with the standard library.
func standard(t testing.TB, format string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	switch format {
	case compression.Deflate:
		w = zlib.NewWriter(&out)
	case compression.DeflateRaw:
		var err error
		w, err = flate.NewWriter(&out, 6)
		require.NoError(t, err)
	}
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// inflate passes the pieces to a stream and collects the output. It stops at the first error.
func inflate(t testing.TB, d *compression.Decompressor, pieces ...[]byte) (out []byte, err error) {
	t.Helper()
	for i := 0; i <= len(pieces); i++ {
		var in []byte
		last := i == len(pieces)
		if !last {
			in = pieces[i]
		}
		for {
			a := d.Step(in, last)
			require.LessOrEqual(t, len(a.Out), compression.MaxOutput)
			out = append(out, a.Out...)
			if a.Err != nil {
				return out, a.Err
			}
			if !a.More {
				break
			}
			in = nil
		}
	}
	return out, nil
}

func open(t testing.TB, format string) *compression.Decompressor {
	t.Helper()
	d, err := compression.NewDecompressor(format, clock)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// cut cuts data at random.
func cut(r *rand.Rand, data []byte) (pieces [][]byte) {
	for len(data) > 0 {
		n := 1 + r.IntN(len(data))
		pieces = append(pieces, data[:n])
		data = data[n:]
	}
	return pieces
}

func TestWhatGoesInComesOut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var compressors compression.Compressors
	for _, format := range formats {
		for range 40 {
			data := make([]byte, r.IntN(300_000))
			for i := range data {
				data[i] = byte(r.IntN(1 + i%50))
			}
			out, err := inflate(t, open(t, format), cut(r, standard(t, format, data))...)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, out))
			c, err := compressors.New(format)
			require.NoError(t, err)
			var packed []byte
			pieces := append(cut(r, data), nil)
			for i, piece := range pieces {
				part, err := c.Step(piece, i == len(pieces)-1)
				require.NoError(t, err)
				packed = append(packed, part...)
			}
			_, err = c.Step(nil, true)
			require.ErrorIs(t, err, compression.ErrClosed)
			out, err = inflate(t, open(t, format), cut(r, packed)...)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, out))
		}
	}
}

// compress passes the pieces to a Compressor.
func compress(t testing.TB, format string, pieces ...[]byte) (out []byte) {
	t.Helper()
	var compressors compression.Compressors
	c, err := compressors.New(format)
	require.NoError(t, err)
	for i, piece := range append(pieces, nil) {
		part, err := c.Step(piece, i == len(pieces))
		require.NoError(t, err)
		out = append(out, part...)
	}
	return out
}

// Compressed data is at most one byte and one in a hundred longer than zlib's at its usual level. The numbers are
// zlib's, for deflate-raw.
func TestCompressedIsAsShortAsByZlib(t *testing.T) {
	for _, c := range []struct {
		data string
		zlib int
	}{
		{"", 2}, {"a", 3}, {"hello world", 13}, {strings.Repeat("abc", 30_000), 107}, {strings.Repeat("\x00", 100_000), 114},
		{records(10), 148}, {records(2000), 14159},
		{noise(16), 18}, {noise(200), 205}, {noise(1000), 1005}, {noise(16_000), 16005}, {noise(100_000), 100035},
	} {
		for format, more := range map[string]int{compression.DeflateRaw: 0, compression.Deflate: 6, compression.Gzip: 18} {
			for _, pieces := range [][][]byte{{[]byte(c.data)}, cut(rand.New(rand.NewPCG(1, 2)), []byte(c.data))} {
				out := compress(t, format, pieces...)
				require.LessOrEqual(t, len(out), c.zlib+more+1+c.zlib/100, "%.20q", c.data)
				back, err := inflate(t, open(t, format), out)
				require.NoError(t, err)
				require.Equal(t, c.data, string(back))
			}
		}
	}
}

// records returns JSON. noise returns data that cannot be compressed.
func records(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `{"id":%d,"name":"worker %d","tags":["a","b%d"],"score":%d.5},`, i, i*7%13, i%5, i*i%1009)
	}
	return out.String()
}

func noise(n int) string {
	r, out := rand.NewChaCha8([32]byte{}), make([]byte, n)
	_, _ = r.Read(out)
	return string(out)
}

// The last block is short, however long the data is.
func TestTheLastBlockOfLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 300 {
		data := make([]byte, n*n/3)
		for i := range data {
			data[i] = byte(r.IntN(1 + n%60))
		}
		for _, format := range formats {
			out := compress(t, format, data)
			want, err := reference(format, out)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, want), n)
		}
	}
}

func TestWrongDataIsSaidToBe(t *testing.T) {
	for _, format := range formats {
		whole := standard(t, format, []byte("some data"))
		for n := range whole {
			_, err := inflate(t, open(t, format), whole[:n])
			require.ErrorIs(t, err, compression.ErrTruncated, "%s %d", format, n)
		}
		whole2 := open(t, format).Step(whole, false)
		require.True(t, whole2.End, "the end is seen without being told")
		d := open(t, format)
		out, err := inflate(t, d, append(bytes.Clone(whole), 0))
		require.ErrorIs(t, err, compression.ErrTrailing)
		require.Equal(t, "some data", string(out))
		require.ErrorIs(t, d.Step([]byte{0}, false).Err, compression.ErrTrailing)
		_, err = inflate(t, open(t, format), whole, []byte{0})
		require.ErrorIs(t, err, compression.ErrTrailing)
	}
	var compressors compression.Compressors
	_, err := compressors.New("br")
	require.ErrorContains(t, err, "gzip, deflate or deflate-raw")
	_, err = compression.NewDecompressor("", clock)
	require.Error(t, err)
}

func TestCloseEndsAStream(t *testing.T) {
	bomb := standard(t, compression.Gzip, make([]byte, 50<<20))
	for _, steps := range []int{0, 1, 3} {
		d := open(t, compression.Gzip)
		for i := range steps {
			in := bomb
			if i > 0 {
				in = nil
			}
			a := d.Step(in, false)
			require.True(t, a.More)
			require.Len(t, a.Out, compression.MaxOutput)
		}
		d.Close()
		d.Close()
		require.Eventually(t, func() bool { return d.Step(nil, false).Err != nil }, time.Minute, time.Millisecond)
	}
}

// FuzzDecompress takes any input: a step never returns more than allowed, and data that the standard library accepts is
// accepted.
func FuzzDecompress(f *testing.F) {
	for i, format := range formats {
		f.Add(i, standard(f, format, []byte("some data, some data")), 5)
		f.Add(i, standard(f, format, nil), 1)
	}
	f.Add(0, []byte{}, 0)
	f.Fuzz(func(t *testing.T, kind int, data []byte, at int) {
		format := formats[uint(kind)%3]
		at = int(uint(at) % uint(len(data)+1))
		d, err := compression.NewDecompressor(format, clock)
		require.NoError(t, err)
		defer d.Close()
		out, err := inflate(t, d, data[:at], data[at:])
		want, wantErr := reference(format, data)
		require.Equal(t, wantErr == nil, err == nil, "%v, %v", wantErr, err)
		if err == nil {
			require.True(t, bytes.Equal(want, out))
		}
	})
}

// reference decompresses with the standard library, and requires that nothing is left over.
func reference(format string, data []byte) ([]byte, error) {
	in := bytes.NewReader(data)
	var r io.Reader
	var err error
	switch format {
	case compression.Gzip:
		var g *gzip.Reader
		if len(data) > 3 && data[3]&0xe0 != 0 {
			return nil, gzip.ErrHeader
		}
		if g, err = gzip.NewReader(in); err == nil {
			g.Multistream(false)
		}
		r = g
	case compression.Deflate:
		r, err = zlib.NewReader(in)
	default:
		r = flate.NewReader(in)
	}
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(r)
	if err == nil && in.Len() > 0 {
		err = compression.ErrTrailing
	}
	return out, err
}

func BenchmarkStep(b *testing.B) {
	data := make([]byte, 64<<10)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	packed := standard(b, compression.Gzip, data)
	var compressors compression.Compressors
	b.Run("compress/64K", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			c, err := compressors.New(compression.Gzip)
			require.NoError(b, err)
			_, err = c.Step(data, true)
			require.NoError(b, err)
		}
	})
	b.Run("compress/1K", func(b *testing.B) {
		b.SetBytes(1 << 10)
		for b.Loop() {
			c, err := compressors.New(compression.Gzip)
			require.NoError(b, err)
			_, err = c.Step(data[:1<<10], true)
			require.NoError(b, err)
		}
	})
	b.Run("decompress/64K", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			d, err := compression.NewDecompressor(compression.Gzip, clock)
			require.NoError(b, err)
			_, err = inflate(b, d, packed)
			require.NoError(b, err)
		}
	})
}

// A stream that is closed during a step ends without an error: no one would read it.
func TestCloseIsNoFaultOfTheData(t *testing.T) {
	for _, format := range formats {
		some := standard(t, format, []byte(noise(1000)))[:500] // incomplete: the stream waits for more
		for range 1000 {
			d := open(t, format)
			go d.Close()
			d.Step(some, false)
		}
	}
}
