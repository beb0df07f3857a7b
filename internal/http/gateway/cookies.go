package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// FleetCookies begins the names of the cookies of the console. A browser sends a cookie to all ports of a host, so an
// operator who visits a worker on the host of the console sends the session of the console, too.
const FleetCookies = "pinwheel_"

// withoutFleetCookies is a Cookie header for a worker.
func withoutFleetCookies(header string) string {
	if !strings.Contains(header, FleetCookies) {
		return header
	}
	var kept []string
	for one := range strings.SplitSeq(header, ";") {
		if !isFleetCookie(one) {
			kept = append(kept, strings.Trim(one, " \t"))
		}
	}
	return strings.Join(kept, "; ")
}

// dropFleetCookies takes them out of the headers of a response.
func dropFleetCookies(h http.Header) {
	if slices.ContainsFunc(h["Set-Cookie"], isFleetCookie) {
		h["Set-Cookie"] = slices.DeleteFunc(slices.Clone(h["Set-Cookie"]), isFleetCookie)
	}
}

// isFleetCookie reports whether NAME=VALUE, with or without attributes, is a cookie of the console, or is one when a
// browser sends it back: it leaves out the = before a value without a name.
func isFleetCookie(cookie string) bool {
	return strings.HasPrefix(strings.TrimPrefix(strings.TrimLeft(cookie, " \t="), "__Host-"), FleetCookies)
}

// cookies takes what a worker must not set out of the headers of a response: cookies of the console, and the Domain of
// cookies that would go beyond the hosts of the worker's owner. Without it a cookie is of the host of the request.
func (x *exchange) cookies(h http.Header) {
	dropFleetCookies(h)
	w := x.service.worker
	if w == nil || !slices.ContainsFunc(h["Set-Cookie"], namesDomain) {
		return
	}
	reach := reach{x.g.Routes, x.g.cfg.Domain, w.Owner, hostName(x.r.Host)}
	list := slices.Clone(h["Set-Cookie"])
	for i, c := range list {
		list[i] = reach.narrowed(c)
	}
	h["Set-Cookie"] = list
}

func namesDomain(cookie string) bool {
	for part := range strings.SplitSeq(cookie, ";") {
		if _, ok := domainOf(part); ok {
			return true
		}
	}
	return false
}

// domainOf reads an attribute of a cookie (RFC 6265bis §5.6.3).
func domainOf(part string) (domain string, ok bool) {
	name, value, _ := strings.Cut(part, "=")
	return strings.Trim(value, " \t"), strings.EqualFold(strings.Trim(name, " \t"), "Domain")
}

// reach says how far the cookies of one response may go.
type reach struct {
	routes *Routes
	domain string // of the hosts of workers
	owner  string // of the worker
	host   string // of the request
}

// narrowed is a cookie without the Domains that reach other hosts than those of the owner.
func (r reach) narrowed(cookie string) string {
	var kept []string
	for part := range strings.SplitSeq(cookie, ";") {
		if domain, ok := domainOf(part); ok && len(kept) > 0 && !r.allows(domain) { // the first part is the cookie's value
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, ";")
}

// allows reports whether a domain, and all hosts below it, are of the owner: it is the host of the request, or a policy
// grants it. A domain above the hosts of workers is nobody's, and neither is one below which another owner has a host.
func (r reach) allows(domain string) bool {
	d := hostName(strings.TrimLeft(domain, "."))
	if d == "" || strings.Contains(d, ":") {
		return false
	}
	if r.domain != "" && (d == r.domain || strings.HasSuffix(r.domain, "."+d)) {
		return false
	}
	return (d == r.host || r.routes.grants(r.owner, d)) && !r.routes.shared(r.owner, d)
}
