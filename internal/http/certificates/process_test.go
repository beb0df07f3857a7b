package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/acme"

	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/acmetest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const enough = time.Minute

// served are the hosts that a fleet serves, with their owners.
type served struct {
	mu sync.Mutex
	by map[string]string
}

func (s *served) Owner(host string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, ok := s.by[host]
	return owner, ok
}

func (s *served) Serves(host string) bool {
	_, ok := s.Owner(host)
	return ok
}

// set gives a host to an owner; "" = the fleet serves it no more.
func (s *served) set(host, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[host] = owner; owner == "" {
		delete(s.by, host)
	}
}

// fleet is a NATS server, a CA and hosts. The CA connects to the port, at which one process listens.
type fleet struct {
	t     *testing.T
	nats  *natsd.Server
	ca    *acmetest.CA
	port  int
	hosts *served
	keys  string // age identities
}

func newFleet(t *testing.T, hosts ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, nats: natstest.Start(t), port: natstest.FreePort(t), hosts: &served{by: map[string]string{}},
		keys: newKey(t)}
	f.ca = acmetest.Start(t, f.port, 90*24*time.Hour)
	f.ca.Prompt()
	for _, h := range hosts {
		f.hosts.set(h, "acme")
	}
	return f
}

func newKey(t *testing.T) string {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	return id.String() + "\n"
}

// process is one process of the fleet: a Manager behind a port.
type process struct {
	*Manager
	f    *fleet
	addr string
	log  *logged
	stop func()
}

// logged is what a process has logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts a process. With port 0 the CA does not reach it.
func (f *fleet) start(port int, change ...func(*Config, *times)) *process {
	f.t.Helper()
	js, err := jetstream.New(natstest.Connect(f.t, f.nats))
	require.NoError(f.t, err)
	ids, err := secrets.ParseIdentities([]byte(f.keys))
	require.NoError(f.t, err)
	c, t := Config{Directory: f.ca.Directory, Roots: f.ca.Roots, OwnerHosts: 20, Identities: ids}, defaultTimes
	t.wait = enough
	for _, change := range change {
		change(&c, &t)
	}
	p := &process{f: f, log: &logged{}}
	p.Manager, err = Open(f.t.Context(), js, c, f.hosts, zerolog.New(p.log), prometheus.NewRegistry())
	require.NoError(f.t, err)
	p.times = t
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	l, err := tls.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{GetCertificate: p.Get, NextProtos: []string{"h2", acme.ALPNProto}})
	require.NoError(f.t, err)
	p.addr = l.Addr().String()
	running.Go(func() { accept(l, &running) })
	p.stop = sync.OnceFunc(func() {
		_ = l.Close()
		cancel()
		running.Wait()
	})
	f.t.Cleanup(p.stop)
	return p
}

func accept(l net.Listener, running *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		running.Go(func() {
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		})
	}
}

// connect connects to a host at the process, and returns its certificate.
func (p *process) connect(host string) (*x509.Certificate, error) {
	c, err := (&net.Dialer{Timeout: enough}).Dial("tcp", p.addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	conn := tls.Client(c, &tls.Config{ServerName: host, RootCAs: p.f.ca.Issuer, NextProtos: []string{"h2"}})
	if err = conn.Handshake(); err != nil {
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}

// serial returns the serial number of the certificate of a host.
func (p *process) serial(host string) string {
	p.f.t.Helper()
	cert, err := p.connect(host)
	require.NoError(p.f.t, err, p.log)
	require.Equal(p.f.t, []string{strings.ToLower(host)}, cert.DNSNames)
	return cert.SerialNumber.String()
}

// refuses requires that a host gets no certificate.
func (p *process) refuses(host string) {
	p.f.t.Helper()
	_, err := p.connect(host)
	require.Error(p.f.t, err, host)
}

// bucket is the bucket, as any client of the fleet's NATS user has it.
func (f *fleet) bucket() jetstream.KeyValue {
	f.t.Helper()
	js, err := jetstream.New(natstest.Connect(f.t, f.nats))
	require.NoError(f.t, err)
	kv, err := js.KeyValue(f.t.Context(), Bucket)
	require.NoError(f.t, err)
	return kv
}

// idle reports whether the process orders nothing.
func (p *process) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total == 0
}
