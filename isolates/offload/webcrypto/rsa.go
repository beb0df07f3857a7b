package webcrypto

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
)

// SignPKCS1 signs data with RSASSA-PKCS1-v1_5.
func SignPKCS1(hash string, private, data []byte) ([]byte, error) {
	h, key, err := signer(hash, private)
	if err != nil {
		return nil, err
	}
	return rsa.SignPKCS1v15(rand.Reader, key, h, sum(h, data))
}

func signer(hash string, private []byte) (crypto.Hash, *rsa.PrivateKey, error) {
	h, err := hashOf(hash)
	if err != nil {
		return 0, nil, err
	}
	key, err := x509.ParsePKCS1PrivateKey(private)
	return h, key, err
}

func verifier(hash string, public []byte) (crypto.Hash, *rsa.PublicKey, error) {
	h, err := hashOf(hash)
	if err != nil {
		return 0, nil, err
	}
	key, err := x509.ParsePKCS1PublicKey(public)
	return h, key, err
}

// VerifyPKCS1 reports whether signature is a signature of data.
func VerifyPKCS1(hash string, public, signature, data []byte) (bool, error) {
	h, key, err := verifier(hash, public)
	if err != nil {
		return false, err
	}
	return rsa.VerifyPKCS1v15(key, h, sum(h, data), signature) == nil, nil
}

// SignPSS signs data with RSA-PSS and a salt of saltLength bytes.
func SignPSS(hash string, private []byte, saltLength int, data []byte) ([]byte, error) {
	h, key, err := signer(hash, private)
	if err != nil {
		return nil, err
	}
	if saltLength > key.Size() {
		return nil, errSalt
	}
	if saltLength == 0 { // in crypto/rsa, 0 means as long as possible
		return signUnsalted(h, key, sum(h, data))
	}
	return rsa.SignPSS(rand.Reader, key, h, sum(h, data), &rsa.PSSOptions{SaltLength: saltLength})
}

var errSalt = errors.New("the salt is too long for the key")

// VerifyPSS reports whether signature is a signature of data with a salt of saltLength bytes.
func VerifyPSS(hash string, public []byte, saltLength int, signature, data []byte) (bool, error) {
	h, key, err := verifier(hash, public)
	if err != nil {
		return false, err
	}
	if saltLength > key.Size() {
		return false, nil
	}
	if saltLength == 0 {
		return verifyUnsalted(h, key, sum(h, data), signature), nil
	}
	return rsa.VerifyPSS(key, h, sum(h, data), signature, &rsa.PSSOptions{SaltLength: saltLength}) == nil, nil
}

// EncryptOAEP encrypts with RSA-OAEP. hash is also the hash of the mask.
func EncryptOAEP(hash string, public, label, data []byte) ([]byte, error) {
	h, key, err := verifier(hash, public)
	if err != nil {
		return nil, err
	}
	return rsa.EncryptOAEP(h.New(), rand.Reader, key, data, label)
}

// DecryptOAEP reverses EncryptOAEP.
func DecryptOAEP(hash string, private, label, data []byte) ([]byte, error) {
	h, key, err := signer(hash, private)
	if err != nil {
		return nil, err
	}
	out, err := rsa.DecryptOAEP(h.New(), rand.Reader, key, data, label)
	if err != nil {
		return nil, errDecrypt
	}
	return out, nil
}
