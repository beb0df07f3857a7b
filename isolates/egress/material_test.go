package egress

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// certified makes a certificate of a public key, signed by some other key.
func certified(t *testing.T, public any) string {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
	require.NoError(t, err)
	return inPEM("CERTIFICATE", der)
}

// Keys and certificates of a handler whose use would take long are refused before they are used.
func TestKeyMaterialIsBounded(t *testing.T) {
	t.Parallel()
	huge := new(big.Int).SetBit(big.NewInt(1), maxRSABits, 1)
	good := certified(t, &rsa.PublicKey{N: new(big.Int).Rsh(huge, 1), E: 65537})
	long := certified(t, &rsa.PublicKey{N: huge, E: 65537})
	longest := certified(t, &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 8*maxCertDER, 1), E: 65537})
	_, err := authoritiesOf(good + inPEM("CERTIFICATE", []byte("none")))
	require.NoError(t, err)
	_, err = authoritiesOf(good + long)
	require.ErrorIs(t, err, errKeyBits)
	_, err = authoritiesOf(longest)
	require.ErrorIs(t, err, errCertLong)
	_, err = authoritiesOf("none")
	require.ErrorIs(t, err, errAuthorities)
	bomb := inPEM("RSA PRIVATE KEY", bytes.Repeat([]byte{0x30}, maxKeyDER+1))
	_, err = pairOf(good, bomb)
	require.ErrorIs(t, err, errKeyLong)
	_, err = pairOf(long, "")
	require.ErrorIs(t, err, errKeyBits)
	_, err = pairOf(good, "")
	require.ErrorIs(t, err, errCertificate)
	// The bound of a private key lets one of RSA pass that the bound of its bits lets pass.
	parts := new(big.Int).Rsh(huge, 1)
	half := new(big.Int).Rsh(huge, maxRSABits/2)
	require.Less(t, 2*len(parts.Bytes())+5*len(half.Bytes())+100, maxKeyDER)
}

// The CPU time of a handshake is told, also of one that fails.
func TestHandshakesAreCharged(t *testing.T) {
	t.Parallel()
	f := New(nil, nil)
	t.Cleanup(f.Close)
	c := f.Of("acme")
	defer c.Release()
	for _, with := range []*TLS{{ServerName: "x"}, {Authorities: "none"}, {TLS12: true, TLS13: true}, {}} {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() { // it ends with the pipe
			defer close(done)
			_ = tls.Server(there, &tls.Config{MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
			_ = there.Close()
		}()
		var spent time.Duration
		_, err := c.Secure(t.Context(), here, "x:1", with, func(cpu time.Duration) { spent += cpu })
		require.Error(t, err)
		require.Positive(t, spent)
		<-done
	}
}
