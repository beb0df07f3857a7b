package webcrypto

import (
	"crypto/hkdf"
	"crypto/hmac"
	"encoding/binary"
	"fmt"
)

// MaxIterations bounds PBKDF2: iterations times the number of blocks of the result. It is about 4 s of a processor's
// time.
const MaxIterations = 20_000_000

// MaxDerived bounds the result of PBKDF2, in bytes.
const MaxDerived = 1 << 20

// checkEvery is the number of iterations after which PBKDF2 asks whether to continue: about half a millisecond.
const checkEvery = 2048

// maxInfoWork bounds what HKDF hashes of its info: about a quarter of a second, in which nothing can stop it.
const maxInfoWork = 256 << 20

// HKDF derives n bytes, RFC 5869.
func HKDF(hash string, key, salt, info []byte, n int) ([]byte, error) {
	h, err := hashOf(hash)
	if err != nil {
		return nil, err
	}
	if n > 255*h.Size() {
		return nil, fmt.Errorf("HKDF with %s gives at most %d bytes", hash, 255*h.Size())
	}
	if n == 0 {
		return []byte{}, nil
	}
	if (n+h.Size()-1)/h.Size()*len(info) > maxInfoWork {
		return nil, fmt.Errorf("HKDF hashes its info for each block of the result: at most %d bytes in all", maxInfoWork)
	}
	return hkdf.Key(h.New, key, salt, string(info), n)
}

// PBKDF2 derives n bytes, RFC 8018, 5.2. It calls goOn repeatedly. An error of goOn ends the work. (crypto/pbkdf2
// cannot be stopped, and this may run for seconds.)
func PBKDF2(hash string, password, salt []byte, iterations, n int, goOn func() error) ([]byte, error) {
	h, err := hashOf(hash)
	if err != nil {
		return nil, err
	}
	if iterations == 0 {
		return nil, fmt.Errorf("PBKDF2 with 0 iterations")
	}
	size := h.Size()
	blocks := (n + size - 1) / size
	if n > MaxDerived {
		return nil, fmt.Errorf("PBKDF2 gives at most %d bytes", MaxDerived)
	}
	if blocks*iterations > MaxIterations {
		return nil, fmt.Errorf("PBKDF2 with %d iterations for %d bytes is too much work: iterations times blocks of %d bytes is at most %d",
			iterations, n, size, MaxIterations)
	}
	mac := hmac.New(h.New, password)
	out := make([]byte, 0, blocks*size)
	u := make([]byte, 0, size)
	for b := uint32(1); len(out) < n; b++ {
		mac.Reset()
		mac.Write(salt)
		mac.Write(binary.BigEndian.AppendUint32(nil, b))
		at := len(out)
		out = mac.Sum(out)
		block := out[at:]
		u = append(u[:0], block...)
		for i := 1; i < iterations; i++ {
			if i%checkEvery == 0 {
				if err := goOn(); err != nil {
					return nil, err
				}
			}
			mac.Reset()
			mac.Write(u)
			u = mac.Sum(u[:0])
			for j, x := range u {
				block[j] ^= x
			}
		}
		if err := goOn(); err != nil {
			return nil, err
		}
	}
	return out[:n], nil
}
