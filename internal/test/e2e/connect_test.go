package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// authority signs certificates and writes them to files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// sign writes NAME.crt and NAME.key.
func (a *authority) sign(name string, c *x509.Certificate, by *x509.Certificate,
	with *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if by == nil {
		by, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	require.NoError(a.t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "EC PRIVATE KEY", Bytes: private}} {
		require.NoError(a.t, os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600))
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key
}

// serverTLS returns the configuration of a server that shows a certificate of a and requires one from its clients.
func (a *authority) serverTLS() *tls.Config {
	a.t.Helper()
	a.sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, a.cert, a.key)
	a.sign("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.cert, a.key)
	pair, err := tls.LoadX509KeyPair(a.file("server.crt"), a.file("server.key"))
	require.NoError(a.t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// connects reports whether a process with this configuration may use JetStream.
func connects(t *testing.T, cfg config.Config) error {
	t.Helper()
	require.NoError(t, cfg.Validate())
	nc, err := config.Connect(cfg)
	if err != nil {
		return err
	}
	defer nc.Close()
	_, err = nc.Request("$JS.API.INFO", nil, patience)
	return err
}

func TestConnectByTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cfg := testConfig(t)
	cfg.NatsURL = natstest.StartOptions(t, &server.Options{TLSConfig: a.serverTLS(), TLSTimeout: 5, TLS: true,
		TLSVerify: true})
	require.ErrorContains(t, connects(t, cfg), "certificate", "nobody knows who signed it")
	cfg.NatsCA = a.file("ca.crt")
	require.Error(t, connects(t, cfg), "the server wants a certificate")
	cfg.NatsCert, cfg.NatsKey = a.file("client.crt"), a.file("client.key")
	require.NoError(t, connects(t, cfg))
	logged, err := served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, "durability: ")
	code, out := runDoctor(t, cfg)
	require.Equal(t, exitBad, code) // the fleet has ended
	require.NotContains(t, out, "everything")

	cfg.NatsKey = ""
	require.ErrorContains(t, cfg.Validate(), "PINWHEEL_NATS_KEY")
	other := newAuthority(t)
	cfg.NatsCA, cfg.NatsKey = other.file("ca.crt"), a.file("client.key")
	require.ErrorContains(t, connects(t, cfg), "unknown authority")
}

func TestConnectByTokenAndPassword(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.NatsURL = natstest.StartOptions(t, &server.Options{Authorization: "t0ken"})
	require.ErrorContains(t, connects(t, cfg), "Authorization Violation")
	cfg.NatsToken = "t0ken"
	require.NoError(t, connects(t, cfg))
	cfg.NatsToken = ""
	cfg.NatsURL = natstest.StartOptions(t, &server.Options{Username: "u", Password: "p"})
	cfg.NatsUser, cfg.NatsPassword = "u", "wrong"
	require.ErrorContains(t, connects(t, cfg), "Authorization Violation")
	cfg.NatsPassword = "p"
	require.NoError(t, connects(t, cfg))
}

// seed writes the seed of a new user key to a file.
func seed(t *testing.T) (public, file string, pair nkeys.KeyPair) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err = pair.PublicKey()
	require.NoError(t, err)
	text, err := pair.Seed()
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "user.nk")
	require.NoError(t, os.WriteFile(file, append(bytes.Clone(text), '\n'), 0o600))
	return public, file, pair
}

func TestConnectByNkey(t *testing.T) {
	t.Parallel()
	public, file, _ := seed(t)
	_, stranger, _ := seed(t)
	cfg := testConfig(t)
	cfg.NatsURL = natstest.StartOptions(t, &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}})
	cfg.NatsNkey = stranger
	require.ErrorContains(t, connects(t, cfg), "Authorization Violation")
	cfg.NatsNkey = file
	require.NoError(t, connects(t, cfg))
	require.NoError(t, os.WriteFile(stranger, []byte("no seed"), 0o600))
	cfg.NatsNkey = stranger
	require.ErrorContains(t, connects(t, cfg), "(PINWHEEL_NATS_NKEY)")
}

// A setup with operators, accounts and users with JWTs, and a user's credentials file.
func TestConnectByCreds(t *testing.T) {
	t.Parallel()
	operator, err := nkeys.CreateOperator()
	require.NoError(t, err)
	operatorKey, err := operator.PublicKey()
	require.NoError(t, err)
	account, err := nkeys.CreateAccount()
	require.NoError(t, err)
	accountKey, err := account.PublicKey()
	require.NoError(t, err)
	claims := jwt.NewAccountClaims(accountKey)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	accountJWT, err := claims.Encode(operator)
	require.NoError(t, err)
	system, err := nkeys.CreateAccount()
	require.NoError(t, err)
	systemKey, err := system.PublicKey()
	require.NoError(t, err)
	systemJWT, err := jwt.NewAccountClaims(systemKey).Encode(operator)
	require.NoError(t, err)
	resolver := &server.MemAccResolver{}
	require.NoError(t, resolver.Store(accountKey, accountJWT))
	require.NoError(t, resolver.Store(systemKey, systemJWT))
	trusted := jwt.NewOperatorClaims(operatorKey)
	trusted.SystemAccount = systemKey
	cfg := testConfig(t)
	cfg.NatsURL = natstest.StartOptions(t, &server.Options{TrustedOperators: []*jwt.OperatorClaims{trusted},
		AccountResolver: resolver, SystemAccount: systemKey})
	require.ErrorContains(t, connects(t, cfg), "Authorization Violation")

	userKey, _, user := seed(t)
	userJWT, err := jwt.NewUserClaims(userKey).Encode(account)
	require.NoError(t, err)
	secret, err := user.Seed()
	require.NoError(t, err)
	creds, err := jwt.FormatUserConfig(userJWT, secret)
	require.NoError(t, err)
	cfg.NatsCreds = filepath.Join(t.TempDir(), "user.creds")
	require.NoError(t, os.WriteFile(cfg.NatsCreds, creds, 0o600))
	require.NoError(t, connects(t, cfg))
}
