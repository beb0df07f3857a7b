package webcrypto

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"

	"github.com/cloudflare/circl/dh/x448"
	"github.com/cloudflare/circl/sign/ed448"
)

// curve448 is Ed448 or X448, which Go's own cryptography does not have.
type curve448 struct {
	oid  asn1.ObjectIdentifier // RFC 8410
	size int                   // of the secret, and of the public key
	own  func(secret []byte) (public []byte)
}

// of448 returns the algorithm with that name, if it is Ed448 or X448.
func of448(name string) (c curve448, ok bool) {
	switch name {
	case "Ed448":
		return curve448{asn1.ObjectIdentifier{1, 3, 101, 113}, ed448.SeedSize, func(secret []byte) []byte {
			return ed448.NewKeyFromSeed(secret)[ed448.SeedSize:]
		}}, true
	case "X448":
		return curve448{asn1.ObjectIdentifier{1, 3, 101, 111}, x448.Size, func(secret []byte) []byte {
			var public, private x448.Key
			copy(private[:], secret)
			x448.KeyGen(&public, &private)
			return public[:]
		}}, true
	}
	return curve448{}, false
}

// spki448 and pkcs8For448 are the structures of RFC 5280, 4.1 and RFC 5958, 2.
type spki448 struct {
	Algorithm pkix.AlgorithmIdentifier
	PublicKey asn1.BitString
}

type pkcs8For448 struct {
	Version    int
	Algorithm  pkix.AlgorithmIdentifier
	PrivateKey []byte
	Attributes asn1.RawValue `asn1:"optional,tag:0"`
	PublicKey  asn1.RawValue `asn1:"optional,tag:1"`
}

// is reports whether an identifier is that of the algorithm, without parameters.
func (c curve448) is(a pkix.AlgorithmIdentifier) bool {
	return a.Algorithm.Equal(c.oid) && len(a.Parameters.FullBytes) == 0
}

func (c curve448) parseSPKI(der []byte) ([]byte, error) {
	var k spki448
	rest, err := asn1.Unmarshal(der, &k)
	if err != nil || len(rest) > 0 || !c.is(k.Algorithm) || k.PublicKey.BitLength != 8*c.size {
		return nil, errOKP
	}
	return k.PublicKey.Bytes, nil
}

func (c curve448) parsePKCS8(der []byte) ([]byte, error) {
	var k pkcs8For448
	rest, err := asn1.Unmarshal(der, &k)
	if err != nil || len(rest) > 0 || !c.is(k.Algorithm) || k.Version < 0 || k.Version > 1 {
		return nil, errOKP
	}
	var secret []byte
	if rest, err = asn1.Unmarshal(k.PrivateKey, &secret); err != nil || len(rest) > 0 || len(secret) != c.size {
		return nil, errOKP
	}
	return append(secret, c.own(secret)...), nil
}

func (c curve448) spki(public []byte) ([]byte, error) {
	return asn1.Marshal(spki448{pkix.AlgorithmIdentifier{Algorithm: c.oid},
		asn1.BitString{Bytes: public, BitLength: 8 * len(public)}})
}

func (c curve448) pkcs8(secret []byte) ([]byte, error) {
	text, err := asn1.Marshal(secret)
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(struct {
		Version    int
		Algorithm  pkix.AlgorithmIdentifier
		PrivateKey []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: c.oid}, text})
}

// MaxEd448Context is the longest context of a signature, in bytes (RFC 8032, 5.2).
const MaxEd448Context = ed448.ContextMaxSize

var errContext = errors.New("the context of a signature has at most 255 bytes")

// SignEd448 signs data in a context, which may be empty.
func SignEd448(private, data, context []byte) ([]byte, error) {
	switch {
	case len(private) != ed448.PrivateKeySize:
		return nil, errOKP
	case len(context) > MaxEd448Context:
		return nil, errContext
	}
	return ed448.Sign(ed448.PrivateKey(private), data, string(context)), nil
}

// VerifyEd448 reports whether signature is a signature of data in that context. It refuses keys and signatures whose
// point is of small order, as VerifyEd25519 does.
func VerifyEd448(public, signature, data, context []byte) (bool, error) {
	switch {
	case len(public) != ed448.PublicKeySize:
		return false, errOKP
	case len(context) > MaxEd448Context:
		return false, errContext
	case len(signature) != ed448.SignatureSize, smallOrder448(public), smallOrder448(signature[:ed448.PublicKeySize]):
		return false, nil
	}
	return ed448.Verify(ed448.PublicKey(public), data, signature, string(context)), nil
}

// smallOrder448 reports whether the bytes encode, canonically or not, a point whose order divides 4. The y of such a
// point is 0, 1 or -1.
func smallOrder448(point []byte) bool {
	y := point[:ed448.PublicKeySize-1] // the last byte is the sign of x
	zero, ones := make([]byte, len(y)), bytes.Repeat([]byte{0xff}, len(y))
	ones[len(y)/2] = 0xfe // p = 2^448 - 2^224 - 1
	p := ones             // 0 again
	one, minusOne, pPlusOne := bytes.Clone(zero), bytes.Clone(p), bytes.Clone(zero)
	one[0], minusOne[0] = 1, 0xfe
	for i := len(y) / 2; i < len(y); i++ { // p + 1 = 2^448 - 2^224: 1 again
		pPlusOne[i] = 0xff
	}
	for _, bad := range [][]byte{zero, one, minusOne, p, pPlusOne} {
		if bytes.Equal(y, bad) {
			return true
		}
	}
	return false
}

// X448 returns the shared secret of a private key and another party's public key. A secret of only zeros is an error.
func X448(private, public []byte) ([]byte, error) {
	if len(private) != 2*x448.Size || len(public) != x448.Size {
		return nil, errOKP
	}
	var secret, own, other x448.Key
	copy(own[:], private)
	copy(other[:], public)
	if !x448.Shared(&secret, &own, &other) {
		return nil, errors.New("the public key is of small order")
	}
	return secret[:], nil
}
