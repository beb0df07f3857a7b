package egress

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Bounds of the keys and certificates of a handler: what they cost grows much faster than their length.
const (
	maxRSABits = 8192     // of a key, as for crypto
	maxKeyDER  = 5 << 10  // bytes of a private key: one of RSA with maxRSABits has less
	maxCertDER = 16 << 10 // bytes of a certificate
)

var (
	errAuthorities = errors.New("the authorities (ca) are not certificates in PEM")
	errCertificate = errors.New("the certificate (cert) and its key are not a pair in PEM")
	errVersions    = errors.New("minVersion of TLS is above maxVersion")
	errNoName      = errors.New("no name of the server is given, to which its certificate must belong")
	errKeyLong     = fmt.Errorf("the key is too long: at most %d bytes of DER, which RSA of %d bits needs", maxKeyDER, maxRSABits)
	errCertLong    = fmt.Errorf("a certificate is too long: at most %d bytes", maxCertDER)
	errKeyBits     = fmt.Errorf("the RSA key of a certificate is too long: at most %d bits are allowed", maxRSABits)
)

// authoritiesOf reads the authorities that a handler trusts, PEM. What is no certificate, or none that is understood,
// is left out.
func authoritiesOf(text string) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := checkCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if cert != nil {
			pool.AddCert(cert)
			found = true
		}
	}
	if !found {
		return nil, errAuthorities
	}
	return pool, nil
}

// checkCertificate reads a certificate, unless it or its key is too long. Without an error and a certificate, der is
// none.
func checkCertificate(der []byte) (*x509.Certificate, error) {
	if len(der) > maxCertDER {
		return nil, errCertLong
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it is left out, as crypto/x509 does
	}
	if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return nil, errKeyBits
	}
	return cert, nil
}

// pairOf reads a certificate of a handler and its key, PEM. A key is checked while it is read, which takes long, so its
// length comes first.
func pairOf(certificate, key string) (pair tls.Certificate, err error) {
	for block, rest := pem.Decode([]byte(certificate)); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			if _, err := checkCertificate(block.Bytes); err != nil {
				return pair, err
			}
		}
	}
	for block, rest := pem.Decode([]byte(key)); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") && len(block.Bytes) > maxKeyDER {
			return pair, errKeyLong
		}
	}
	if pair, err = tls.X509KeyPair([]byte(certificate), []byte(key)); err != nil {
		return pair, errCertificate
	}
	return pair, nil
}
