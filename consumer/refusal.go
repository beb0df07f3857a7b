package consumer

import (
	"errors"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// fullCodes are the errors by which JetStream says that it has no room for a message now: the limits of the account (10002) or of the server
// (10023, 10028, 10047) are reached, or the stream is full or cannot write (10077). They come with the codes 400, 500 and 503. None is final.
var fullCodes = []int{10002, 10023, 10028, 10047, codeStoreFailed}

const codeStoreFailed = 10077

// refusal takes apart the error of a publish that JetStream answered.
func refusal(err error) (code, errCode int, ok bool) {
	var own *apiError
	var lib *jetstream.APIError
	switch {
	case errors.As(err, &own):
		return own.Code, own.ErrCode, true
	case errors.As(err, &lib):
		return lib.Code, int(lib.ErrorCode), true
	}
	return 0, 0, false
}

// isFull reports whether JetStream had no room for a message: it may have some later.
func isFull(err error) bool {
	_, code, ok := refusal(err)
	return ok && slices.Contains(fullCodes, code)
}

// isRefused reports whether JetStream will not take a message, however often it is asked.
func isRefused(err error) bool {
	code, _, ok := refusal(err)
	return ok && code == 400 && !isFull(err) || errors.Is(err, nats.ErrMaxPayload)
}
