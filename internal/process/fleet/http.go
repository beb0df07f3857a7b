package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/http/certificates"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// httpServer answers HTTP requests. The zero value answers none.
type httpServer struct {
	gateway  *gateway.Gateway
	listener net.Listener
	acme     *certificates.Manager // nil = certificates come from files, or there are none
}

// openHTTP opens the gateway of p, if one is configured. A child of a supervisor uses the supervisor's socket.
func openHTTP(p *Process, c *Child) (err error) {
	s := &p.http
	switch {
	case c != nil && c.http != nil:
		s.listener = c.http
	case p.cfg.HTTPAddr == "":
		return nil
	default:
		if s.listener, err = listenHTTP(p.cfg); err != nil {
			return err
		}
	}
	var certificate *gateway.Certificate
	if p.cfg.HTTPCert != "" {
		if certificate, err = gateway.OpenCertificate(p.cfg.HTTPCert, p.cfg.HTTPKey, p.log); err != nil {
			return err
		}
	}
	byACME, err := openCertificates(p)
	if err != nil {
		return err
	}
	addresses, _ := config.SplitAddresses(p.cfg.HTTPTrust)
	var list func() []string
	if p.cfg.HTTPMessages {
		list = p.webAddresses
	}
	s.gateway, err = gateway.New(gateway.Config{
		Domain: p.cfg.HTTPDomain, Paths: p.cfg.HTTPPaths, Hosts: p.cfg.HTTPHosts, Trust: addresses,
		MaxConnections: p.cfg.HTTPMaxConnections, OwnerRequests: p.cfg.HTTPOwnerRequests, Memory: int64(p.cfg.HTTPMemory),
		MaxBody: int64(p.cfg.HTTPMaxBody), Wait: p.cfg.HTTPWait, Certificate: certificate, Certificates: byACME,
		Messages: p.cfg.HTTPMessages, Addresses: list, Log: p.cfg.HTTPLog,
	}, gateway.Rooms{
		Runner: p.rooms.dispatch, Workers: httpWorkers{&p.deployed.catalog, p.secrets.values}, Routes: p.deployed.routes,
		Stored: newStoredRequests(p), Files: p.deployed.files, Output: p.rooms.host, Previews: p.secrets.values.previews(),
	}, p.log, p.registry)
	return err
}

// httpWorkers is the gateway.Workers of a process.
type httpWorkers struct {
	*catalog.Catalog
	*secretValues
}

// storedRequests stores the events of HTTP requests. It is the gateway.Publisher of a process. Replies to an owner's
// events go to subjects of this owner, as for its other publishers.
type storedRequests struct {
	nc     *nats.Conn
	prefix string
	inbox  string // one of PINWHEEL_REPLY_PREFIXES
	admit  func(owner string, size int) *events.Failure
	// published notes whether the stream took an event: err is that of the publish.
	published func(err error)

	mu      sync.Mutex
	clients map[string]*client.Client // by owner; one that has stored a request has a subscription from then on
}

func newStoredRequests(p *Process) *storedRequests {
	c := p.rooms.consumer
	return &storedRequests{nc: p.link.nc, prefix: p.cfg.Prefix, inbox: p.cfg.ReplyPrefixes[0], admit: c.AdmitCall,
		published: c.Published, clients: map[string]*client.Client{}}
}

func (s *storedRequests) of(owner string) (*client.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[owner]
	if c != nil {
		return c, nil
	}
	c, err := client.New(s.nc, client.Prefix(s.prefix),
		client.Inbox(strings.ReplaceAll(s.inbox, events.OwnerInPrefix, owner)))
	if err == nil {
		s.clients[owner] = c
	}
	return c, err
}

// Admit is part of gateway.Publisher.
func (s *storedRequests) Admit(owner string, size int) *events.Failure { return s.admit(owner, size) }

// Publish is part of gateway.Publisher.
func (s *storedRequests) Publish(ctx context.Context, r client.Request) (*client.Ack, error) {
	c, err := s.of(r.Owner)
	if err != nil {
		return nil, err
	}
	ack, err := c.Publish(ctx, r)
	s.note(err)
	return ack, err
}

// note tells published how the publish of an event ended. The client's error for no stream becomes that of NATS.
func (s *storedRequests) note(err error) {
	if errors.Is(err, client.ErrNoStream) {
		err = nats.ErrNoResponders
	}
	s.published(err)
}

// Open is part of gateway.Publisher.
func (s *storedRequests) Open(ctx context.Context, r client.Request) (*events.Reply, io.ReadCloser, error) {
	c, err := s.of(r.Owner)
	if err != nil {
		return nil, nil, err
	}
	reply, body, err := c.Open(ctx, r)
	s.note(err)
	return reply, body, err
}

func listenHTTP(cfg config.Config) (net.Listener, error) {
	l, err := net.Listen("tcp", cfg.HTTPAddr)
	if err != nil {
		return nil, fmt.Errorf("PINWHEEL_HTTP_ADDR is %q: %w", cfg.HTTPAddr, err)
	}
	return l, nil
}

// webAddresses are the addresses of the workers of the owner that answers below paths, sorted.
func (p *Process) webAddresses() (list []string) {
	for _, in := range p.deployed.catalog.All() {
		if at := p.WebAddress(in.Active()); at != "" && in.Active().Owner == p.cfg.HTTPPaths {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// WebAddress is where a browser finds a worker; "" = nowhere. Pages with files have a host of their own, because their
// links often begin with /.
func (p *Process) WebAddress(w *workers.Worker) string {
	at, cfg, scheme := p.HTTPAddr(), p.cfg, "http"
	if at == "" || w == nil || !w.HTTP.On() || w.Assets == nil && !slices.Contains(w.Handlers, events.Fetch) {
		return ""
	}
	if cfg.HTTPCert != "" {
		scheme = "https"
	}
	base := "/"
	if w.HTTP != nil {
		base = w.HTTP.Base + "/"
	}
	_, port, err := net.SplitHostPort(at)
	switch {
	case cfg.HTTPPaths == w.Owner && (w.Assets == nil || cfg.HTTPDomain == "" || err != nil):
		return fmt.Sprintf("%s://%s/%s%s", scheme, at, w.Name, base)
	case cfg.HTTPDomain == "" || err != nil:
		return ""
	}
	return fmt.Sprintf("%s://%s--%s.%s:%s%s", scheme, w.Name, w.Owner, cfg.HTTPDomain, port, base)
}

// HTTPAddr is the address where the process answers HTTP requests; "" = none.
func (p *Process) HTTPAddr() string { return p.http.addr() }

// addr is the address for HTTP requests; "" = none.
func (s *httpServer) addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// previews signs and checks hosts of versions. All processes with the same PINWHEEL_SECRETS_KEY accept the same.
func (s *secretValues) previews() *gateway.Previews {
	return gateway.NewPreviews(s.ids.Derive("hosts of versions"))
}

// Preview is part of control.Process. A process that trusts proxies is behind one that speaks TLS at the usual port.
func (c controlled) Preview(w, active *workers.Worker, until time.Time) (host, url string, err error) {
	p := c.process
	host, err = p.secrets.values.previews().Host(w, active, p.cfg.HTTPDomain, until)
	if err != nil {
		return "", "", err
	}
	scheme, usual, at := "http", "80", host
	if p.cfg.HTTPCert != "" || p.cfg.HTTPAcme != "" || len(p.cfg.HTTPTrust) > 0 {
		scheme, usual = "https", "443"
	}
	if _, port, err := net.SplitHostPort(p.HTTPAddr()); err == nil && port != usual && len(p.cfg.HTTPTrust) == 0 {
		at = net.JoinHostPort(host, port)
	}
	path := "/"
	if w.HTTP != nil {
		path = w.HTTP.Base + "/"
	}
	return host, scheme + "://" + at + path, nil
}

// serve answers HTTP requests from the time when up is closed until ctx is done. It calls first before. drained is
// closed when all of them are answered, or work is done.
func (s *httpServer) serve(ctx, work context.Context, up <-chan struct{}, first func(), log zerolog.Logger,
	running *sync.WaitGroup) (drained <-chan struct{}) {
	done := make(chan struct{})
	if s.gateway == nil {
		close(done)
		return done
	}
	if s.acme != nil {
		running.Go(func() { s.acme.Run(work) })
	}
	running.Go(func() {
		select {
		case <-up:
		case <-ctx.Done():
			return
		}
		first()
		if err := s.gateway.Serve(s.listener); err != nil {
			log.Error().Err(err).Msg("HTTP requests are not answered any more")
		}
	})
	running.Go(func() {
		defer close(done)
		<-ctx.Done()
		s.gateway.Drain(work)
	})
	return done
}

// close ends what is left of the requests.
func (s *httpServer) close() {
	if s.gateway != nil {
		s.gateway.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
}

// sharedSockets are what a supervisor opens for its children. It accepts no connections itself.
type sharedSockets struct {
	http *net.TCPListener // nil = none
}

func openSockets(cfg config.Config) (*sharedSockets, error) {
	s := &sharedSockets{}
	if cfg.HTTPAddr == "" {
		return s, nil
	}
	l, err := listenHTTP(cfg)
	if err != nil {
		return nil, err
	}
	s.http = l.(*net.TCPListener) //nolint:errcheck,forcetypeassert // it listens on tcp
	return s, nil
}

// addr is the address for HTTP requests; "" = none.
func (s *sharedSockets) addr() string {
	if s.http == nil {
		return ""
	}
	return s.http.Addr().String()
}

// forChild returns descriptors for one child; none or one. The caller closes them. It fails when
// the socket is closed. Each child has its own, because that may happen while a child starts.
func (s *sharedSockets) forChild() ([]*os.File, error) {
	if s.http == nil {
		return nil, nil
	}
	f, err := s.http.File()
	if err != nil {
		return nil, fmt.Errorf("the socket for HTTP requests: %w", err)
	}
	return []*os.File{f}, nil
}

func (s *sharedSockets) close() {
	if s.http != nil {
		_ = s.http.Close()
	}
}
