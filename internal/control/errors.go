package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/deploy"
)

// Error is an error with the code of its answer. Codes are HTTP status codes.
type Error struct {
	Code int
	// Field is the wrong field of the request, or "" for any other error. If it is set, Text begins with it.
	Field string
	Text  string
}

func (e *Error) Error() string { return e.Text }

// refused returns the error of a wrong request.
func refused(format string, args ...any) error {
	return &Error{Code: http.StatusBadRequest, Text: fmt.Sprintf(format, args...)}
}

// wrongField returns the error of a request whose field has a wrong value. format continues after the name of the
// field.
func wrongField(field, format string, args ...any) error {
	return &Error{Code: http.StatusBadRequest, Field: field, Text: field + fmt.Sprintf(format, args...)}
}

// wrongName returns the error of a field from err, an error of events. Its text begins with the name of the field.
func wrongName(field string, err error) error {
	return &Error{Code: http.StatusBadRequest, Field: field, Text: err.Error()}
}

// errNotMeant is the error of a request that another process answers.
var errNotMeant = errors.New("another process is meant")

// processEnding is the error of a process that drains.
const processEnding = "this process is ending: ask again, and another one answers"

// codeOf returns the code of the answer that reports err.
func codeOf(err error) int {
	var ce *Error
	switch {
	case errors.As(err, &ce):
		return ce.Code
	case errors.Is(err, deadletter.ErrNoDeadLetter), errors.Is(err, deploy.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, deadletter.ErrChanged), errors.Is(err, deadletter.ErrTooManyReplays):
		return http.StatusConflict
	case errors.Is(err, nats.ErrMaxPayload):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
