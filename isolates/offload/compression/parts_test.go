package compression

import (
	"bytes"
	"hash/adler32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/stretchr/testify/require"
)

func always() error { return nil }

// Parts of a deflate stream, one after the other, are a stream, on each level.
func TestDeflateInParts(t *testing.T) {
	t.Parallel()
	data := make([]byte, 150000)
	for i := range data {
		data[i] = byte(rand.IntN(1 + i%50))
	}
	for level := -2; level <= 9; level++ {
		for _, step := range []int{1000, 40000, 150000} {
			var all []byte
			sum := uint32(1)
			for at := 0; at < len(data); at += step {
				to := min(at+step, len(data))
				out, next, err := DeflatePart(level, data[max(0, at-Window):at], data[at:to], Adler32, sum, to == len(data))
				require.NoError(t, err)
				all, sum = append(all, out...), next
			}
			back, err := io.ReadAll(flate.NewReader(bytes.NewReader(all)))
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, back), "level %d in steps of %d", level, step)
			require.Equal(t, adler32.Checksum(data), sum)
		}
	}
	_, _, err := DeflatePart(10, nil, nil, NoSum, 0, true)
	require.Error(t, err)
	_, _, err = DeflatePart(6, make([]byte, Window+1), nil, NoSum, 0, true)
	require.Error(t, err)
}

// What is decompressed at once ends at its bound, and holds no more.
func TestDecompressBounds(t *testing.T) {
	t.Parallel()
	raw, _, err := DeflatePart(6, nil, make([]byte, MaxPart), NoSum, 0, true)
	require.NoError(t, err)
	out, err := Decompress(InflateRaw, raw, 10, MaxPart, false, always)
	require.NoError(t, err)
	require.Len(t, out, MaxPart)
	_, err = Decompress(InflateRaw, raw, 10, MaxPart-1, false, always)
	require.ErrorIs(t, err, ErrTooMuch)
	_, err = Decompress(InflateRaw, raw[:len(raw)-5], 10, MaxPart, false, always)
	require.ErrorIs(t, err, ErrTruncated)
	_, err = Decompress(InflateRaw, raw[:len(raw)-5], 10, MaxPart, true, always)
	require.NoError(t, err)
}

func TestBrotliBounds(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("abcdefg "), 20000)
	small, err := Brotli(11, 24, data, always)
	require.NoError(t, err)
	out, err := Decompress(BrotliFormat, small, 0, len(data), false, always)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, out))
	_, err = Brotli(5, 0, make([]byte, MaxBrotli+1), always)
	require.ErrorContains(t, err, "at most")
	_, err = Brotli(5, 0, data, func() error { return io.ErrClosedPipe })
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// Data that has no content is work all the same, between whose parts it can end.
func TestDecompressAsksWhetherToGoOn(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 200<<10)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	brotli, err := Brotli(5, 0, noise, always)
	require.NoError(t, err)
	for format, data := range map[string][]byte{
		InflateRaw: bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 40<<10), BrotliFormat: brotli,
	} {
		asked := 0
		_, err := Decompress(format, data, 0, 1<<20, true, func() error { asked++; return nil })
		require.NoError(t, err)
		require.GreaterOrEqual(t, asked, len(data)/maxRead, format)
		for _, partly := range []bool{true, false} {
			left := 3
			out, err := Decompress(format, data, 0, 1<<20, partly, func() error {
				if left--; left < 0 {
					return io.ErrClosedPipe
				}
				return nil
			})
			require.ErrorIs(t, err, io.ErrClosedPipe, format)
			require.Nil(t, out)
		}
	}
}

func FuzzDecompressAtOnce(f *testing.F) {
	raw, _, err := DeflatePart(6, nil, []byte("hello hello"), NoSum, 0, true)
	require.NoError(f, err)
	for _, format := range []string{Gunzip, Inflate, InflateRaw, Unzip, BrotliFormat} {
		f.Add(format, raw)
	}
	f.Add(Unzip, []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0})
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		out, err := Decompress(format, data, 0, 1<<16, false, always)
		if err == nil && len(out) > 1<<16 {
			t.Fatal("more than the bound")
		}
	})
}
