package gateway

import (
	"crypto/tls"
	"slices"
	"strings"

	"golang.org/x/crypto/acme"

	"github.com/pinwheel-run/pinwheel/events"
)

// Certificates has a certificate for each host. Any goroutine may call its methods.
type Certificates interface {
	// Get returns the certificate for a new connection, or for a challenge of ACME.
	Get(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// tlsConfig is for the server; nil = plain HTTP.
func (c Config) tlsConfig() *tls.Config {
	switch {
	case c.Certificates != nil:
		return &tls.Config{
			MinVersion: tls.VersionTLS12, GetCertificate: c.Certificates.Get,
			NextProtos: []string{"h2", "http/1.1", acme.ALPNProto}, // the server closes a connection with the last one
		}
	case c.Certificate != nil:
		return c.Certificate.config()
	}
	return nil
}

// Hosts says which hosts may have a certificate of their own: WORKER--OWNER.DOMAIN of an installed worker that answers
// HTTP requests, and the hosts of routes that are granted. Hosts of versions have none, and neither has a host that
// only a route with * has: there is no end of them. Any goroutine may call its methods.
type Hosts struct {
	Domain  string // as in Config
	Workers Workers
	Routes  *Routes
}

// Serves reports whether a host may have a certificate. host is in lower case.
func (h Hosts) Serves(host string) bool {
	if t, ok := byHost(host, h.Domain); ok {
		return h.answers(t)
	}
	return h.Routes.has(host)
}

// Owner returns the owner of the workers at a host. If workers of several owners have paths of it, it is the first by
// name.
func (h Hosts) Owner(host string) (owner string, ok bool) {
	if t, is := byHost(host, h.Domain); !is {
		return h.Routes.owner(host)
	} else if h.answers(t) {
		return t.owner, true
	}
	return "", false
}

func (h Hosts) answers(t target) bool {
	if t.preview != "" {
		return false
	}
	in, ok := h.Workers.Installed(t.owner, t.worker)
	if !ok {
		return false
	}
	w := in.Active()
	return w != nil && w.HTTP.On() && (w.Assets != nil || slices.Contains(w.Handlers, events.Fetch))
}

// has reports whether a route names exactly this host.
func (r *Routes) has(host string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.hosts[host] != nil && !strings.Contains(host, "*")
}

// owner returns the first owner by name with a route that names exactly this host.
func (r *Routes) owner(host string) (first string, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := r.hosts[host]
	if p == nil || strings.Contains(host, "*") {
		return "", false
	}
	for _, of := range []map[string][]holder{p.exact, p.below} {
		for _, holders := range of { // sorted by owner
			if o := holders[0].owner; first == "" || o < first {
				first = o
			}
		}
	}
	return first, true
}
