// Package percent finds each % of a URL that escapes nothing. Browsers and URL parsers of the web take such a %, and
// net/url refuses it.
package percent

import "strings"

// Escape returns text with each % that escapes nothing as %25. The rest is as it was.
func Escape(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if b.WriteByte(text[i]); text[i] == '%' && !(i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2])) {
			b.WriteString("25")
		}
	}
	return b.String()
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
