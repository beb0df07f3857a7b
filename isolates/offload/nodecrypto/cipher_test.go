package nodecrypto

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/chacha20poly1305"
)

// GCM in parts of all sizes gives what Go's GCM gives at once.
func TestGCMInParts(t *testing.T) {
	t.Parallel()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	for _, ivLen := range []int{1, 12, 16, 60} {
		for _, n := range []int{0, 1, 15, 16, 17, 2047, 2048, 2049, 5000, 40000} {
			for _, step := range []int{1 << 20, 4097, 2064, 100, 7} {
				iv, data, additional := bytes.Repeat([]byte{3}, ivLen), make([]byte, n), make([]byte, n%70)
				if ivLen == 16 {
					iv = []byte{0x2c, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
				}
				_, _ = rand.Read(data)
				_, _ = rand.Read(additional)
				aead, err := cipher.NewGCMWithNonceSize(block, ivLen)
				require.NoError(t, err)
				want := aead.Seal(nil, iv, data, additional)
				var state, have, back, out []byte
				for at := 0; at < len(additional); at += step {
					state, err = GCMAdditional(key, iv, state, additional[at:min(at+step, len(additional))])
					require.NoError(t, err)
				}
				reader := state
				for at := 0; at < n; at += step {
					out, state, err = GCMUpdate(true, key, iv, state, data[at:min(at+step, n)])
					require.NoError(t, err)
					have = append(have, out...)
					out, reader, err = GCMUpdate(false, key, iv, reader, out)
					require.NoError(t, err)
					back = append(back, out...)
				}
				tag, err := GCMTag(key, iv, state)
				require.NoError(t, err)
				require.Equal(t, want, append(have, tag...), "iv of %d, %d bytes in steps of %d", ivLen, n, step)
				again, err := GCMTag(key, iv, reader)
				require.NoError(t, err)
				require.Equal(t, tag, again)
				require.True(t, bytes.Equal(data, back))
			}
		}
	}
	_, _, err = GCMUpdate(true, key, []byte{1}, []byte("short"), nil)
	require.ErrorContains(t, err, "no state")
	_, err = GCMAdditional(key, nil, nil, nil)
	require.Error(t, err)
}

// The counter of 32 bits wraps.
func TestGCMCounterWraps(t *testing.T) {
	t.Parallel()
	key := make([]byte, 16)
	g, err := newGCM(key, make([]byte, 12))
	require.NoError(t, err)
	copy(g.first[12:], []byte{0xff, 0xff, 0xff, 0xfd})
	whole := g.xor(0, make([]byte, 100))
	var parts []byte
	for at := 0; at < 100; at += 9 {
		parts = append(parts, g.xor(uint64(at), make([]byte, min(9, 100-at)))...)
	}
	require.Equal(t, whole, parts)
	copy(g.first[12:], []byte{0xff, 0xff, 0xff, 0xff}) // the next is 0
	require.Equal(t, whole[2*16:], g.xor(0, make([]byte, 68)))
}

func TestStreamCiphersInParts(t *testing.T) {
	t.Parallel()
	key, data := bytes.Repeat([]byte{7}, 32), make([]byte, 1000)
	aead, err := chacha20poly1305.New(key)
	require.NoError(t, err)
	nonce, counter := make([]byte, 12), bytes.Repeat([]byte{255}, 16)
	want := aead.Seal(nil, nonce, data, []byte("more"))
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	wantCTR := make([]byte, len(data))
	cipher.NewCTR(block, counter).XORKeyStream(wantCTR, data)
	var have, haveCTR []byte
	for at := 0; at < len(data); at += 77 {
		part := data[at:min(at+77, len(data))]
		out, err := ChaCha20(key, nonce, uint64(at), part)
		require.NoError(t, err)
		have = append(have, out...)
		out, err = CTR(key, counter, uint64(at), part)
		require.NoError(t, err)
		haveCTR = append(haveCTR, out...)
	}
	tag, err := Poly1305(key, nonce, []byte("more"), have)
	require.NoError(t, err)
	require.Equal(t, want, append(have, tag...))
	require.Equal(t, wantCTR, haveCTR)
	_, err = ChaCha20(key, nonce, 1<<38-64, data)
	require.ErrorContains(t, err, "too long")
	_, err = CTR(key, nil, 0, data)
	require.Error(t, err)
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	key, data := make([]byte, 24), bytes.Repeat([]byte("0123456789abcdef"), 3)
	for _, iv := range [][]byte{nil, make([]byte, 16)} {
		out, err := Blocks(true, key, iv, data)
		require.NoError(t, err)
		back, err := Blocks(false, key, iv, out)
		require.NoError(t, err)
		require.Equal(t, data, back)
		_, err = Blocks(true, key, iv, data[:5])
		require.ErrorIs(t, err, errBlocks)
	}
	_, err := Blocks(true, key[:5], nil, nil)
	require.Error(t, err)
}
