package webcrypto

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Bounds of RSA keys, in bits. The work grows with the cube of the size. The work of making a key grows with its fourth
// power.
const (
	MinRSABits      = 1024
	MaxRSABits      = 8192
	MaxRSAGenerated = 4096
)

// maxDER is a length in bytes that the DER of no allowed key exceeds.
const maxDER = 8192

// RSAKey is an RSA key and the properties that the API shows.
type RSAKey struct {
	DER      []byte // PKCS #1
	Bits     int    // of the modulus
	Exponent []byte // public, big-endian without leading zeros
}

// RSAParts are the numbers of a JSON Web Key, big-endian without leading zeros. In a public key all but N and E are
// nil.
type RSAParts struct{ N, E, D, P, Q, DP, DQ, QI []byte }

// LeastToGenerate returns the least CPU time that GenerateRSA takes. GenerateRSA cannot be stopped, so a caller with
// less time left must not start it.
func LeastToGenerate(bits int) time.Duration {
	n := float64(min(max(bits, 0), MaxRSAGenerated)) / 2048
	return time.Duration(n * n * n * n * float64(25*time.Millisecond))
}

// GenerateRSA makes a key pair. The public exponent must be 65537: Go makes no other keys.
func GenerateRSA(bits int, exponent []byte) (private, public RSAKey, err error) {
	if bits < MinRSABits || bits > MaxRSAGenerated {
		return private, public, fmt.Errorf("RSA keys of %d bits are not made: %d to %d are", bits, MinRSABits, MaxRSAGenerated)
	}
	if e := new(big.Int).SetBytes(exponent); !e.IsInt64() || e.Int64() != 65537 {
		return private, public, fmt.Errorf("the public exponent must be 65537")
	}
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return private, public, err
	}
	return rsaPrivate(key), rsaPublic(&key.PublicKey), nil
}

func rsaPrivate(key *rsa.PrivateKey) RSAKey {
	k := rsaPublic(&key.PublicKey)
	k.DER = x509.MarshalPKCS1PrivateKey(key)
	return k
}

func rsaPublic(key *rsa.PublicKey) RSAKey {
	return RSAKey{DER: x509.MarshalPKCS1PublicKey(key), Bits: key.N.BitLen(), Exponent: big.NewInt(int64(key.E)).Bytes()}
}

func checkRSA(key *rsa.PublicKey) error {
	if n := key.N.BitLen(); n > MaxRSABits {
		return fmt.Errorf("the RSA key has %d bits: at most %d are allowed", n, MaxRSABits)
	}
	return nil
}

// ImportRSASPKI reads a SubjectPublicKeyInfo in DER.
func ImportRSASPKI(der []byte) (RSAKey, error) {
	// Check the bounds first: the standard library validates keys, which takes long for long ones.
	if len(der) > maxDER {
		return RSAKey{}, errTooLong
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return RSAKey{}, err
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return RSAKey{}, errNotRSA
	}
	if err := checkRSA(key); err != nil {
		return RSAKey{}, err
	}
	return rsaPublic(key), nil
}

var (
	errNotRSA  = errors.New("the key is not an RSA key")
	errTooLong = errors.New("the key is too long")
)

// ImportRSAPKCS8 reads a PrivateKeyInfo in DER.
func ImportRSAPKCS8(der []byte) (RSAKey, error) {
	if len(der) > maxDER {
		return RSAKey{}, errTooLong
	}
	parsed, err := parsePKCS8(der)
	if err != nil {
		return RSAKey{}, err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return RSAKey{}, errNotRSA
	}
	return checkedRSA(key)
}

func checkedRSA(key *rsa.PrivateKey) (RSAKey, error) {
	if len(key.Primes) != 2 {
		return RSAKey{}, fmt.Errorf("the RSA key has %d primes: only those with 2 are supported", len(key.Primes))
	}
	if err := checkRSA(&key.PublicKey); err != nil {
		return RSAKey{}, err
	}
	return rsaPrivate(key), nil
}

// parsePKCS8 is like x509.ParsePKCS8PrivateKey, but refuses trailing bytes.
func parsePKCS8(der []byte) (any, error) {
	var whole asn1.RawValue
	rest, err := asn1.Unmarshal(der, &whole)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, errors.New("there are bytes after the key")
	}
	return x509.ParsePKCS8PrivateKey(der)
}

// pkcs1Private and pkcs1Public are the structures of RFC 8017, A.1, with two primes.
type pkcs1Private struct {
	Version                   int
	N, E, D, P, Q, DP, DQ, QI *big.Int
}

type pkcs1Public struct{ N, E *big.Int }

// ImportRSAParts reads the numbers of a JSON Web Key. Private numbers are checked against each other.
func ImportRSAParts(p RSAParts) (RSAKey, error) {
	for _, part := range [...][]byte{p.N, p.E, p.D, p.P, p.Q, p.DP, p.DQ, p.QI} {
		if len(part) > MaxRSABits/8+1 {
			return RSAKey{}, errTooLong
		}
	}
	number := func(b []byte) *big.Int { return new(big.Int).SetBytes(b) }
	if p.D == nil {
		der, err := asn1.Marshal(pkcs1Public{number(p.N), number(p.E)})
		if err != nil {
			return RSAKey{}, err
		}
		return importPKCS1Public(der)
	}
	der, err := asn1.Marshal(pkcs1Private{0, number(p.N), number(p.E), number(p.D), number(p.P), number(p.Q), number(p.DP),
		number(p.DQ), number(p.QI)})
	if err != nil {
		return RSAKey{}, err
	}
	key, err := x509.ParsePKCS1PrivateKey(der)
	if err != nil {
		return RSAKey{}, err
	}
	return checkedRSA(key)
}

func importPKCS1Public(der []byte) (RSAKey, error) {
	key, err := x509.ParsePKCS1PublicKey(der)
	if err != nil {
		return RSAKey{}, err
	}
	if err := checkRSA(key); err != nil {
		return RSAKey{}, err
	}
	return rsaPublic(key), nil
}

// ExportRSASPKI returns a public key as SubjectPublicKeyInfo.
func ExportRSASPKI(public []byte) ([]byte, error) {
	key, err := x509.ParsePKCS1PublicKey(public)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKIXPublicKey(key)
}

// ExportRSAPKCS8 returns a private key as PrivateKeyInfo.
func ExportRSAPKCS8(private []byte) ([]byte, error) {
	key, err := x509.ParsePKCS1PrivateKey(private)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(key)
}

// ExportRSAParts returns the numbers of a key.
func ExportRSAParts(der []byte, private bool) (RSAParts, error) {
	if !private {
		var k pkcs1Public
		if _, err := asn1.Unmarshal(der, &k); err != nil {
			return RSAParts{}, err
		}
		return RSAParts{N: k.N.Bytes(), E: k.E.Bytes()}, nil
	}
	var k pkcs1Private
	if _, err := asn1.Unmarshal(der, &k); err != nil {
		return RSAParts{}, err
	}
	return RSAParts{k.N.Bytes(), k.E.Bytes(), k.D.Bytes(), k.P.Bytes(), k.Q.Bytes(), k.DP.Bytes(), k.DQ.Bytes(),
		k.QI.Bytes()}, nil
}
