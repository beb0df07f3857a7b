package certificates

import "strings"

// Hosts says which hosts the fleet serves. It decides by what the fleet has installed and granted. Any goroutine may
// call it.
type Hosts interface {
	// Serves reports whether the fleet serves a host: in lower case, without a final dot.
	Serves(host string) bool
	// Owner returns the owner who is charged for the certificate of a host that the fleet serves.
	Owner(host string) (owner string, ok bool)
}

// maxHost is the length of the longest name of a host.
const maxHost = 253

// hostOf reads a name that a client sent. ok is false when no public certificate can have it.
func hostOf(name string) (host string, ok bool) {
	if len(name) > maxHost+1 {
		return "", false
	}
	host = strings.ToLower(strings.TrimSuffix(name, "."))
	labels := strings.Split(host, ".")
	if len(labels) < 2 || len(host) > maxHost {
		return "", false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.ContainsFunc(l, notInLabel) {
			return "", false
		}
	}
	top := labels[len(labels)-1]
	return host, strings.Trim(top, "0123456789") != "" // else it is an address
}

func notInLabel(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
}
