package ask

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// domain follows the URL standard's "domain to ASCII" with beStrict false: UTS 46, non-transitional.
var domain = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false),
	idna.CheckHyphens(false), idna.VerifyDNSLength(false), idna.BidiRule(), idna.CheckJoiners(true),
)

const acePrefix = "xn--"

// MaxDomain is the largest number of code points in a domain before it is mapped. As ASCII a host that can be reached
// has at most 253 letters. Mapping reduces the number of code points in two cases only: up to four are composed to one,
// and ignored ones are removed. JavaScript removes the ignored ones from long domains. Punycode takes time that grows
// with the square of the length, and nothing can interrupt it here.
const MaxDomain = 1024

// DomainToASCII returns the ASCII form of a domain, or "" if it has none.
func DomainToASCII(name string) string {
	if len(name) > MaxDomain && utf8.RuneCountInString(name) > MaxDomain && !guard.LinearWork.Off() {
		return ""
	}
	name = strings.Map(mapSince15, name)
	ascii, err := domain.ToASCII(name)
	if err != nil || hasNestedACE(ascii) || hasEmptyLabel(ascii) && hasEmptyACE(name) {
		return ""
	}
	return ascii
}

func hasEmptyLabel(ascii string) bool {
	return ascii == "" || ascii[0] == '.' || ascii[len(ascii)-1] == '.' || strings.Contains(ascii, "..")
}

// hasEmptyACE reports whether a label is only the prefix. The library maps such a label to an empty one. It does the
// same, rightly, with a label of ignored characters only. With a letter appended, the first kind is an error and the
// second kind is that letter.
func hasEmptyACE(name string) bool {
	isDot := func(r rune) bool { return r == '.' || r == '。' || r == '．' || r == '｡' }
	for _, label := range strings.FieldsFunc(name, isDot) {
		if ascii, err := domain.ToASCII(label); err != nil || ascii != "" {
			continue
		}
		if _, err := domain.ToASCII(label + "a"); err != nil {
			return true
		}
	}
	return false
}

// hasNestedACE reports whether punycode hides another prefix. UTS 46 refuses that where hyphens are not checked.
func hasNestedACE(ascii string) bool {
	for label := range strings.SplitSeq(ascii, ".") {
		if !strings.HasPrefix(label, acePrefix) {
			continue
		}
		if text, err := idna.Punycode.ToUnicode(label); err == nil && strings.HasPrefix(text, acePrefix) {
			return true
		}
	}
	return false
}

// mapSince15 maps the characters that UTS 46 maps or ignores in Unicode 17 but not in Unicode 15, whose tables the
// library has with Go before 1.27. Letters that are new since then stay disallowed until that Go.
func mapSince15(r rune) rune {
	switch {
	case r < 0x04c0:
		return r
	case 0x10a0 <= r && r <= 0x10c5: // Georgian capitals
		return r - 0x10a0 + 0x2d00
	case 0x1ccd6 <= r && r <= 0x1ccef: // outlined letters and digits
		return r - 0x1ccd6 + 'a'
	case 0x1ccf0 <= r && r <= 0x1ccf9:
		return r - 0x1ccf0 + '0'
	case isIgnoredSince15(r):
		return -1
	}
	switch r {
	case 0x04c0:
		return 0x04cf
	case 'ẞ':
		return 'ß'
	case 0x2132:
		return 0x214e
	case 0x2183:
		return 0x2184
	case 0xa7cb:
		return 0x0264
	case 0xa7d2, 0xa7d4:
		return r + 1
	case 0xa7dc:
		return 0x019b
	case 0xa7f1:
		return 's'
	}
	return mapIdeographSince15(r)
}

// isIgnoredSince15 reports invisible fillers and controls.
func isIgnoredSince15(r rune) bool {
	switch r {
	case 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180e, 0x2061, 0x2062, 0x2063, 0x3164, 0xffa0:
		return true
	}
	return 0x206a <= r && r <= 0x206f || 0x1d173 <= r && r <= 0x1d17a
}

// mapIdeographSince15 maps the compatibility ideographs whose first decomposition was wrong.
func mapIdeographSince15(r rune) rune {
	switch r {
	case 0x2f868:
		return 0x36fc
	case 0x2f874:
		return 0x5f53
	case 0x2f91f:
		return 0x243ab
	case 0x2f95f:
		return 0x7aee
	case 0x2f9bf:
		return 0x45d7
	}
	return r
}
