package jsapi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Error is an error that JetStream answered.
type Error struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// Error implements error: JetStream's description, with its code.
func (e *Error) Error() string {
	return fmt.Sprintf("JetStream: %s (%d)", e.Description, e.ErrCode)
}

// Codes of JetStream's errors.
const (
	codeStoreFailed = 10077
	// codeWrongLastSequence is the answer when the expected last sequence is wrong.
	codeWrongLastSequence = 10071
	// CodeRollupFailed is the answer to an invalid value of HeaderRollup.
	CodeRollupFailed = 10111
	// CodeDuplicateInProgress is the answer of a cluster that is just storing a message of the same id.
	CodeDuplicateInProgress = 10158
	// CodeNoPeers is the answer of a cluster that has too few servers for a stream, or has not heard from one.
	CodeNoPeers = 10005
	// CodeUnavailable is the answer of a cluster that has no leader at the moment.
	CodeUnavailable = 10008
)

// fullCodes are the errors by which JetStream says that it has no room for a message now: the limits of the account
// (10002) or of the server (10023, 10028, 10047) are reached, or the stream is full or cannot write (10077). They come
// with the codes 400, 500 and 503. None is final.
var fullCodes = []int{10002, 10023, 10028, 10047, codeStoreFailed}

// answered returns the codes of an error that JetStream answered to a publish.
func answered(err error) (code, errCode int, ok bool) {
	var own *Error
	var lib *jetstream.APIError
	switch {
	case errors.As(err, &own):
		return own.Code, own.ErrCode, true
	case errors.As(err, &lib):
		return lib.Code, int(lib.ErrorCode), true
	}
	return 0, 0, false
}

// ErrCode is the err_code of an error that JetStream answered; ok is false for any other error.
func ErrCode(err error) (code int, ok bool) {
	_, code, ok = answered(err)
	return code, ok
}

// IsFull reports whether JetStream had no room for a message. It may have room later.
func IsFull(err error) bool {
	_, code, ok := answered(err)
	return ok && slices.Contains(fullCodes, code)
}

// IsRefused reports whether JetStream or nats.go refuses a message permanently.
func IsRefused(err error) bool {
	code, _, ok := answered(err)
	return ok && code == 400 && !IsFull(err) || IsUnfit(err)
}

// Codes of JetStream's errors about the size of a message, and of its headers.
const (
	codeMessageTooLarge = 10054
	codeHeaderTooLarge  = 10097
)

// IsUnfit reports whether a message can never be stored, because of its size or its headers.
func IsUnfit(err error) bool {
	_, code, _ := answered(err)
	return code == codeMessageTooLarge || code == codeHeaderTooLarge || errors.Is(err, nats.ErrMaxPayload) ||
		errors.Is(err, nats.ErrBadHeaderMsg)
}

// IsWrongLastSequence reports whether a message was not stored because the last sequence of its subject is not the
// expected one.
func IsWrongLastSequence(err error) bool {
	_, code, ok := answered(err)
	return ok && code == codeWrongLastSequence
}
