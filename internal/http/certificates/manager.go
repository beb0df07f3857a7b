package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/crypto/acme"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Manager finds, orders and renews the certificates of one process. Any goroutine may call Get.
type Manager struct {
	*store
	hosts Hosts
	times times

	issued, failed, refused prometheus.Counter

	accountMu   sync.Mutex
	account     *acme.Client // nil = not needed yet, or it could not be had
	accountErr  error        // why not
	accountNext time.Time    // when it is tried again

	running sync.WaitGroup

	mu    sync.Mutex
	start func(*host) // begins the order of a host; nil = Run has not begun, or has ended
	known map[string]*host
	under map[string]int // orders under way, by owner
	total int            // orders under way
	told  time.Time      // when errOtherKey was logged
}

// host is what a process knows of a host that the fleet serves. Manager.mu guards it.
type host struct {
	name     string
	owner    string           // while an order is under way
	cert     *tls.Certificate // nil = none
	bad      error            // why the stored one cannot be used
	revision uint64           // of what cert and bad are
	work     chan struct{}    // closed when the order under way ends; nil = none is
	waiting  int              // connections that wait for it
	why      error            // what the last order ended with, until
	until    time.Time
}

// Errors of Get. They do not name the host: a stranger wrote it.
var (
	errNoHost    = errors.New("the client names no host that can have a certificate")
	errNotServed = errors.New("the client names a host that the fleet does not serve")
	errNoToken   = errors.New("there is no challenge for this host")
	errPending   = errors.New("the certificate is being ordered")
	errCrowd     = errors.New("too many connections wait for this certificate")
	errBusy      = errors.New("too many certificates are being ordered")
	errStopped   = errors.New("the process orders no certificates now")
)

// Open creates the bucket, or updates it to what it should be. Run comes next.
func Open(ctx context.Context, js jetstream.JetStream, c Config, hosts Hosts, log zerolog.Logger,
	reg prometheus.Registerer) (*Manager, error) {
	if _, err := (&resources.Reconciler{JS: js, Log: log}).Bucket(ctx, bucket(c.Replicas)); err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", Bucket, err)
	}
	orders := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pinwheel_http_certificate_orders_total", Help: "Orders of TLS certificates by ACME that ended in this process, by outcome: issued, failed, or refused because the owner may cause no more.",
	}, []string{"outcome"})
	m := &Manager{
		store: &store{js: js, cfg: c, mirror: newMirror(prefix(c.Directory), log)}, hosts: hosts, times: defaultTimes,
		issued: orders.WithLabelValues("issued"), failed: orders.WithLabelValues("failed"),
		refused: orders.WithLabelValues("refused"), known: map[string]*host{}, under: map[string]int{},
	}
	return m, reg.Register(orders)
}

// Run follows what other processes store, and renews certificates, until ctx is done.
func (m *Manager) Run(ctx context.Context) {
	m.mu.Lock()
	m.start = func(h *host) { m.running.Go(func() { m.work(ctx, h) }) }
	m.mu.Unlock()
	defer m.running.Wait()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.start = nil
	}()
	m.running.Go(func() { m.watch(ctx, m.open, m.times.pass, m.times.again) })
	select {
	case <-m.ready:
		m.renewKey(ctx)
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(m.times.look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.renew()
		case <-ctx.Done():
			return
		}
	}
}

// Get returns the certificate for a new connection: that of the host which the client names, or the answer to a
// challenge of the CA. A connection to a host that has none yet waits while it is ordered. The error does not say what
// the client wrote.
func (m *Manager) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name, ok := hostOf(hello.ServerName)
	if !ok {
		return nil, errNoHost
	}
	if !m.hosts.Serves(name) {
		return nil, errNotServed
	}
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acme.ALPNProto {
		return m.token(hello.Context(), name)
	}
	ctx, cancel := context.WithTimeout(hello.Context(), m.times.wait)
	defer cancel()
	select {
	case <-m.ready:
	case <-ctx.Done():
		return nil, errStopped
	}
	cert, h, work, err := m.find(name)
	if h == nil {
		return cert, err
	}
	select {
	case <-work:
	case <-ctx.Done():
	}
	return m.after(ctx, h)
}

// token returns the answer to a challenge. Another process may be storing it.
func (m *Manager) token(ctx context.Context, name string) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, m.times.token)
	defer cancel()
	for {
		v, ok, changed := m.get(kindToken + name)
		if ok {
			text, err := m.openValue(kindToken+name, v.sealed)
			if err != nil {
				return nil, err
			}
			return decode(name, text)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errNoToken
		}
	}
}

// find returns the certificate of a host. Without one it returns the host, and what is closed when the order of its
// certificate ends. The caller then calls after.
func (m *Manager) find(name string) (cert *tls.Certificate, h *host, work <-chan struct{}, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h = m.load(name)
	switch {
	case h.valid():
		return h.cert, nil, nil, nil
	case h.bad != nil:
		return nil, nil, nil, h.bad
	case h.work == nil && time.Now().Before(h.until):
		return nil, nil, nil, h.why
	case h.waiting >= maxWaiting:
		return nil, nil, nil, errCrowd
	case h.work == nil:
		if err := m.begin(h); err != nil {
			return nil, nil, nil, err
		}
	}
	h.waiting++
	return nil, h, h.work, nil
}

// after returns what a connection that waited gets.
func (m *Manager) after(ctx context.Context, h *host) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.waiting--
	m.load(h.name)
	switch {
	case h.valid():
		return h.cert, nil
	case h.bad != nil:
		return nil, h.bad
	case ctx.Err() != nil || h.why == nil:
		return nil, errPending
	}
	return nil, h.why
}

func (h *host) valid() bool { return h.cert != nil && time.Now().Before(h.cert.Leaf.NotAfter) }

// load returns a host with the newest certificate that is stored. The caller holds the lock.
func (m *Manager) load(name string) *host {
	h := m.known[name]
	if h == nil {
		h = &host{name: name}
		m.known[name] = h
	}
	v, ok, _ := m.get(kindCert + name)
	switch {
	case !ok:
		h.cert, h.bad, h.revision = nil, nil, 0
	case h.revision != v.revision:
		text, err := m.openValue(kindCert+name, v.sealed)
		if h.revision = v.revision; err == nil {
			h.cert, err = decode(name, text)
		}
		if h.bad = err; err != nil {
			h.cert = nil
			m.log.Error().Err(err).Msg("a stored certificate cannot be used, and none is ordered in its place: this process needs the key of the others, or remove the key from bucket " + Bucket)
		}
	}
	return h
}

// begin begins the order of a certificate. The caller holds the lock.
func (m *Manager) begin(h *host) error {
	owner, ok := m.hosts.Owner(h.name)
	switch {
	case !ok:
		return errNotServed
	case m.start == nil:
		return errStopped
	case m.total >= maxOrders || m.under[owner] >= ownerOrders:
		return errBusy
	}
	m.total++
	m.under[owner]++
	h.owner, h.work = owner, make(chan struct{})
	m.start(h)
	return nil
}

// work orders the certificate of a host, or waits for the process that does.
func (m *Manager) work(ctx context.Context, h *host) {
	ctx, cancel := context.WithTimeout(ctx, m.times.order)
	defer cancel()
	err := m.obtain(ctx, h.name, h.owner)
	m.mu.Lock()
	defer m.mu.Unlock()
	h.why, h.until = err, time.Time{}
	var wait *later
	switch {
	case errors.As(err, &wait) && wait.other:
		h.until = time.Now().Add(m.times.again)
	case wait != nil:
		h.until = wait.at
		m.log.Debug().Err(err).Str("host", h.name).Str("owner", h.owner).Msg("the certificate of a host is not ordered now")
		if !errors.Is(err, errFailed) {
			m.refused.Inc()
		}
	case errors.Is(err, errOtherKey):
		if h.until = time.Now().Add(m.times.backoff); time.Since(m.told) > time.Minute {
			m.told = time.Now()
			m.log.Error().Err(err).Msg("this process orders no certificates")
		}
	case err != nil:
		h.until = time.Now().Add(m.times.again)
		m.log.Warn().Err(err).Str("host", h.name).Str("owner", h.owner).Msg("the certificate of a host was not issued")
	}
	close(h.work)
	h.work = nil
	m.total--
	if m.under[h.owner]--; m.under[h.owner] == 0 {
		delete(m.under, h.owner)
	}
}

// obtain gets a certificate that is not due into the bucket, by an order of this process or of another one.
func (m *Manager) obtain(ctx context.Context, name, owner string) error {
	c, err := m.client(ctx)
	if err != nil {
		return err
	}
	for {
		changed := m.changes()
		fresh, renewal := m.fresh(name)
		if fresh {
			return nil
		}
		err := m.reserve(ctx, name, owner, renewal)
		var wait *later
		if err == nil {
			break
		}
		if !errors.As(err, &wait) || !wait.other {
			return err
		}
		until := time.NewTimer(time.Until(wait.at))
		select {
		case <-changed:
		case <-until.C:
		case <-ctx.Done():
			return wait
		}
		until.Stop()
	}
	text, err := m.order(ctx, c, name)
	if err == nil {
		err = m.write(ctx, kindCert+name, text)
	}
	m.conclude(ctx, name, owner, err)
	if err != nil {
		m.failed.Inc()
		return err
	}
	m.issued.Inc()
	m.log.Info().Str("host", name).Str("owner", owner).Msg("a certificate was issued")
	return nil
}

// fresh reports whether a host has a certificate that is not due, or else whether it has a valid one.
func (m *Manager) fresh(name string) (fresh, valid bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.load(name)
	return h.valid() && time.Now().Before(m.times.due(h.cert.Leaf)), h.valid()
}

// renew begins the orders of certificates that are due, and forgets hosts that are not served any more.
func (m *Manager) renew() {
	names := m.with(kindCert)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if !m.hosts.Serves(name) {
			continue
		}
		if h := m.load(name); h.cert != nil && h.work == nil && !time.Now().Before(h.until) && !time.Now().
			Before(m.times.due(h.cert.Leaf)) {
			if err := m.begin(h); err != nil {
				m.log.Debug().Err(err).Str("host", name).Msg("a certificate is renewed later")
			}
		}
	}
	for name, h := range m.known {
		if h.work == nil && h.waiting == 0 && !m.hosts.Serves(name) {
			delete(m.known, name)
		}
	}
}
