// Package webcrypto computes what the Web Cryptography API asks for, with Go's cryptography. It knows nothing of JavaScript: keys
// are bytes that come in and go out, so there is no handle that could leak or outlive its owner. Functions may be called from any
// goroutine; none keeps or changes its arguments. Errors are for the author of a worker to read and hold no key material.
//
// A key is, as Key and the functions of each algorithm take it:
//
//   - secret: its bytes
//   - RSA: PKCS #1 in DER, private or public
//   - elliptic curve: the uncompressed point; of a private key the scalar, of the curve's full length, and then the point
//   - Ed25519, X25519: 32 bytes, Ed448: 57, X448: 56; of a private key the seed or scalar and then the public key
package webcrypto
