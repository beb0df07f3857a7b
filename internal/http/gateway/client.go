package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress is who sent a request, as far as it is known.
type clientAddress struct {
	address netip.Addr // the zero Addr: not known
	chain   string     // X-Forwarded-For for the worker
	scheme  string     // http or https
}

// clientOf returns who sent a request. Headers that say so count only from trusted addresses.
func (g *Gateway) clientOf(r *http.Request) clientAddress {
	c := clientAddress{scheme: "http"}
	if r.TLS != nil {
		c.scheme = "https"
	}
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		c.address = at.Addr().Unmap().WithZone("")
	}
	c.chain = c.address.String()
	if !g.trusts(c.address) {
		return c
	}
	if s := r.Header.Get("X-Forwarded-Proto"); s == "http" || s == "https" {
		c.scheme = s
	}
	before := strings.Join(r.Header["X-Forwarded-For"], ", ")
	if before == "" {
		return c
	}
	c.chain = before + ", " + c.chain
	// Each proxy adds the address that it saw. The last one that no trusted proxy has is the client's.
	for _, hop := range slices.Backward(strings.Split(before, ",")) {
		a, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		c.address = a.Unmap().WithZone("")
		if !g.trusts(c.address) {
			break
		}
	}
	return c
}

func (g *Gateway) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(g.cfg.Trust, func(p netip.Prefix) bool { return p.Contains(a) })
}
