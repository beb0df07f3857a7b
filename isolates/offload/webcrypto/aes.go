package webcrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

var errDecrypt = errors.New("the data was not encrypted with this key and these parameters")

// EncryptCBC encrypts with PKCS #7 padding. The iv has 16 bytes.
func EncryptCBC(key, iv, data []byte) ([]byte, error) {
	block, err := newCBC(key, iv)
	if err != nil {
		return nil, err
	}
	pad := aes.BlockSize - len(data)%aes.BlockSize
	out := make([]byte, len(data)+pad)
	for i := copy(out, data); i < len(out); i++ {
		out[i] = byte(pad)
	}
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, out)
	return out, nil
}

// DecryptCBC reverses EncryptCBC.
func DecryptCBC(key, iv, data []byte) ([]byte, error) {
	block, err := newCBC(key, iv)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, errDecrypt
	}
	out := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, data)
	// The padding is checked in constant time: the way in which it is wrong must not show.
	pad := int(out[len(out)-1])
	good := subtle.ConstantTimeLessOrEq(1, pad) & subtle.ConstantTimeLessOrEq(pad, aes.BlockSize)
	for i := 1; i <= aes.BlockSize; i++ {
		inside := subtle.ConstantTimeLessOrEq(i, pad)
		same := subtle.ConstantTimeByteEq(out[len(out)-i], byte(pad))
		good &= subtle.ConstantTimeSelect(inside, same, 1)
	}
	if good != 1 {
		return nil, errDecrypt
	}
	return out[:len(out)-pad], nil
}

func newCBC(key, iv []byte) (cipher.Block, error) {
	if len(iv) != aes.BlockSize {
		return nil, fmt.Errorf("the iv has %d bytes: it must have %d", len(iv), aes.BlockSize)
	}
	return aes.NewCipher(key)
}

// CTR encrypts or decrypts, which is the same operation. The last bits bits of the 16 bytes of counter are incremented,
// and wrap.
func CTR(key, counter []byte, bits int, data []byte) ([]byte, error) {
	if len(counter) != aes.BlockSize {
		return nil, fmt.Errorf("the counter has %d bytes: it must have %d", len(counter), aes.BlockSize)
	}
	if bits < 1 || bits > 128 {
		return nil, fmt.Errorf("the length of the counter is %d bits: it is 1 to 128", bits)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	blocks := (int64(len(data)) + aes.BlockSize - 1) / aes.BlockSize
	if bits < 63 && blocks > 1<<bits {
		return nil, errors.New("the data is longer than the counter can count")
	}
	out := make([]byte, len(data))
	first := len(data) // bytes until the counter wraps
	left := untilWrap(counter, bits)
	if left.IsInt64() && left.Int64() < blocks {
		first = int(left.Int64()) * aes.BlockSize
	}
	cipher.NewCTR(block, counter).XORKeyStream(out[:first], data[:first])
	if first < len(data) {
		cipher.NewCTR(block, wrapped(counter, bits)).XORKeyStream(out[first:], data[first:])
	}
	return out, nil
}

// untilWrap returns the number of blocks until the counting bits are all zero again.
func untilWrap(counter []byte, bits int) *big.Int {
	most := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	at := new(big.Int).SetBytes(counter)
	at.And(at, new(big.Int).Sub(most, big.NewInt(1)))
	return most.Sub(most, at)
}

// wrapped returns the counter with its counting bits set to zero.
func wrapped(counter []byte, bits int) []byte {
	c := slices.Clone(counter)
	for i := range bits / 8 {
		c[len(c)-1-i] = 0
	}
	if rest := bits % 8; rest > 0 {
		c[len(c)-1-bits/8] &= 0xff << rest
	}
	return c
}

// maxTag is the length of a full GCM tag. Shorter tags are its beginning.
const maxTag = 16

func newGCM(key, iv []byte, tagBits int) (cipher.AEAD, error) {
	switch tagBits {
	case 32, 64, 96, 104, 112, 120, 128:
	default:
		return nil, fmt.Errorf("the tag has %d bits: it is 32, 64, 96, 104, 112, 120 or 128", tagBits)
	}
	if len(iv) == 0 {
		return nil, errors.New("the iv is empty")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithNonceSize(block, len(iv))
}

// EncryptGCM returns the ciphertext and then the tag.
func EncryptGCM(key, iv, additional []byte, tagBits int, data []byte) ([]byte, error) {
	gcm, err := newGCM(key, iv, tagBits)
	if err != nil {
		return nil, err
	}
	out := gcm.Seal(nil, iv, data, additional)
	return out[:len(data)+tagBits/8], nil
}

// DecryptGCM reverses EncryptGCM.
func DecryptGCM(key, iv, additional []byte, tagBits int, data []byte) ([]byte, error) {
	gcm, err := newGCM(key, iv, tagBits)
	if err != nil {
		return nil, err
	}
	n := len(data) - tagBits/8
	if n < 0 {
		return nil, errors.New("the data is shorter than its tag")
	}
	if tagBits/8 == maxTag {
		out, err := gcm.Open(nil, iv, data, additional)
		if err != nil {
			return nil, errDecrypt
		}
		return out, nil
	}
	// For a shorter tag: sealing the ciphertext returns the plaintext, and sealing the plaintext returns its full tag.
	plain := gcm.Seal(nil, iv, data[:n], nil)[:n]
	again := gcm.Seal(nil, iv, plain, additional)
	if subtle.ConstantTimeCompare(again[n:n+tagBits/8], data[n:]) != 1 {
		return nil, errDecrypt
	}
	return plain, nil
}

// kwIV is the initial value of RFC 3394, 2.2.3.1.
const kwIV = 0xa6a6a6a6a6a6a6a6

// WrapKW wraps a key with AES Key Wrap, RFC 3394. The key is a multiple of 8 bytes, at least 16.
func WrapKW(kek, key []byte) ([]byte, error) {
	if len(key)%8 != 0 || len(key) < 16 {
		return nil, fmt.Errorf("the key to wrap has %d bytes: AES-KW wraps multiples of 8, 16 or more", len(key))
	}
	block, err := aes.NewCipher(kek)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 8+len(key))
	copy(out[8:], key)
	n := uint64(len(key) / 8)
	var b [aes.BlockSize]byte
	binary.BigEndian.PutUint64(b[:8], kwIV)
	for t := uint64(1); t <= 6*n; t++ {
		r := out[8*(1+(t-1)%n):][:8]
		copy(b[8:], r)
		block.Encrypt(b[:], b[:])
		copy(r, b[8:])
		binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])^t)
	}
	copy(out, b[:8])
	return out, nil
}

// UnwrapKW reverses WrapKW.
func UnwrapKW(kek, data []byte) ([]byte, error) {
	if len(data)%8 != 0 || len(data) < 24 {
		return nil, errDecrypt
	}
	block, err := aes.NewCipher(kek)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(data[8:])
	n := uint64(len(out) / 8)
	var b [aes.BlockSize]byte
	copy(b[:8], data)
	for t := 6 * n; t >= 1; t-- {
		r := out[8*((t-1)%n):][:8]
		binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])^t)
		copy(b[8:], r)
		block.Decrypt(b[:], b[:])
		copy(r, b[8:])
	}
	var want [8]byte
	binary.BigEndian.PutUint64(want[:], kwIV)
	if subtle.ConstantTimeCompare(b[:8], want[:]) != 1 {
		return nil, errDecrypt
	}
	return out, nil
}
