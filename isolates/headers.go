package isolates

import (
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
)

// Bounds of a response's headers. Servers and proxies on the way accept about as much, and a reply must fit into a
// message.
const (
	maxHeaders     = 100
	maxHeader      = 8 << 10  // name and value of one, bytes
	maxHeaderBytes = 64 << 10 // names and values of all, bytes
)

// checkHeaders returns a failure if the headers of a response are too many or too long. flat is name, value, name,
// value and so on.
func checkHeaders(flat []string) *events.Failure {
	if n := len(flat) / 2; n > maxHeaders {
		return events.Fail(events.ReasonException, "the response has %d headers: at most %d", n, maxHeaders)
	}
	total := 0
	for i := 0; i+1 < len(flat); i += 2 {
		n := len(flat[i]) + len(flat[i+1])
		if total += n; n > maxHeader {
			return events.Fail(events.ReasonException, "header %.64q of the response has %d bytes: at most %d", flat[i], n, maxHeader)
		}
	}
	if total > maxHeaderBytes {
		return events.Fail(events.ReasonException, "the headers of the response have %d bytes: at most %d", total, maxHeaderBytes)
	}
	return nil
}

// withoutConnection removes headers about the connection of a fetched response. They are not part of the response, and
// do not go into the reply. Names are in lower case. It changes flat.
func withoutConnection(flat []string) []string {
	var named map[string]bool // names that the Connection header lists
	found := false
	for i := 0; i+1 < len(flat); i += 2 {
		if found = found || ofConnection(flat[i]); flat[i] == "connection" {
			if named == nil {
				named = map[string]bool{}
			}
			for token := range strings.SplitSeq(flat[i+1], ",") {
				named[strings.ToLower(strings.TrimSpace(token))] = true
			}
		}
	}
	if !found {
		return flat
	}
	kept := flat[:0]
	for i := 0; i+1 < len(flat); i += 2 {
		if !ofConnection(flat[i]) && !named[flat[i]] {
			kept = append(kept, flat[i], flat[i+1])
		}
	}
	return kept
}

// ofConnection reports whether a header is for one connection only (RFC 9110, 7.6.1).
func ofConnection(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "proxy-connection", "te",
		"trailer", "transfer-encoding", "upgrade":
		return true
	}
	return false
}
