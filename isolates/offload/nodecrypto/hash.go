package nodecrypto

import (
	"crypto"
	"crypto/hmac"
	_ "crypto/md5"    //nolint:gosec // part of Node's crypto
	_ "crypto/sha1"   //nolint:gosec // part of Node's crypto
	_ "crypto/sha256" // of hashes
	"crypto/sha3"
	_ "crypto/sha512" // of hashes
	"encoding"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/blake2s"
	"golang.org/x/crypto/ripemd160" //nolint:gosec,staticcheck // part of Node's crypto
)

// hashes has the hashes by the names that isolates/js/node/crypto_hash.js gives them.
var hashes = map[string]crypto.Hash{
	"md5": crypto.MD5, "sha1": crypto.SHA1, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384,
	"sha512": crypto.SHA512, "sha512-224": crypto.SHA512_224, "sha512-256": crypto.SHA512_256,
	"sha3-224": crypto.SHA3_224, "sha3-256": crypto.SHA3_256, "sha3-384": crypto.SHA3_384, "sha3-512": crypto.SHA3_512,
}

var errNoState = errors.New("this hash has no state to keep")

// newHash returns the hash with that name. ripemd160 has no state: it hashes all its data in one call.
func newHash(name string) (hash.Hash, error) {
	if h, ok := hashes[name]; ok {
		return h.New(), nil
	}
	switch name {
	case "blake2b512":
		return blake2b.New512(nil)
	case "blake2s256":
		return blake2s.New256(nil)
	case "ripemd160":
		return ripemd160.New(), nil //nolint:gosec // part of Node's crypto
	}
	return nil, fmt.Errorf("unknown hash %q", name)
}

// xof returns the function of extendable output with that name, or nil.
func xof(name string) *sha3.SHAKE {
	switch name {
	case "shake128":
		return sha3.NewSHAKE128()
	case "shake256":
		return sha3.NewSHAKE256()
	}
	return nil
}

// resume gives a hash the state that it had. An empty state is the first one.
func resume(h any, state []byte) error {
	if len(state) == 0 {
		return nil
	}
	u, ok := h.(encoding.BinaryUnmarshaler)
	if !ok {
		return errNoState
	}
	return u.UnmarshalBinary(state)
}

// stateOf returns the state of a hash: at most 430 bytes, whatever was hashed.
func stateOf(h any) ([]byte, error) {
	m, ok := h.(encoding.BinaryMarshaler)
	if !ok {
		return nil, errNoState
	}
	return m.MarshalBinary()
}

// HashUpdate hashes data after what the state says, and returns the new state.
func HashUpdate(name string, state, data []byte) ([]byte, error) {
	var h io.Writer = xof(name)
	if h == (*sha3.SHAKE)(nil) {
		var err error
		if h, err = newHash(name); err != nil {
			return nil, err
		}
	}
	if err := resume(h, state); err != nil {
		return nil, err
	}
	_, _ = h.Write(data)
	return stateOf(h)
}

// MaxOutput is the longest output of a hash with extendable output, in bytes.
const MaxOutput = 1 << 20

// HashEnd hashes data after what the state says, and returns the hash of all. n is the length of the output where it
// can be chosen.
func HashEnd(name string, state, data []byte, n int) ([]byte, error) {
	if h := xof(name); h != nil {
		if n < 0 || n > MaxOutput {
			return nil, fmt.Errorf("the output has %d bytes: at most %d are given", n, MaxOutput)
		}
		if err := resume(h, state); err != nil {
			return nil, err
		}
		_, _ = h.Write(data)
		out := make([]byte, n)
		_, _ = h.Read(out)
		return out, nil
	}
	h, err := newHash(name)
	if err != nil {
		return nil, err
	}
	if err := resume(h, state); err != nil {
		return nil, err
	}
	h.Write(data)
	return h.Sum(nil), nil
}

// padded returns a key of HMAC as the block that a hash takes first.
func padded(h hash.Hash, key []byte, pad byte) []byte {
	block := make([]byte, h.BlockSize())
	if len(key) > len(block) {
		h.Reset()
		h.Write(key)
		copy(block, h.Sum(nil))
		h.Reset()
	} else {
		copy(block, key)
	}
	for i := range block {
		block[i] ^= pad
	}
	return block
}

// inner returns the inner hash of HMAC with this state.
func inner(name string, key, state []byte) (hash.Hash, error) {
	h, err := newHash(name)
	if err != nil {
		return nil, err
	}
	if len(state) == 0 {
		h.Write(padded(h, key, 0x36))
		return h, nil
	}
	return h, resume(h, state)
}

// HMACUpdate takes data after what the state says, and returns the new state.
func HMACUpdate(name string, key, state, data []byte) ([]byte, error) {
	h, err := inner(name, key, state)
	if err != nil {
		return nil, err
	}
	h.Write(data)
	return stateOf(h)
}

// HMACEnd takes data after what the state says, and returns the message authentication code of all.
func HMACEnd(name string, key, state, data []byte) ([]byte, error) {
	if len(state) == 0 {
		if _, err := newHash(name); err != nil {
			return nil, err
		}
		mac := hmac.New(maker(name), key)
		mac.Write(data)
		return mac.Sum(nil), nil
	}
	h, err := inner(name, key, state)
	if err != nil {
		return nil, err
	}
	h.Write(data)
	sum := h.Sum(nil)
	h.Reset()
	h.Write(padded(h, key, 0x5c))
	h.Write(sum)
	return h.Sum(nil), nil
}

// maker returns the constructor of a hash that newHash knows.
func maker(name string) func() hash.Hash {
	return func() hash.Hash {
		h, _ := newHash(name)
		return h
	}
}

// CRC32 continues the checksum of gzip with data.
func CRC32(sum uint32, data []byte) uint32 { return crc32.Update(sum, crc32.IEEETable, data) }
