package nodecrypto

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Bounds of keys.
const (
	MaxKey          = 64 << 10 // bytes of a key's text, or of a certificate's
	maxPrivate      = 8 << 10  // bytes of the DER of a private key
	MaxRSABits      = 8192
	MaxRSAGenerated = 4096
	MinRSAGenerated = 1024
)

// Kinds of keys, as Node names them.
const (
	RSA     = "rsa"
	EC      = "ec"
	Ed25519 = "ed25519"
	X25519  = "x25519"
)

var (
	errKey     = errors.New("the key is not well-formed, or of a kind that is not supported")
	errCurve   = errors.New("the curve is not supported: prime256v1, secp384r1 and secp521r1 are")
	errPrivate = errors.New("the key is not a private one")
)

// Key is a key as JavaScript keeps it. Go reads its DER again for each use.
type Key struct {
	Kind    string
	Private []byte // PKCS #8; nil = it is a public key
	Public  []byte // SubjectPublicKeyInfo
	Curve   string // of a key of the kind EC
	Bits    int    // of a key of the kind RSA
	E       []byte // its public exponent
}

// keyOf returns the Key of a private or a public key of Go.
func keyOf(key any) (k Key, err error) {
	if private, ok := key.(interface{ Public() crypto.PublicKey }); ok {
		if err := checkKey(private.Public()); err != nil {
			return k, err
		}
		if k.Private, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return k, errKey
		}
		key = private.Public()
	}
	if err := checkKey(key); err != nil {
		return k, err
	}
	switch key := key.(type) {
	case *rsa.PublicKey:
		k.Kind, k.Bits, k.E = RSA, key.N.BitLen(), big.NewInt(int64(key.E)).Bytes()
	case *ecdsa.PublicKey:
		k.Kind, k.Curve = EC, key.Curve.Params().Name
	case ed25519.PublicKey:
		k.Kind = Ed25519
	case *ecdh.PublicKey:
		k.Kind = X25519
	}
	if k.Public, err = x509.MarshalPKIXPublicKey(key); err != nil {
		return k, errKey
	}
	return k, nil
}

func checkKey(public any) error {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n > MaxRSABits {
			return fmt.Errorf("the RSA key has %d bits: at most %d are allowed", n, MaxRSABits)
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P224() {
			return errCurve
		}
	case *ecdh.PublicKey:
		if key.Curve() != ecdh.X25519() {
			return errCurve
		}
	case ed25519.PublicKey:
	default:
		return errKey
	}
	return nil
}

// ReadKey reads a key in PEM, or in DER of that type: pkcs1, pkcs8, spki or sec1. private says that it must be a
// private one. A certificate has a public key.
func ReadKey(data []byte, isPEM bool, kind string, private bool) (Key, error) {
	if len(data) > MaxKey {
		return Key{}, fmt.Errorf("the key has %d bytes: at most %d are allowed", len(data), MaxKey)
	}
	if isPEM {
		var err error
		if data, kind, err = decodePEM(data); err != nil {
			return Key{}, err
		}
	} else if kind == "pkcs1" && !private {
		kind = "pkcs1-public"
	}
	key, err := parse(data, kind)
	if err != nil && kind == "pkcs1-public" && !isPEM { // a private key has a public one
		key, err = parse(data, "pkcs1")
	}
	if err != nil {
		return Key{}, errKey
	}
	k, err := keyOf(key)
	if err == nil && private && k.Private == nil {
		err = errPrivate
	}
	return k, err
}

var errEncrypted = errors.New("encrypted keys are not supported: decrypt the key before it is stored")

// decodePEM returns the DER of a key, and its type.
func decodePEM(text []byte) (der []byte, kind string, err error) {
	block, rest := pem.Decode(text)
	for block != nil && block.Type == "EC PARAMETERS" { // the key that follows has them, too
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, "", errKey
	}
	if block.Headers["DEK-Info"] != "" || block.Type == "ENCRYPTED PRIVATE KEY" {
		return nil, "", errEncrypted
	}
	kind, ok := map[string]string{
		"PRIVATE KEY": "pkcs8", "RSA PRIVATE KEY": "pkcs1", "RSA PUBLIC KEY": "pkcs1-public", "EC PRIVATE KEY": "sec1",
		"PUBLIC KEY": "spki", "CERTIFICATE": "certificate",
	}[block.Type]
	if !ok {
		return nil, "", errKey
	}
	return block.Bytes, kind, nil
}

func parse(der []byte, kind string) (any, error) {
	var whole asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &whole); err != nil || len(rest) > 0 {
		return nil, errKey
	}
	if len(der) > maxPrivate && kind != "spki" && kind != "certificate" { // private keys are checked, which takes long
		return nil, errKey
	}
	switch kind {
	case "pkcs8":
		return x509.ParsePKCS8PrivateKey(der)
	case "pkcs1":
		return x509.ParsePKCS1PrivateKey(der)
	case "pkcs1-public":
		return x509.ParsePKCS1PublicKey(der)
	case "sec1":
		return x509.ParseECPrivateKey(der)
	case "spki":
		return x509.ParsePKIXPublicKey(der)
	case "certificate":
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		return c.PublicKey, nil
	}
	return nil, errKey
}

// privateOf and publicOf read the DER of a Key.
func privateOf(der []byte) (any, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errKey
	}
	return key, nil
}

func publicOf(der []byte) (any, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errKey
	}
	return key, nil
}

// WriteKey returns a key in DER of a type that its kind has. private says which of both der is.
func WriteKey(der []byte, private bool, kind string) ([]byte, error) {
	if kind == "pkcs8" && private || kind == "spki" && !private {
		return der, nil
	}
	read := publicOf
	if private {
		read = privateOf
	}
	key, err := read(der)
	if err != nil {
		return nil, err
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if kind == "pkcs1" {
			return x509.MarshalPKCS1PrivateKey(key), nil
		}
	case *rsa.PublicKey:
		if kind == "pkcs1" {
			return x509.MarshalPKCS1PublicKey(key), nil
		}
	case *ecdsa.PrivateKey:
		if kind == "sec1" {
			return x509.MarshalECPrivateKey(key)
		}
	}
	return nil, fmt.Errorf("the key has no form %q", kind)
}

// PEM returns DER as a text with that label.
func PEM(label string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
}

// Curves that keys of the kind EC may have, by the names of OpenSSL, the Web and Go.
func curveOf(name string) (elliptic.Curve, error) {
	switch name {
	case "prime256v1", "P-256":
		return elliptic.P256(), nil
	case "secp384r1", "P-384":
		return elliptic.P384(), nil
	case "secp521r1", "P-521":
		return elliptic.P521(), nil
	}
	return nil, errCurve
}

// LeastToGenerate returns the least CPU time that GenerateKey takes.
func LeastToGenerate(kind string, bits int) time.Duration {
	if kind != RSA {
		return 0
	}
	n := float64(min(max(bits, 0), MaxRSAGenerated)) / 2048
	return time.Duration(n * n * n * n * float64(25*time.Millisecond))
}

// GenerateKey makes a pair of keys.
func GenerateKey(kind string, bits int, curve string) (Key, error) {
	switch kind {
	case RSA:
		if bits < MinRSAGenerated || bits > MaxRSAGenerated {
			return Key{}, fmt.Errorf("RSA keys of %d bits are not made: %d to %d are", bits, MinRSAGenerated, MaxRSAGenerated)
		}
		return generated(rsa.GenerateKey(rand.Reader, bits))
	case EC:
		c, err := curveOf(curve)
		if err != nil {
			return Key{}, err
		}
		return generated(ecdsa.GenerateKey(c, rand.Reader))
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return generated(key, err)
	case X25519:
		return generated(ecdh.X25519().GenerateKey(rand.Reader))
	}
	return Key{}, fmt.Errorf("keys of the kind %q are not made", kind)
}

func generated(key any, err error) (Key, error) {
	if err != nil {
		return Key{}, err
	}
	return keyOf(key)
}
