package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/crypto/acme"
)

// challenge is the only one that needs nothing but the address of the gateway.
const challenge = "tls-alpn-01"

// errOtherKey says that this process cannot use what the fleet has.
var errOtherKey = errors.New("the ACME account in bucket " + Bucket + " cannot be opened with PINWHEEL_SECRETS_KEY of this process: it orders no certificates. Give it the key of the other processes, or remove the bucket if the key is lost")

// client returns the client of the fleet's account. The first process makes the account.
func (m *Manager) client(ctx context.Context) (*acme.Client, error) {
	m.accountMu.Lock()
	defer m.accountMu.Unlock()
	if m.account == nil && !time.Now().Before(m.accountNext) {
		m.account, m.accountErr = m.register(ctx)
		m.accountNext = time.Now().Add(m.times.account)
	}
	return m.account, m.accountErr
}

// register makes the fleet's account, or asks for it.
func (m *Manager) register(ctx context.Context) (*acme.Client, error) {
	key, err := m.accountKey(ctx)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck,forcetypeassert // it is one
	transport.TLSClientConfig = &tls.Config{RootCAs: m.cfg.Roots, MinVersion: tls.VersionTLS12}
	c := &acme.Client{
		Key: key, DirectoryURL: m.cfg.Directory, UserAgent: "pinwheel", RetryBackoff: backoff,
		HTTPClient: &http.Client{Transport: transport, Timeout: m.times.order / 4},
	}
	account := &acme.Account{}
	if m.cfg.Email != "" {
		account.Contact = []string{"mailto:" + m.cfg.Email}
	}
	if _, err = c.Register(ctx, account, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, fmt.Errorf("account at %s: %w", m.cfg.Directory, err)
	}
	return c, nil
}

// backoff is how long a request waits that the CA could not answer; -1 = it is given up. What the CA limits is not
// repeated here: the ledger says when the next order may be made.
func backoff(n int, _ *http.Request, r *http.Response) time.Duration {
	switch {
	case n > 5 || r != nil && r.StatusCode == http.StatusTooManyRequests:
		return -1
	case r != nil && r.StatusCode == http.StatusBadRequest: // a nonce that is too old
		return time.Millisecond
	}
	return time.Second << n / 2
}

// accountKey returns the key of the fleet's account. A process that cannot open it orders nothing: others could not
// open what it stores.
func (m *Manager) accountKey(ctx context.Context) (*ecdsa.PrivateKey, error) {
	for {
		e, err := m.read(ctx, keyAccount)
		if err != nil {
			return nil, err
		}
		if e != nil {
			text, err := m.openValue(keyAccount, e.Value())
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errOtherKey, err)
			}
			if time.Since(e.Created()) > kept/2 { // so that it does not go while it is used
				if err = m.write(ctx, keyAccount, text); err != nil {
					return nil, err
				}
			}
			return x509.ParseECPrivateKey(text)
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		text, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return nil, err
		}
		sealed, err := m.seal(keyAccount, text)
		if err == nil {
			err = m.update(ctx, keyAccount, sealed, 0)
		}
		if !errors.Is(err, errConflict) {
			return key, err
		}
	}
}

// order gets a certificate. The result has its key and the chain, PEM.
func (m *Manager) order(ctx context.Context, c *acme.Client, host string) ([]byte, error) {
	o, err := c.AuthorizeOrder(ctx, acme.DomainIDs(host))
	if err != nil {
		return nil, err
	}
	for _, url := range o.AuthzURLs {
		if err = m.authorize(ctx, c, host, url); err != nil {
			return nil, err
		}
	}
	if o, err = c.WaitOrder(ctx, o.URI); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{host}}, key)
	if err != nil {
		return nil, err
	}
	chain, _, err := c.CreateCertFromOrder(ctx, o, csr, true)
	if err != nil {
		return nil, err
	}
	return encode(key, chain)
}

// authorize shows that the fleet answers at the host.
func (m *Manager) authorize(ctx context.Context, c *acme.Client, host, url string) error {
	z, err := c.GetAuthorization(ctx, url)
	if err != nil || z.Status == acme.StatusValid {
		return err
	}
	i := slices.IndexFunc(z.Challenges, func(h *acme.Challenge) bool { return h.Type == challenge })
	if z.Status != acme.StatusPending || i < 0 {
		return fmt.Errorf("the CA offers no challenge %s: the authorization is %s", challenge, z.Status)
	}
	cert, err := c.TLSALPN01ChallengeCert(z.Challenges[i].Token, host)
	if err != nil {
		return err
	}
	text, err := encode(cert.PrivateKey, cert.Certificate)
	if err != nil {
		return err
	}
	// Whichever process the CA reaches has the answer.
	if err = m.write(ctx, kindToken+host, text); err != nil {
		return err
	}
	defer m.purge(ctx, kindToken+host)
	if _, err = c.Accept(ctx, z.Challenges[i]); err == nil {
		_, err = c.WaitAuthorization(ctx, url)
	}
	return err
}

func encode(key any, chain [][]byte) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for _, cert := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	}
	return text, nil
}

// decode reads what encode wrote for a host. It does not look at the time.
func decode(host string, text []byte) (*tls.Certificate, error) {
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", host, err)
	}
	if err = cert.Leaf.VerifyHostname(host); err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", host, err)
	}
	return &cert, nil
}

// due is when a certificate is renewed.
func (t times) due(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(min(cert.NotAfter.Sub(cert.NotBefore)*2/3, t.renew))
}
