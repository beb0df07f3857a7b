// Package localhost tells names that no page of another site can make its own. Such a page can have a name of its own
// point to this machine (DNS rebinding), and a browser then lets it read what a server here answers under that name.
package localhost

import (
	"net"
	"net/netip"
	"strings"
)

// Is reports whether the Host of a request, with or without port, is localhost, below localhost, or an address.
func Is(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
