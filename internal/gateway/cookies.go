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
	list := slices.Clone(h["Set-Cookie"])
	for i, c := range list {
		list[i] = x.narrowed(c, w.Owner)
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

// narrowed is a cookie without the Domains that reach other hosts than those of owner.
func (x *exchange) narrowed(cookie, owner string) string {
	var kept []string
	for part := range strings.SplitSeq(cookie, ";") {
		if domain, ok := domainOf(part); ok && len(kept) > 0 && !x.stays(domain, owner) { // the first part is the cookie's value
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, ";")
}

// stays reports whether a domain, and all hosts below it, are of owner: it is the host of the request, or a policy
// grants it. A domain above the hosts of workers is nobody's, and neither is one below which another owner has a host.
func (x *exchange) stays(domain, owner string) bool {
	d := hostName(strings.TrimLeft(domain, "."))
	if d == "" || strings.Contains(d, ":") {
		return false
	}
	if of := x.g.cfg.Domain; of != "" && (d == of || strings.HasSuffix(of, "."+d)) {
		return false
	}
	return (d == hostName(x.r.Host) || x.g.Routes.grants(owner, d)) && !x.g.Routes.shared(owner, d)
}
