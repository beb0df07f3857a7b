package isolates

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // SHA-1 is part of the Web Crypto API
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"fmt"
	"hash"

	"golang.org/x/net/idna"

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
	case askDigest:
		h, err := newHash(q.Text())
		if err != nil {
			return nil, err
		}
		sum := h()
		sum.Write(q.View())
		return v8x.AnswerBytes(sum.Sum(nil)), nil
	case askHMAC:
		h, err := newHash(q.Text())
		if err != nil {
			return nil, err
		}
		mac := hmac.New(h, q.View())
		mac.Write(q.View())
		return v8x.AnswerBytes(mac.Sum(nil)), nil
	case askTimingSafeEqual:
		a := q.View()
		return v8x.AnswerBool(subtle.ConstantTimeCompare(a, q.View()) == 1), nil
	case askDomainToASCII:
		ascii, err := domain.ToASCII(q.Text())
		if err != nil {
			ascii = ""
		}
		return v8x.AnswerString(ascii), nil
	}
	return nil, fmt.Errorf("host.ask: unknown op %d", op)
}

func newHash(name string) (func() hash.Hash, error) {
	switch name {
	case "SHA-1":
		return sha1.New, nil
	case "SHA-256":
		return sha256.New, nil
	case "SHA-384":
		return sha512.New384, nil
	case "SHA-512":
		return sha512.New, nil
	}
	return nil, fmt.Errorf("unknown hash %q", name)
}
