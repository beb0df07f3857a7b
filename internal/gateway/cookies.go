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
	return strings.HasPrefix(strings.TrimLeft(cookie, " \t="), FleetCookies)
}
