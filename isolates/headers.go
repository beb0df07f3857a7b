package isolates

import (
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
)

// What a response's headers may come to. Servers and proxies on the way take about as much, and a reply has to fit into
// a message.
const (
	maxHeaders     = 100
	maxHeader      = 8 << 10  // name and value of one, bytes
	maxHeaderBytes = 64 << 10 // names and values of all, bytes
)

// checkHeaders says what is too much about the headers of a response, name, value, name, value and so on.
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

// withoutConnection drops what is about the connection of a response that was fetched, and not about the response: it does not travel when that
// is the reply. Names are in lower case. It changes flat.
func withoutConnection(flat []string) []string {
	var named map[string]bool // by Connection itself
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

// ofConnection says whether a header is for one connection alone (RFC 9110, 7.6.1).
func ofConnection(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "proxy-connection", "te",
		"trailer", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// A header's value is bytes. In JavaScript it is a string with a character up to U+00FF for each; toBytes makes it what
// goes over the wire, fromBytes the other way.
func toBytes(value string) string {
	if isASCII(value) {
		return value
	}
	out := make([]byte, 0, len(value))
	for _, r := range value {
		out = append(out, byte(r))
	}
	return string(out)
}

func fromBytes(value string) string {
	if isASCII(value) {
		return value
	}
	out := make([]rune, len(value))
	for i := range len(value) {
		out[i] = rune(value[i])
	}
	return string(out)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
