package isolates

import "github.com/pinwheel-run/pinwheel/events"

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
