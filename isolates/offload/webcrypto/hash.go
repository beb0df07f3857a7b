package webcrypto

import (
	"crypto"
	"crypto/hmac"
	_ "crypto/md5"  //nolint:gosec // workers written for Cloudflare may digest with it
	_ "crypto/sha1" //nolint:gosec // part of the Web Cryptography API
	_ "crypto/sha256"
	_ "crypto/sha3"
	_ "crypto/sha512"
	"crypto/subtle"
	"encoding"
	"errors"
	"fmt"
	"hash"
)

// hashOf returns the hash with that name in the API: SHA-1, SHA-256, SHA-384 or SHA-512.
func hashOf(name string) (crypto.Hash, error) {
	switch name {
	case "SHA-1":
		return crypto.SHA1, nil
	case "SHA-256":
		return crypto.SHA256, nil
	case "SHA-384":
		return crypto.SHA384, nil
	case "SHA-512":
		return crypto.SHA512, nil
	}
	return 0, fmt.Errorf("unknown hash %q: it is SHA-1, SHA-256, SHA-384 or SHA-512", name)
}

func sum(h crypto.Hash, data []byte) []byte {
	d := h.New()
	d.Write(data)
	return d.Sum(nil)
}

// Digest hashes data with a hash that hashOf knows, or with MD5, SHA3-256, SHA3-384 or SHA3-512.
func Digest(hash string, data []byte) ([]byte, error) {
	switch hash {
	case "MD5":
		return sum(crypto.MD5, data), nil
	case "SHA3-256":
		return sum(crypto.SHA3_256, data), nil
	case "SHA3-384":
		return sum(crypto.SHA3_384, data), nil
	case "SHA3-512":
		return sum(crypto.SHA3_512, data), nil
	}
	h, err := hashOf(hash)
	if err != nil {
		return nil, err
	}
	return sum(h, data), nil
}

// HMAC returns the message authentication code of data.
func HMAC(hash string, key, data []byte) ([]byte, error) {
	h, err := hashOf(hash)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(h.New, key)
	mac.Write(data)
	return mac.Sum(nil), nil
}

// HMACEqual reports whether signature is the HMAC of data. The time that it takes does not show where they differ.
func HMACEqual(hash string, key, signature, data []byte) (bool, error) {
	mac, err := HMAC(hash, key, data)
	return err == nil && subtle.ConstantTimeCompare(mac, signature) == 1, err
}

// resumed returns a hash that has taken what the state says; an empty state says nothing. name is MD5, or one that
// hashOf knows.
func resumed(name string, state []byte) (hash.Hash, error) {
	h, err := crypto.MD5, error(nil)
	if name != "MD5" {
		if h, err = hashOf(name); err != nil {
			return nil, err
		}
	}
	d := h.New()
	if len(state) == 0 {
		return d, nil
	}
	u, ok := d.(encoding.BinaryUnmarshaler)
	if !ok {
		return nil, errNoState
	}
	return d, u.UnmarshalBinary(state)
}

var errNoState = errors.New("this hash has no state to keep")

// DigestUpdate hashes data after what the state says, and returns the new state: some 200 bytes, whatever was hashed.
func DigestUpdate(name string, state, data []byte) ([]byte, error) {
	d, err := resumed(name, state)
	if err != nil {
		return nil, err
	}
	d.Write(data)
	m, ok := d.(encoding.BinaryMarshaler)
	if !ok {
		return nil, errNoState
	}
	return m.MarshalBinary()
}

// DigestEnd returns the hash of all that the state says.
func DigestEnd(name string, state []byte) ([]byte, error) {
	d, err := resumed(name, state)
	if err != nil {
		return nil, err
	}
	return d.Sum(nil), nil
}
