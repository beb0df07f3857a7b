package nodecrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"math/bits"

	"golang.org/x/crypto/chacha20"
	"golang.org/x/crypto/poly1305" //nolint:staticcheck // for the tag of what was encrypted in parts
)

var errBlocks = errors.New("wrong final block length")

// Blocks encrypts or decrypts whole blocks with AES: as ECB if iv is empty, else as CBC.
func Blocks(encrypt bool, key, iv, data []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if len(data)%aes.BlockSize != 0 || len(iv) != 0 && len(iv) != aes.BlockSize {
		return nil, errBlocks
	}
	out := make([]byte, len(data))
	switch {
	case len(iv) > 0 && encrypt:
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, data)
	case len(iv) > 0:
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, data)
	default:
		for at := 0; at < len(data); at += aes.BlockSize {
			if encrypt {
				block.Encrypt(out[at:], data[at:])
			} else {
				block.Decrypt(out[at:], data[at:])
			}
		}
	}
	return out, nil
}

// CTR encrypts or decrypts data, which begins at a byte of the stream. counter is that of its first block.
func CTR(key, counter []byte, at uint64, data []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if len(counter) != aes.BlockSize {
		return nil, errors.New("the counter has a wrong length")
	}
	var from [aes.BlockSize]byte
	low, carry := bits.Add64(binary.BigEndian.Uint64(counter[8:]), at/aes.BlockSize, 0)
	binary.BigEndian.PutUint64(from[8:], low)
	binary.BigEndian.PutUint64(from[:], binary.BigEndian.Uint64(counter)+carry)
	skip := int(at % aes.BlockSize)
	out := make([]byte, skip+len(data))
	copy(out[skip:], data)
	cipher.NewCTR(block, from[:]).XORKeyStream(out, out)
	return out[skip:], nil
}

// ChaCha20 encrypts or decrypts data of ChaCha20-Poly1305, which begins at a byte of the stream.
func ChaCha20(key, nonce []byte, at uint64, data []byte) ([]byte, error) {
	const size = 64
	c, err := chacha20.NewUnauthenticatedCipher(key, nonce)
	if err != nil {
		return nil, err
	}
	first, skip := at/size+1, int(at%size)
	if len(nonce) != chacha20.NonceSize || first+uint64(skip+len(data)+size-1)/size > 1<<32-1 {
		return nil, errors.New("the data is too long for the cipher")
	}
	c.SetCounter(uint32(first))
	out := make([]byte, skip+len(data))
	copy(out[skip:], data)
	c.XORKeyStream(out, out)
	return out[skip:], nil
}

// Poly1305 returns the tag of ChaCha20-Poly1305, RFC 8439, 2.8.
func Poly1305(key, nonce, additional, encrypted []byte) ([]byte, error) {
	c, err := chacha20.NewUnauthenticatedCipher(key, nonce)
	if err != nil {
		return nil, err
	}
	var once [32]byte
	c.XORKeyStream(once[:], once[:])
	mac := poly1305.New(&once)
	for _, b := range [][]byte{additional, encrypted} {
		_, _ = mac.Write(b)
		_, _ = mac.Write(make([]byte, (16-len(b)%16)%16))
	}
	lengths := binary.LittleEndian.AppendUint64(nil, uint64(len(additional)))
	_, _ = mac.Write(binary.LittleEndian.AppendUint64(lengths, uint64(len(encrypted))))
	return mac.Sum(nil), nil
}
