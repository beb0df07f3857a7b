package cli

import (
	"errors"
	"fmt"

	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

// Exit codes of the command.
const (
	exitOK      = 0
	exitFailure = 1 // the operation was tried and failed, or the worker's reply is an error
	exitUsage   = 2 // nothing was tried: the command line or the environment is wrong
	exitTimeout = 3 // the reply did not come in time
	exitGuard   = 4 // the guard of a rollout failed: the version before has everything again
)

// exitError is an error with its exit code.
type exitError struct {
	code int
	err  error  // nil: everything is already printed
	see  string // command that shows more help; "" = the command's own --help
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage returns the error of a wrong command line.
func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// silent ends the command with the code and prints nothing more.
func silent(code int) error { return &exitError{code: code} }

// exitCode returns the exit code of err.
func exitCode(err error) int {
	var e *exitError
	var fault *inventory.FaultError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &fault):
		return inventory.ExitCode
	}
	return exitFailure
}
