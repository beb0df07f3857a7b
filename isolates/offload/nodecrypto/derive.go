package nodecrypto

import (
	"crypto/hkdf"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"golang.org/x/crypto/scrypt"
)

// MaxIterations bounds PBKDF2: iterations times the number of blocks of the result. It is about 4 s of a processor's
// time.
const MaxIterations = 20_000_000

// MaxDerived bounds the result of a derivation, in bytes.
const MaxDerived = 1 << 20

// stepIterations is how many iterations one step of PBKDF2 makes: at most about 15 ms.
const stepIterations = 1 << 15

// PBKDF2Step makes iterations of one block of PBKDF2, RFC 8018, 5.2: at most so many as a step may have, and at most
// count. state is what the last step of the block returned, and is empty before the first. It has the latest value and
// the sum of all.
func PBKDF2Step(name string, password, salt, state []byte, block uint32, count int) ([]byte, error) {
	h, err := newHash(name)
	if err != nil {
		return nil, err
	}
	mac, size := hmac.New(maker(name), password), h.Size()
	if len(state) == 0 {
		mac.Write(salt)
		mac.Write(binary.BigEndian.AppendUint32(nil, block))
		u := mac.Sum(nil)
		state, count = append(u, u...), count-1
	}
	if len(state) != 2*size {
		return nil, errors.New("this is no state of PBKDF2")
	}
	out := append([]byte(nil), state...)
	u, sum := out[:0:size], out[size:]
	u = u[:size]
	for range min(count, stepIterations) {
		mac.Reset()
		mac.Write(u)
		u = mac.Sum(u[:0])
		for j, x := range u {
			sum[j] ^= x
		}
	}
	return out, nil
}

// PBKDF2 derives n bytes. It calls goOn repeatedly. An error of goOn ends the work.
func PBKDF2(name string, password, salt []byte, iterations, n int, goOn func() error) ([]byte, error) {
	h, err := newHash(name)
	if err != nil {
		return nil, err
	}
	size := h.Size()
	blocks := (n + size - 1) / size
	if iterations < 1 || n < 0 || n > MaxDerived || blocks > MaxIterations/iterations {
		return nil, fmt.Errorf("PBKDF2 with %d iterations for %d bytes is too much work: iterations times blocks of %d bytes is at most %d",
			iterations, n, size, MaxIterations)
	}
	out := make([]byte, 0, blocks*size)
	for b := range blocks {
		var state []byte
		for left := iterations; left > 0; left -= stepIterations {
			if err := goOn(); err != nil {
				return nil, err
			}
			if state, err = PBKDF2Step(name, password, salt, state, uint32(b)+1, min(left, stepIterations)); err != nil {
				return nil, err
			}
		}
		out = append(out, state[size:]...)
	}
	return out[:n], nil
}

// MaxInfo is the longest info of HKDF, in bytes: each block of the result hashes all of it.
const MaxInfo = 1024

// HKDF derives n bytes, RFC 5869.
func HKDF(name string, key, salt, info []byte, n int) ([]byte, error) {
	h, err := newHash(name)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > 255*h.Size() {
		return nil, fmt.Errorf("HKDF with %s gives 1 to %d bytes", name, 255*h.Size())
	}
	if len(info) > MaxInfo {
		return nil, fmt.Errorf("the info of HKDF has at most %d bytes", MaxInfo)
	}
	return hkdf.Key(maker(name), key, salt, string(info), n)
}

// Bounds of scrypt: the bytes of its table, and all bytes that it goes through. Nothing can stop it, and so many take
// about a quarter of a second.
const (
	MaxScryptMemory = 64 << 20
	MaxScryptWork   = 256 << 20
)

var errScrypt = errors.New("these parameters of scrypt are too much work")

// ScryptMemory returns the bytes that scrypt holds with these parameters, and ScryptWork the least CPU time that it
// takes. Both are 0 for parameters that Scrypt refuses.
func ScryptMemory(n, r, p int) int {
	if checkScrypt(n, r, p) != nil {
		return 0
	}
	return 128*n*r + 128*r*p
}

// ScryptWork is described at ScryptMemory.
func ScryptWork(n, r, p int) time.Duration {
	if checkScrypt(n, r, p) != nil {
		return 0
	}
	return time.Duration(128*n*r*p>>20) * 500 * time.Microsecond
}

func checkScrypt(n, r, p int) error {
	const most = 1 << 30
	if n < 2 || n > most || bits.OnesCount(uint(n)) != 1 || r < 1 || r > most || p < 1 || p > most {
		return errors.New("these are no parameters of scrypt")
	}
	if n*r > MaxScryptMemory/128 || n*r > MaxScryptWork/128/p || r*p > MaxScryptMemory/128 {
		return errScrypt
	}
	return nil
}

// Scrypt derives size bytes, RFC 7914.
func Scrypt(password, salt []byte, n, r, p, size int) ([]byte, error) {
	if err := checkScrypt(n, r, p); err != nil {
		return nil, err
	}
	if size < 1 || size > MaxDerived {
		return nil, fmt.Errorf("scrypt gives 1 to %d bytes", MaxDerived)
	}
	// PBKDF2 begins and ends scrypt. It hashes the salt for each block of the table, and the table for each block of the
	// result.
	if (size+31)/32*(128*r*p) > MaxScryptWork || len(salt)*(4*r*p) > MaxScryptWork {
		return nil, errScrypt
	}
	return scrypt.Key(password, salt, n, r, p, size)
}
