package fleet

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/http/certificates"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
)

// openCertificates opens what gets certificates by ACME; nil = PINWHEEL_HTTP_ACME is empty. Only hosts of workers that
// are installed in this process have any.
func openCertificates(p *Process) (gateway.Certificates, error) {
	if p.cfg.HTTPAcme == "" {
		return nil, nil
	}
	if err := p.cfg.CheckACMEKey(); err != nil {
		return nil, err
	}
	roots, err := certificates.LoadRoots(p.cfg.HTTPAcmeCA)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(p.link.nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	p.http.acme, err = certificates.Open(ctx, js, certificates.Config{
		Directory: p.cfg.ACMEDirectory(), Email: p.cfg.HTTPAcmeEmail, Roots: roots, OwnerHosts: p.cfg.HTTPAcmeOwnerHosts,
		DomainOrders: p.cfg.ACMEDomainOrders(), Identities: p.secrets.values.ids, Replicas: p.cfg.Replicas,
	}, p.hosts(), p.log, p.registry)
	if err != nil {
		return nil, err
	}
	return p.http.acme, nil
}

// hosts says which hosts may have a certificate.
func (p *Process) hosts() gateway.Hosts {
	return gateway.Hosts{Domain: p.cfg.HTTPDomain, Workers: httpWorkers{&p.deployed.catalog, p.secrets.values},
		Routes: p.deployed.routes}
}
