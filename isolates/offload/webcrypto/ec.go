package webcrypto

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// curveOf returns the curve with that name in the API: P-256, P-384 or P-521.
func curveOf(name string) (elliptic.Curve, ecdh.Curve, error) {
	switch name {
	case "P-256":
		return elliptic.P256(), ecdh.P256(), nil
	case "P-384":
		return elliptic.P384(), ecdh.P384(), nil
	case "P-521":
		return elliptic.P521(), ecdh.P521(), nil
	}
	return nil, nil, fmt.Errorf("unknown curve %q: it is P-256, P-384 or P-521", name)
}

// scalarSize returns the length of a scalar or coordinate, in bytes.
func scalarSize(c elliptic.Curve) int { return (c.Params().BitSize + 7) / 8 }

var errPoint = errors.New("the key is no point of the curve")

// splitEC splits a private key into its parts.
func splitEC(curve string, private []byte) (c elliptic.Curve, dh ecdh.Curve, scalar, point []byte, err error) {
	c, dh, err = curveOf(curve)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	n := scalarSize(c)
	if len(private) != n+1+2*n {
		return nil, nil, nil, nil, errPoint
	}
	return c, dh, private[:n], private[n:], nil
}

// GenerateEC makes a key pair.
func GenerateEC(curve string) (private, public []byte, err error) {
	_, dh, err := curveOf(curve)
	if err != nil {
		return nil, nil, err
	}
	key, err := dh.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	public = key.PublicKey().Bytes()
	return slices.Concat(key.Bytes(), public), public, nil
}

// ImportECPoint reads a point, uncompressed or compressed.
func ImportECPoint(curve string, point []byte) (public []byte, err error) {
	c, dh, err := curveOf(curve)
	if err != nil {
		return nil, err
	}
	n := scalarSize(c)
	if len(point) == 1+n && (point[0] == 2 || point[0] == 3) {
		x, y := elliptic.UnmarshalCompressed(c, point)
		if x == nil {
			return nil, errPoint
		}
		return uncompressed(n, x, y), nil
	}
	key, err := dh.NewPublicKey(point)
	if err != nil {
		return nil, errPoint
	}
	return key.Bytes(), nil
}

func uncompressed(n int, x, y *big.Int) []byte {
	out := make([]byte, 1+2*n)
	out[0] = 4
	x.FillBytes(out[1 : 1+n])
	y.FillBytes(out[1+n:])
	return out
}

// ImportECScalar makes a private key from a scalar of full length. point, unless nil, must be its public key.
func ImportECScalar(curve string, scalar, point []byte) (private []byte, err error) {
	_, dh, err := curveOf(curve)
	if err != nil {
		return nil, err
	}
	key, err := dh.NewPrivateKey(scalar)
	if err != nil {
		return nil, errors.New("the private key is no scalar of the curve")
	}
	public := key.PublicKey().Bytes()
	if point != nil && !slices.Equal(point, public) {
		return nil, errors.New("the public key is not that of the private key")
	}
	return slices.Concat(scalar, public), nil
}

type spki struct {
	Algorithm pkix.AlgorithmIdentifier
	Key       asn1.BitString
}

// ImportECSPKI reads a SubjectPublicKeyInfo in DER of a key on the curve.
func ImportECSPKI(curve string, der []byte) (public []byte, err error) {
	var info spki
	rest, err := asn1.Unmarshal(der, &info)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, errors.New("there are bytes after the key")
	}
	if !info.Algorithm.Algorithm.Equal(asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}) {
		return nil, errors.New("the key is not one on an elliptic curve")
	}
	var id asn1.ObjectIdentifier
	if rest, err := asn1.Unmarshal(info.Algorithm.Parameters.FullBytes, &id); err != nil || len(rest) > 0 {
		return nil, errors.New("the key does not name its curve")
	}
	if !id.Equal(curveID(curve)) {
		return nil, fmt.Errorf("the key is not on the curve %s", curve)
	}
	if info.Key.BitLength%8 != 0 {
		return nil, errPoint
	}
	return ImportECPoint(curve, info.Key.Bytes)
}

func curveID(curve string) asn1.ObjectIdentifier {
	switch curve {
	case "P-256":
		return asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}
	case "P-384":
		return asn1.ObjectIdentifier{1, 3, 132, 0, 34}
	case "P-521":
		return asn1.ObjectIdentifier{1, 3, 132, 0, 35}
	}
	return nil
}

// ImportECPKCS8 reads a PrivateKeyInfo in DER of a key on the curve.
func ImportECPKCS8(curve string, der []byte) (private []byte, err error) {
	c, _, err := curveOf(curve)
	if err != nil {
		return nil, err
	}
	parsed, err := parsePKCS8(der)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != c {
		return nil, fmt.Errorf("the key is not on the curve %s", curve)
	}
	scalar, err := key.Bytes()
	if err != nil {
		return nil, err
	}
	return ImportECScalar(curve, scalar, nil)
}

// ExportECSPKI returns a public key as SubjectPublicKeyInfo.
func ExportECSPKI(curve string, public []byte) ([]byte, error) {
	c, _, err := curveOf(curve)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.ParseUncompressedPublicKey(c, public)
	if err != nil {
		return nil, errPoint
	}
	return x509.MarshalPKIXPublicKey(key)
}

// ExportECPKCS8 returns a private key as PrivateKeyInfo, with its public key.
func ExportECPKCS8(curve string, private []byte) ([]byte, error) {
	c, _, scalar, _, err := splitEC(curve, private)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.ParseRawPrivateKey(c, scalar)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(key)
}

// SignECDSA returns r and s, each of the curve's length.
func SignECDSA(curve, hash string, private, data []byte) ([]byte, error) {
	h, err := hashOf(hash)
	if err != nil {
		return nil, err
	}
	c, _, scalar, _, err := splitEC(curve, private)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.ParseRawPrivateKey(c, scalar)
	if err != nil {
		return nil, err
	}
	r, s, err := ecdsa.Sign(rand.Reader, key, sum(h, data))
	if err != nil {
		return nil, err
	}
	n := scalarSize(c)
	out := make([]byte, 2*n)
	r.FillBytes(out[:n])
	s.FillBytes(out[n:])
	return out, nil
}

// VerifyECDSA reports whether signature is a signature of data.
func VerifyECDSA(curve, hash string, public, signature, data []byte) (bool, error) {
	h, err := hashOf(hash)
	if err != nil {
		return false, err
	}
	c, _, err := curveOf(curve)
	if err != nil {
		return false, err
	}
	key, err := ecdsa.ParseUncompressedPublicKey(c, public)
	if err != nil {
		return false, errPoint
	}
	n := scalarSize(c)
	if len(signature) != 2*n {
		return false, nil
	}
	r, s := new(big.Int).SetBytes(signature[:n]), new(big.Int).SetBytes(signature[n:])
	return ecdsa.Verify(key, sum(h, data), r, s), nil
}

// ECDH returns the shared secret of a private key and another party's public key: the x coordinate.
func ECDH(curve string, private, public []byte) ([]byte, error) {
	_, dh, scalar, _, err := splitEC(curve, private)
	if err != nil {
		return nil, err
	}
	key, err := dh.NewPrivateKey(scalar)
	if err != nil {
		return nil, err
	}
	other, err := dh.NewPublicKey(public)
	if err != nil {
		return nil, errPoint
	}
	return key.ECDH(other)
}
