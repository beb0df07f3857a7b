package nodecrypto

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
)

// Paddings of RSA, as OpenSSL numbers them.
const (
	paddingPKCS1 = 1
	paddingOAEP  = 4
	paddingPSS   = 6
)

// SignOptions say how a signature is made.
type SignOptions struct {
	Hash    string // of the digest; "" for the kind Ed25519, which signs data itself
	Padding int    // of RSA; 0 = PKCS #1
	Salt    int    // of PSS in bytes; -1 = as long as the digest, -2 = as long as possible, or any
	Plain   bool   // of ECDSA: both numbers in their full length, and not in DER
}

var errSalt = errors.New("the salt is too long for the key")

// hashFor returns the hash of a digest.
func hashFor(name string, digest []byte) (crypto.Hash, error) {
	h, ok := hashes[name]
	if !ok {
		return 0, fmt.Errorf("the hash %q makes no signatures", name)
	}
	if len(digest) != h.Size() {
		return 0, errors.New("the digest has a wrong length")
	}
	return h, nil
}

func (o SignOptions) salt(most int) (int, error) {
	switch {
	case o.Salt == -1:
		return rsa.PSSSaltLengthEqualsHash, nil
	case o.Salt < -1:
		return rsa.PSSSaltLengthAuto, nil
	case o.Salt > most:
		return 0, errSalt
	case o.Salt == 0:
		return 0, errors.New("PSS without a salt is not supported: use crypto.subtle")
	}
	return o.Salt, nil
}

// Sign signs a digest, or for the kind Ed25519 data.
func Sign(private, data []byte, o SignOptions) ([]byte, error) {
	key, err := privateOf(private)
	if err != nil {
		return nil, err
	}
	if key, ok := key.(ed25519.PrivateKey); ok {
		return ed25519.Sign(key, data), nil
	}
	h, err := hashFor(o.Hash, data)
	if err != nil {
		return nil, err
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if o.Padding != paddingPSS {
			return rsa.SignPKCS1v15(rand.Reader, key, h, data)
		}
		salt, err := o.salt(key.Size())
		if err != nil {
			return nil, err
		}
		return rsa.SignPSS(rand.Reader, key, h, data, &rsa.PSSOptions{SaltLength: salt})
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, data)
		if err != nil {
			return nil, err
		}
		if !o.Plain {
			return asn1.Marshal(struct{ R, S *big.Int }{r, s})
		}
		n := scalarSize(key.Curve)
		out := make([]byte, 2*n)
		r.FillBytes(out[:n])
		s.FillBytes(out[n:])
		return out, nil
	}
	return nil, errors.New("keys of this kind make no signatures")
}

func scalarSize(c elliptic.Curve) int { return (c.Params().BitSize + 7) / 8 }

// Verify reports whether a signature is one of a digest, or for the kind Ed25519 of data.
func Verify(public, data, signature []byte, o SignOptions) (bool, error) {
	key, err := publicOf(public)
	if err != nil {
		return false, err
	}
	if key, ok := key.(ed25519.PublicKey); ok {
		return ed25519.Verify(key, data, signature), nil
	}
	h, err := hashFor(o.Hash, data)
	if err != nil {
		return false, err
	}
	switch key := key.(type) {
	case *rsa.PublicKey:
		if o.Padding != paddingPSS {
			return rsa.VerifyPKCS1v15(key, h, data, signature) == nil, nil
		}
		salt, err := o.salt(key.Size())
		if err != nil {
			return false, err
		}
		return rsa.VerifyPSS(key, h, data, signature, &rsa.PSSOptions{SaltLength: salt}) == nil, nil
	case *ecdsa.PublicKey:
		if !o.Plain {
			return ecdsa.VerifyASN1(key, data, signature), nil
		}
		n := scalarSize(key.Curve)
		if len(signature) != 2*n {
			return false, nil
		}
		return ecdsa.Verify(key, data, new(big.Int).SetBytes(signature[:n]), new(big.Int).SetBytes(signature[n:])), nil
	}
	return false, errors.New("keys of this kind make no signatures")
}

// Encrypt encrypts with RSA.
func Encrypt(public []byte, padding int, hash string, label, data []byte) ([]byte, error) {
	key, err := publicOf(public)
	if err != nil {
		return nil, err
	}
	k, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("keys of this kind do not encrypt")
	}
	if padding == paddingPKCS1 {
		return rsa.EncryptPKCS1v15(rand.Reader, k, data) //nolint:staticcheck // part of Node's crypto
	}
	h, ok := hashes[hash]
	if !ok || padding != paddingOAEP {
		return nil, errors.New("the padding is not supported")
	}
	return rsa.EncryptOAEP(h.New(), rand.Reader, k, data, label)
}

// Decrypt reverses Encrypt with OAEP. What PKCS #1 pads is not decrypted: the result would tell an attacker of it.
func Decrypt(private []byte, padding int, hash string, label, data []byte) ([]byte, error) {
	key, err := privateOf(private)
	if err != nil {
		return nil, err
	}
	k, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("keys of this kind do not decrypt")
	}
	h, ok := hashes[hash]
	if !ok || padding != paddingOAEP {
		return nil, errors.New("the padding is not supported for decryption: use RSA_PKCS1_OAEP_PADDING")
	}
	out, err := rsa.DecryptOAEP(h.New(), rand.Reader, k, data, label)
	if err != nil {
		return nil, errors.New("the data was not encrypted with this key and these parameters")
	}
	return out, nil
}

// Agree returns the secret that a private key and another party's public key share.
func Agree(private, public []byte) ([]byte, error) {
	mine, err := privateOf(private)
	if err != nil {
		return nil, err
	}
	theirs, err := publicOf(public)
	if err != nil {
		return nil, err
	}
	a, err := exchangePrivate(mine)
	if err != nil {
		return nil, err
	}
	b, err := exchangePublic(theirs)
	if err != nil {
		return nil, err
	}
	if a.Curve() != b.Curve() {
		return nil, errors.New("the keys are of different kinds")
	}
	return a.ECDH(b)
}

var errAgree = errors.New("keys of this kind share no secrets")

func exchangePrivate(key any) (*ecdh.PrivateKey, error) {
	switch key := key.(type) {
	case *ecdh.PrivateKey:
		return key, nil
	case *ecdsa.PrivateKey:
		return key.ECDH()
	}
	return nil, errAgree
}

func exchangePublic(key any) (*ecdh.PublicKey, error) {
	switch key := key.(type) {
	case *ecdh.PublicKey:
		return key, nil
	case *ecdsa.PublicKey:
		return key.ECDH()
	}
	return nil, errAgree
}
