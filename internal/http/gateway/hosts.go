package gateway

import (
	"net/http"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/http/localhost"
)

var notThisHost = &refusal{http.StatusMisdirectedRequest, "this process does not answer to this host: PINWHEEL_HTTP_HOSTS names those that it answers to"}

// answersTo reports whether a request may have this host, in the form of hostName. It matters where requests of every
// host reach workers that only the people at this machine should: then a page of another site, with a name of its own
// that points here, would read what they answer.
func (g *Gateway) answersTo(host string) bool {
	if len(g.cfg.Hosts) == 0 || localhost.Is(host) || g.Routes.names(host) {
		return true
	}
	return g.cfg.Domain != "" && strings.HasSuffix(host, "."+g.cfg.Domain) || (workers.Policy{Hosts: g.cfg.Hosts}).
		GrantsHost(host)
}

// names reports whether a route names the host, or a part of it. Routes of every host do not.
func (r *Routes) names(host string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.hosts[host] != nil {
		return true
	}
	for more := true; more; {
		if _, host, more = strings.Cut(host, "."); more && r.hosts["*."+host] != nil {
			return true
		}
	}
	return false
}

// count counts hosts that a policy grants, or takes, for each domain above them. "*" is not counted: it names no host.
// The caller holds the lock.
func (r *Routes) count(owner string, hosts []string, n int) {
	for _, host := range hosts {
		if host == workers.AnyHost {
			continue
		}
		for domain, more := strings.TrimPrefix(host, "*."), true; more; _, domain, more = strings.Cut(domain, ".") {
			of := r.granted[domain]
			if of == nil {
				of = map[string]int{}
				r.granted[domain] = of
			}
			if of[owner] += n; of[owner] == 0 {
				delete(of, owner)
			}
			if len(of) == 0 {
				delete(r.granted, domain)
			}
		}
	}
}

// grants reports whether a policy grants a host to an owner.
func (r *Routes) grants(owner, host string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.any != "" && owner == r.any || r.policies[owner].GrantsHost(host)
}

// shared reports whether another owner than this one has a domain, or a host below it.
func (r *Routes) shared(owner, domain string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	of := r.granted[domain]
	return len(of) > 1 || len(of) == 1 && of[owner] == 0
}
