package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// handshake is how long a handshake of TLS may take.
const handshake = 10 * time.Second

// Verify is how much of a server's certificate must be right.
type Verify int

// How much of it.
const (
	VerifyAll   Verify = iota // an authority that is trusted, and the name
	VerifyChain               // an authority that is trusted: who asks looks at the name
	VerifyNone                // nothing
	verifies                  // how many there are
)

// Known reports whether v is one of them.
func (v Verify) Known() bool { return v >= 0 && v < verifies }

// TLS is how a TCP connection of a handler becomes one of TLS.
type TLS struct {
	ServerName  string   // to whom the certificate belongs
	Protocols   []string // those of ALPN, or none
	Verify      Verify
	Authorities string // PEM; "" = those that fetch() trusts
	Certificate string // of the handler, PEM; "" = none
	Key         string // of Certificate, PEM
	TLS12       bool   // no newer version than 1.2
	TLS13       bool   // no older version than 1.3
}

// Secured is a connection of TLS.
type Secured struct {
	*tls.Conn
	// Distrust is what of the certificate is wrong, where Verify let it pass; nil = nothing.
	Distrust error
}

// Secure makes of a connection one of TLS. If that fails, the connection is closed. ctx and a limit of 10 s bound how
// long it takes. spent is told the CPU time that it took. The error is in words for the author of a handler.
func (c *Connections) Secure(
	ctx context.Context, conn net.Conn, server string, with *TLS, spent func(time.Duration),
) (*Secured, error) {
	runtime.LockOSThread() // whose CPU time is measured: a handshake stays on its goroutine
	defer runtime.UnlockOSThread()
	began := perowner.ThreadTime()
	defer func() { spent(perowner.ThreadTime() - began) }()
	s := &Secured{}
	config, err := c.config(with, s)
	if err != nil {
		_ = conn.Close()
		return nil, Told{Text: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	s.Conn = tls.Client(conn, config)
	if err := s.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, Told{"no TLS with " + server + " came about in time", "ETIMEDOUT"}
		}
		return nil, Tell(err, server)
	}
	return s, nil
}

// config makes the configuration of one connection. What is wrong with the certificate, and passes, s gets.
func (c *Connections) config(with *TLS, s *Secured) (config *tls.Config, err error) {
	//nolint:gosec // VerifyConnection verifies, as with.Verify says
	config = &tls.Config{
		ServerName: with.ServerName, NextProtos: with.Protocols, MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
	}
	if with.TLS12 {
		config.MaxVersion = tls.VersionTLS12
	}
	if with.TLS13 {
		config.MinVersion = tls.VersionTLS13
	}
	switch {
	case with.TLS12 && with.TLS13:
		return nil, errVersions
	case with.ServerName == "" && with.Verify == VerifyAll: // crypto/x509 would look at no name
		return nil, errNoName
	}
	if c.client.TLS != nil {
		config.RootCAs = c.client.TLS.RootCAs
	}
	if with.Authorities != "" {
		if config.RootCAs, err = authoritiesOf(with.Authorities); err != nil {
			return nil, err
		}
	}
	if with.Certificate != "" {
		pair, err := pairOf(with.Certificate, with.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		err := verify(state, config.RootCAs, with.Verify, with.ServerName)
		if with.Verify == VerifyNone {
			s.Distrust, err = err, nil
		}
		return err
	}
	return config, nil
}

func verify(state tls.ConnectionState, roots *x509.CertPool, how Verify, name string) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	if how != VerifyChain {
		options.DNSName = name
	}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(options)
	return err
}
