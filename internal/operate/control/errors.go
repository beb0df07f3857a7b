package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Error is an error with the code of its answer. Codes are HTTP status codes.
type Error struct {
	Code int
	// Field is the wrong field of the request, or "" for any other error. If it is set, Text begins with it.
	Field string
	Text  string
	// Module says why a module was refused that does not load; else nil.
	Module *deploy.RefusedError

	cause error // of an error in this program
}

func (e *Error) Error() string { return e.Text }

func (e *Error) Unwrap() error { return e.cause }

// errorOf returns an error as the answer of a process reports it.
func errorOf(err error) error {
	var is *Error
	if errors.As(err, &is) {
		return err
	}
	e := &Error{Code: codeOf(err), Text: err.Error(), cause: err}
	_ = errors.As(err, &e.Module)
	return e
}

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
	var change *deploy.ChangeError
	var gone *deploy.GoneError
	var superseded *deploy.SupersededError
	var refused *deploy.RefusedError
	var invalid *deploy.InvalidError
	var quota *deploy.QuotaError
	var missing *deploy.MissingSecretsError
	var taken *deploy.RouteTakenError
	var files *deploy.MissingFilesError
	var full *resources.FullError
	switch {
	case errors.As(err, &full):
		return http.StatusInsufficientStorage
	case errors.As(err, &files):
		return http.StatusPreconditionFailed
	case errors.As(err, &ce):
		return ce.Code
	case errors.As(err, &invalid):
		return http.StatusBadRequest
	case errors.As(err, &quota):
		return http.StatusForbidden
	case errors.As(err, &refused):
		return http.StatusUnprocessableEntity
	case errors.Is(err, deadletter.ErrNoDeadLetter), errors.Is(err, deploy.ErrNotFound),
		errors.Is(err, deploy.ErrNoSecret):
		return http.StatusNotFound
	case errors.Is(err, deadletter.ErrChanged), errors.Is(err, deadletter.ErrTooManyReplays),
		errors.As(err, &change), errors.As(err, &gone), errors.As(err, &superseded), errors.As(err, &missing), errors.As(err,
			&taken):
		return http.StatusConflict
	case errors.Is(err, nats.ErrMaxPayload):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// moduleFaultJSON is the body of an answer that refuses a module which does not load. Other answers with an error have
// no body.
type moduleFaultJSON struct {
	Worker  string        `json:"worker"`
	Reason  events.Reason `json:"reason"`
	Message string        `json:"message"`
	Stack   string        `json:"stack,omitempty"`
}

// moduleFault returns the body of an answer that reports err.
func moduleFault(err error) []byte {
	var refused *deploy.RefusedError
	if !errors.As(err, &refused) {
		return nil
	}
	f := refused.Failure
	data, _ := json.Marshal(moduleFaultJSON{refused.Target, f.Reason, f.Message, f.Stack}) // strings cannot fail
	return data
}

// readModuleFault is the reverse of moduleFault.
func readModuleFault(data []byte) *deploy.RefusedError {
	var f moduleFaultJSON
	if len(data) == 0 || json.Unmarshal(data, &f) != nil || f.Worker == "" {
		return nil
	}
	return &deploy.RefusedError{Target: f.Worker, Failure: events.NewFailure(f.Reason, f.Message, f.Stack)}
}

// oneLine returns the text of an error for a header. A module chooses what it fails with, so only the first line is
// taken of that, and nothing that is not printable.
func oneLine(err error) string {
	text := err.Error()
	var refused *deploy.RefusedError
	if !errors.As(err, &refused) {
		return text
	}
	text, _, _ = strings.Cut(text, "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}
