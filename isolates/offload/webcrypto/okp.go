package webcrypto

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

const (
	okpSize  = 32
	pairSize = 2 * okpSize
)

var errOKP = errors.New("the key does not fit its algorithm")

// GenerateOKP makes a key pair of Ed25519, X25519, Ed448 or X448.
func GenerateOKP(name string) (private, public []byte, err error) {
	seed := make([]byte, okpSize)
	if c, ok := of448(name); ok {
		seed = make([]byte, c.size)
	}
	if _, err := rand.Read(seed); err != nil {
		return nil, nil, err
	}
	private, err = ImportOKPSeed(name, seed, nil)
	if err != nil {
		return nil, nil, err
	}
	return private, private[len(seed):], nil
}

// ImportOKPSeed makes a private key from its secret bytes. public, unless nil, must be its public key.
func ImportOKPSeed(name string, seed, public []byte) (private []byte, err error) {
	c, is448 := of448(name)
	if !is448 && len(seed) != okpSize || is448 && len(seed) != c.size {
		return nil, errOKP
	}
	var own []byte
	switch name {
	case "Ed448", "X448":
		own = c.own(seed)
	case "Ed25519":
		own = ed25519.NewKeyFromSeed(seed)[okpSize:]
	case "X25519":
		key, err := ecdh.X25519().NewPrivateKey(seed)
		if err != nil {
			return nil, err
		}
		own = key.PublicKey().Bytes()
	default:
		return nil, fmt.Errorf("unknown algorithm %q", name)
	}
	if public != nil && !slices.Equal(public, own) {
		return nil, errors.New("the public key is not that of the private key")
	}
	return slices.Concat(seed, own), nil
}

// ImportOKPSPKI reads a SubjectPublicKeyInfo in DER.
func ImportOKPSPKI(name string, der []byte) (public []byte, err error) {
	if c, ok := of448(name); ok {
		return c.parseSPKI(der)
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, err
	}
	switch key := parsed.(type) {
	case ed25519.PublicKey:
		if name == "Ed25519" {
			return key, nil
		}
	case *ecdh.PublicKey:
		if name == "X25519" && key.Curve() == ecdh.X25519() {
			return key.Bytes(), nil
		}
	}
	return nil, errOKP
}

// ImportOKPPKCS8 reads a PrivateKeyInfo in DER.
func ImportOKPPKCS8(name string, der []byte) (private []byte, err error) {
	if c, ok := of448(name); ok {
		return c.parsePKCS8(der)
	}
	parsed, err := parsePKCS8(der)
	if err != nil {
		return nil, err
	}
	switch key := parsed.(type) {
	case ed25519.PrivateKey:
		if name == "Ed25519" {
			return key, nil
		}
	case *ecdh.PrivateKey:
		if name == "X25519" && key.Curve() == ecdh.X25519() {
			return slices.Concat(key.Bytes(), key.PublicKey().Bytes()), nil
		}
	}
	return nil, errOKP
}

// ExportOKPSPKI returns a public key as SubjectPublicKeyInfo.
func ExportOKPSPKI(name string, public []byte) ([]byte, error) {
	if c, ok := of448(name); ok && len(public) == c.size {
		return c.spki(public)
	}
	if len(public) != okpSize {
		return nil, errOKP
	}
	if name == "Ed25519" {
		return x509.MarshalPKIXPublicKey(ed25519.PublicKey(public))
	}
	key, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKIXPublicKey(key)
}

// ExportOKPPKCS8 returns a private key as PrivateKeyInfo.
func ExportOKPPKCS8(name string, private []byte) ([]byte, error) {
	if c, ok := of448(name); ok && len(private) == 2*c.size {
		return c.pkcs8(private[:c.size])
	}
	if len(private) != pairSize {
		return nil, errOKP
	}
	if name == "Ed25519" {
		return x509.MarshalPKCS8PrivateKey(ed25519.PrivateKey(private))
	}
	key, err := ecdh.X25519().NewPrivateKey(private[:okpSize])
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(key)
}

// SignEd25519 signs data.
func SignEd25519(private, data []byte) ([]byte, error) {
	if len(private) != pairSize {
		return nil, errOKP
	}
	return ed25519.Sign(ed25519.PrivateKey(private), data), nil
}

// VerifyEd25519 reports whether signature is a signature of data. It refuses keys and signatures whose point is of
// small order, as the API requires: under such a key one signature fits many messages.
func VerifyEd25519(public, signature, data []byte) (bool, error) {
	if len(public) != okpSize {
		return false, errOKP
	}
	if len(signature) != ed25519.SignatureSize || smallOrder(public) || smallOrder(signature[:okpSize]) {
		return false, nil
	}
	return ed25519.Verify(ed25519.PublicKey(public), data, signature), nil
}

// smallOrder reports whether the bytes encode, canonically or not, a point whose order divides 8.
func smallOrder(point []byte) bool {
	p := slices.Clone(point)
	p[okpSize-1] &= 0x7f // the sign of x
	switch hex.EncodeToString(p) {
	case "0100000000000000000000000000000000000000000000000000000000000000", // order 1
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // order 2
		"0000000000000000000000000000000000000000000000000000000000000000", // order 4
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", // order 8
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p: the point of order 4 again
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": // p + 1: the point of order 1 again
		return true
	}
	return false
}

// X25519 returns the shared secret of a private key and another party's public key. A secret of only zeros is an error.
func X25519(private, public []byte) ([]byte, error) {
	if len(private) != pairSize {
		return nil, errOKP
	}
	key, err := ecdh.X25519().NewPrivateKey(private[:okpSize])
	if err != nil {
		return nil, err
	}
	other, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, errOKP
	}
	return key.ECDH(other)
}
