// Package certificates gets a TLS certificate for each host that the fleet serves, by ACME (RFC 8555) with the
// challenge tls-alpn-01 (RFC 8737), and renews it. All processes share account, certificates and challenges in the KV
// bucket PINWHEEL_CERTIFICATES, encrypted with the fleet's key for secrets. What an owner causes at the CA is bounded
// by a ledger for each owner and for each registered domain there, and so two processes do not order the same
// certificate.
//
// It uses golang.org/x/crypto/acme, and neither its autocert nor certmagic: docs/development/adr/0029 and 0066 say why.
package certificates
