// Package webclient sends prepared HTTP/1.1 requests on connections that are kept, and checks each answer. It costs
// less than net/http, so that the load program takes little of the machine on which it measures a server.
package webclient

import "bytes"

// Places in a request and in its answer. Each is replaced by a number of as many digits.
const (
	Number = "##########" // of the request. The first digit is never 0, so that it can stand in JSON
	Owner  = "@@@@"       // of the owner that the request is for
)

// MaxNumber and MaxOwner are the highest numbers that have room in these places.
const (
	MaxNumber = 8_999_999_999
	MaxOwner  = 9999
)

// Exchange is a request and the body that its answer must have. Their places are those of the constants above.
type Exchange struct {
	Request []byte // as it is sent, with its headers
	Answer  []byte // body of the answer, whose status must be 200
	// Echo is the number of bytes of a body that follows Request and is the body of the answer too; 0 = there is none.
	Echo int64
}

// text is a text with places.
type text struct {
	bytes   []byte
	numbers []int // where they begin
	owners  []int
}

func newText(from []byte) text {
	return text{bytes.Clone(from), places(from, Number), places(from, Owner)}
}

func places(in []byte, place string) []int {
	var list []int
	for at := 0; ; at += len(place) {
		i := bytes.Index(in[at:], []byte(place))
		if i < 0 {
			return list
		}
		at += i
		list = append(list, at)
	}
}

// fill writes the numbers into their places.
func (t *text) fill(number, owner int) {
	for _, at := range t.numbers {
		digits(t.bytes[at:at+len(Number)], number+1_000_000_000)
	}
	for _, at := range t.owners {
		digits(t.bytes[at:at+len(Owner)], owner)
	}
}

// digits writes the last digits of n, as many as there is room for.
func digits(into []byte, n int) {
	for i := len(into) - 1; i >= 0; i-- {
		into[i] = byte('0' + n%10)
		n /= 10
	}
}
