package nodecrypto

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A hash in parts is the hash of all, for each hash that has a state.
func TestStatesOfHashes(t *testing.T) {
	t.Parallel()
	names := []string{"blake2b512", "blake2s256", "shake128", "shake256"}
	for name := range hashes {
		names = append(names, name)
	}
	data := bytes.Repeat([]byte("pinwheel"), 1000)
	for _, name := range names {
		whole, err := HashEnd(name, nil, data, 40)
		require.NoError(t, err, name)
		var state []byte
		for at := 0; at < len(data); at += 777 {
			state, err = HashUpdate(name, state, data[at:min(at+777, len(data))])
			require.NoError(t, err, name)
			require.LessOrEqual(t, len(state), 430, name)
		}
		parts, err := HashEnd(name, state, nil, 40)
		require.NoError(t, err, name)
		require.Equal(t, whole, parts, name)
	}
	_, err := HashUpdate("ripemd160", nil, nil)
	require.ErrorIs(t, err, errNoState)
	_, err = HashEnd("sha256", []byte("no state"), nil, 0)
	require.Error(t, err)
	_, err = HashEnd("shake128", nil, nil, MaxOutput+1)
	require.ErrorContains(t, err, "at most")
}

func TestHMACInParts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 5, 64, 65, 200} {
		key := bytes.Repeat([]byte{7}, n)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte("hello world"))
		state, err := HMACUpdate("sha256", key, nil, []byte("hello "))
		require.NoError(t, err)
		sum, err := HMACEnd("sha256", key, state, []byte("world"))
		require.NoError(t, err)
		require.Equal(t, mac.Sum(nil), sum, n)
	}
}

func TestPBKDF2InSteps(t *testing.T) {
	t.Parallel()
	const iterations = 2*stepIterations + 5
	want, err := pbkdf2.Key(sha256.New, "password", []byte("salt"), iterations, 40)
	require.NoError(t, err)
	have, err := PBKDF2("sha256", []byte("password"), []byte("salt"), iterations, 40, func() error { return nil })
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(have))
	stop := errors.New("stop")
	_, err = PBKDF2("sha256", nil, nil, iterations, 40, func() error { return stop })
	require.ErrorIs(t, err, stop)
	_, err = PBKDF2("sha512", nil, nil, 1<<31-1, 64, nil)
	require.ErrorContains(t, err, "too much work")
	_, err = PBKDF2Step("sha512", nil, nil, []byte("short"), 1, 5)
	require.ErrorContains(t, err, "no state")
}

// Parameters of scrypt that take too much are refused before anything is held.
func TestBoundsOfScrypt(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]int{
		{1 << 30, 8, 1}, {1 << 30, 1 << 30, 1 << 30}, {1 << 20, 8, 1}, {1 << 14, 8, 1 << 20}, {2, 1, 1 << 30}, {3, 8, 1},
		{0, 1, 1}, {-2, 8, 1}, {2, 0, 1}, {2, 1, 0}, {-1 << 62, -8, -1},
	} {
		_, err := Scrypt(nil, nil, c[0], c[1], c[2], 32)
		require.Error(t, err, "%v", c)
		require.Zero(t, ScryptMemory(c[0], c[1], c[2]), "%v", c)
		require.Zero(t, ScryptWork(c[0], c[1], c[2]), "%v", c)
	}
	require.Equal(t, 128*16384*8+128*8, ScryptMemory(16384, 8, 1))
	require.Positive(t, ScryptWork(16384, 8, 1))
	_, err := Scrypt(nil, nil, 16, 1, 1, MaxDerived+1)
	require.ErrorContains(t, err, "1 to")
	// The first and the last step of scrypt are bounded, too.
	_, err = Scrypt(nil, nil, 2, 8, 65536, MaxDerived)
	require.ErrorIs(t, err, errScrypt)
	_, err = Scrypt(nil, make([]byte, 4<<20), 2, 8, 65536, 32)
	require.ErrorIs(t, err, errScrypt)
	out, err := Scrypt(nil, nil, 16384, 8, 1, MaxDerived)
	require.NoError(t, err)
	require.Len(t, out, MaxDerived)
}

func TestBoundsOfHKDF(t *testing.T) {
	t.Parallel()
	_, err := HKDF("sha256", nil, nil, make([]byte, MaxInfo), 255*32)
	require.NoError(t, err)
	_, err = HKDF("sha256", nil, nil, make([]byte, MaxInfo+1), 32)
	require.ErrorContains(t, err, "info")
}
