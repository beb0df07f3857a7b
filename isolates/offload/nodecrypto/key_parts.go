package nodecrypto

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/asn1"
	"math/big"
)

// Parts returns the members of a key's JSON Web Key: of RSA n, e, d, p, q, dp, dq and qi, of the others x, y and d.
func Parts(der []byte, private bool) ([][]byte, error) {
	read := publicOf
	if private {
		read = privateOf
	}
	key, err := read(der)
	if err != nil {
		return nil, err
	}
	switch key := key.(type) {
	case *rsa.PublicKey:
		return [][]byte{key.N.Bytes(), big.NewInt(int64(key.E)).Bytes()}, nil
	case *rsa.PrivateKey:
		if len(key.Primes) != 2 {
			return nil, errKey
		}
		return [][]byte{key.N.Bytes(), big.NewInt(int64(key.E)).Bytes(), key.D.Bytes(), key.Primes[0].Bytes(),
			key.Primes[1].Bytes(), key.Precomputed.Dp.Bytes(), key.Precomputed.Dq.Bytes(), key.Precomputed.Qinv.Bytes()}, nil
	case *ecdsa.PublicKey:
		return point(key)
	case *ecdsa.PrivateKey:
		xy, err := point(&key.PublicKey)
		if err != nil {
			return nil, err
		}
		d, err := key.Bytes()
		return append(xy, d), err
	case ed25519.PublicKey:
		return [][]byte{key, nil}, nil
	case ed25519.PrivateKey:
		return [][]byte{key[32:], nil, key.Seed()}, nil
	case *ecdh.PublicKey:
		return [][]byte{key.Bytes(), nil}, nil
	case *ecdh.PrivateKey:
		return [][]byte{key.PublicKey().Bytes(), nil, key.Bytes()}, nil
	}
	return nil, errKey
}

func point(key *ecdsa.PublicKey) ([][]byte, error) {
	b, err := key.Bytes()
	if err != nil {
		return nil, errKey
	}
	n := (len(b) - 1) / 2
	return [][]byte{b[1 : 1+n], b[1+n:]}, nil
}

// pkcs1Private and pkcs1Public are the structures of RFC 8017, A.1, with two primes.
type pkcs1Private struct {
	Version                   int
	N, E, D, P, Q, DP, DQ, QI *big.Int
}

type pkcs1Public struct{ N, E *big.Int }

// FromParts makes a key of the members of a JSON Web Key, in the order in which Parts has them.
func FromParts(kind, curve string, private bool, parts [][]byte) (Key, error) {
	for _, p := range parts {
		if len(p) > MaxRSABits/8+1 {
			return Key{}, errKey
		}
	}
	switch kind {
	case RSA:
		n := make([]*big.Int, len(parts))
		for i, p := range parts {
			n[i] = new(big.Int).SetBytes(p)
		}
		if !private {
			der, err := asn1.Marshal(pkcs1Public{n[0], n[1]})
			return readParts(der, err, "pkcs1-public")
		}
		der, err := asn1.Marshal(pkcs1Private{0, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]})
		return readParts(der, err, "pkcs1")
	case EC:
		return ecFromParts(curve, private, parts)
	case Ed25519, X25519:
		return okpFromParts(kind, private, parts)
	}
	return Key{}, errKey
}

func readParts(der []byte, err error, kind string) (Key, error) {
	if err != nil {
		return Key{}, errKey
	}
	key, err := parse(der, kind)
	if err != nil {
		return Key{}, errKey
	}
	return keyOf(key)
}

func ecFromParts(curve string, private bool, parts [][]byte) (Key, error) {
	c, err := curveOf(curve)
	if err != nil {
		return Key{}, err
	}
	n := (c.Params().BitSize + 7) / 8
	if len(parts[0]) != n || len(parts[1]) != n {
		return Key{}, errKey
	}
	public, err := ecdsa.ParseUncompressedPublicKey(c, bytes.Join([][]byte{{4}, parts[0], parts[1]}, nil))
	if err != nil {
		return Key{}, errKey
	}
	if !private {
		return keyOf(public)
	}
	key, err := ecdsa.ParseRawPrivateKey(c, parts[2])
	if err != nil || !key.PublicKey.Equal(public) {
		return Key{}, errKey
	}
	return keyOf(key)
}

func okpFromParts(kind string, private bool, parts [][]byte) (Key, error) {
	const size = 32
	if len(parts[0]) != size || private && len(parts[2]) != size {
		return Key{}, errKey
	}
	if kind == Ed25519 {
		if !private {
			return keyOf(ed25519.PublicKey(parts[0]))
		}
		key := ed25519.NewKeyFromSeed(parts[2])
		if !bytes.Equal(key[size:], parts[0]) {
			return Key{}, errKey
		}
		return keyOf(key)
	}
	if !private {
		return generated(ecdh.X25519().NewPublicKey(parts[0]))
	}
	key, err := ecdh.X25519().NewPrivateKey(parts[2])
	if err != nil || !bytes.Equal(key.PublicKey().Bytes(), parts[0]) {
		return Key{}, errKey
	}
	return keyOf(key)
}
