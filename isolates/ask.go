package isolates

import (
	"crypto/subtle"
	"fmt"
	"strings"

	"golang.org/x/net/idna"

	"github.com/pinwheel-run/pinwheel/isolates/charset"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// domain follows the URL standard's "domain to ASCII" with beStrict false: UTS 46, non-transitional.
var domain = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false),
	idna.CheckHyphens(false), idna.VerifyDNSLength(false), idna.BidiRule(), idna.CheckJoiners(true),
)

// answer is the v8x.Asker of every context: pure functions that Go has and JavaScript needs at once.
func answer(in []byte) ([]byte, error) {
	q := v8x.ReadCommands(in)
	op, _ := q.Next()
	switch op {
	case askSubtle:
		return subtleNow(&q).answer(), nil
	case askDecode:
		return decodeLegacy(q.Text(), int(q.Int()), q.View(), q.Bool(), q.Bool())
	case askTimingSafeEqual:
		a := q.View()
		return v8x.AnswerBool(subtle.ConstantTimeCompare(a, q.View()) == 1), nil
	case askDomainToASCII:
		// The library's tables are of a Unicode before 15.1, which maps the capital ẞ to ß and not to ss.
		ascii, err := domain.ToASCII(strings.ReplaceAll(q.Text(), "ẞ", "ß"))
		if err != nil {
			ascii = ""
		}
		return v8x.AnswerString(ascii), nil
	}
	return nil, fmt.Errorf("host.ask: unknown op %d", op)
}

// decodeLegacy decodes a piece in one of the legacy encodings. The answer is the text, and a string whose code units are how many
// bytes at the end are incomplete, and the state to go on with; null is that the bytes do not fit and fatal is true.
func decodeLegacy(encoding string, state int, in []byte, last, fatal bool) ([]byte, error) {
	r, err := charset.Decode(encoding, state, in, last)
	if err != nil {
		return nil, err
	}
	if r.Wrong && fatal {
		return v8x.AnswerNull(), nil
	}
	return v8x.AnswerTexts(string(r.Text), string([]rune{rune(r.Rest), rune(r.State)})), nil
}
