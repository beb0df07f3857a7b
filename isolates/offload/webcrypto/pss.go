package webcrypto

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/subtle"
	"encoding/binary"
	"math/big"
)

// RSA-PSS without a salt, RFC 8017, 8.1 and 9.1. In crypto/rsa a salt length of 0 means something else.

// signUnsalted signs a digest. It blinds the exponentiation, because the time of math/big's exponentiation depends on
// its input.
func signUnsalted(h crypto.Hash, key *rsa.PrivateKey, digest []byte) ([]byte, error) {
	encoded, ok := encodeUnsalted(h, digest, key.N.BitLen()-1)
	if !ok {
		return nil, errSalt
	}
	m := new(big.Int).SetBytes(encoded)
	e := big.NewInt(int64(key.E))
	for {
		r, err := rand.Int(rand.Reader, key.N)
		if err != nil {
			return nil, err
		}
		inverse := new(big.Int).ModInverse(r, key.N)
		if inverse == nil {
			continue
		}
		s := new(big.Int).Exp(r, e, key.N)
		s.Mod(s.Mul(s, m), key.N)
		s.Exp(s, key.D, key.N)
		s.Mod(s.Mul(s, inverse), key.N)
		if new(big.Int).Exp(s, e, key.N).Cmp(m) != 0 {
			return nil, errSalt // cannot happen, but a wrong signature would reveal the key
		}
		return s.FillBytes(make([]byte, key.Size())), nil
	}
}

func verifyUnsalted(h crypto.Hash, key *rsa.PublicKey, digest, signature []byte) bool {
	s := new(big.Int).SetBytes(signature)
	if key.N.BitLen() < MinRSABits || len(signature) != key.Size() || s.Cmp(key.N) >= 0 {
		return false
	}
	bits := key.N.BitLen() - 1
	m := s.Exp(s, big.NewInt(int64(key.E)), key.N)
	if m.BitLen() > bits {
		return false
	}
	want, ok := encodeUnsalted(h, digest, bits)
	return ok && subtle.ConstantTimeCompare(m.FillBytes(make([]byte, len(want))), want) == 1
}

// encodeUnsalted is EMSA-PSS-ENCODE with sLen 0. Without a salt the result is deterministic.
func encodeUnsalted(h crypto.Hash, digest []byte, bits int) ([]byte, bool) {
	size := h.Size()
	n := (bits + 7) / 8
	if n < size+2 {
		return nil, false
	}
	d := h.New()
	d.Write(make([]byte, 8))
	d.Write(digest)
	hash := d.Sum(nil)
	out := make([]byte, n)
	db := out[:n-size-1]
	db[len(db)-1] = 1
	mask(h, db, hash)
	db[0] &= 0xff >> (8*n - bits)
	copy(out[len(db):], hash)
	out[n-1] = 0xbc
	return out, true
}

// mask applies MGF1 to out.
func mask(h crypto.Hash, out, seed []byte) {
	for i, at := uint32(0), 0; at < len(out); i++ {
		d := h.New()
		d.Write(seed)
		d.Write(binary.BigEndian.AppendUint32(nil, i))
		at += subtle.XORBytes(out[at:], out[at:], d.Sum(nil))
	}
}
