// Package webcrypto implements the operations of the Web Cryptography API with Go's cryptography. It does not depend on
// JavaScript. Keys are bytes that are passed in and returned, so there is no handle that could leak or outlive its
// owner. Any goroutine may call the functions. They do not keep or change their arguments. Errors are for the author of
// a worker and contain no key material.
//
// The functions of each algorithm take a key as:
//
//   - secret: its bytes
//   - RSA: PKCS #1 in DER, private or public
//   - elliptic curve: the uncompressed point; for a private key the scalar, of the full length of the curve, and then
//     the point
//   - Ed25519, X25519: 32 bytes, Ed448: 57, X448: 56; for a private key the seed or scalar and then the public key
package webcrypto
