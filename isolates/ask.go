package isolates

import (
	"crypto/subtle"
	"fmt"

	"github.com/pinwheel-run/pinwheel/isolates/charset"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
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
		return v8x.AnswerString(domainToASCII(q.Text())), nil
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
