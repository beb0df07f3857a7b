package calls

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

// kind is what of an error beside its text reaches the cell.
type kind uint64

const (
	none kind = iota
	plain
	thrown   // lifecycle.Thrown
	ended    // io.EOF
	canceled // context.Canceled
	late     // context.DeadlineExceeded
	reset    // of a connection: the other side broke it off
	told     // egress.Told
	kinds    // how many there are
)

func kindOf(err error) kind {
	if err == nil {
		return none
	}
	if _, ok := errors.AsType[lifecycle.Thrown](err); ok {
		return thrown
	}
	if _, ok := errors.AsType[egress.Told](err); ok {
		return told
	}
	for k, is := range [...]error{ended: io.EOF, canceled: context.Canceled, late: context.DeadlineExceeded} {
		if is != nil && errors.Is(err, is) {
			return kind(k)
		}
	}
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return reset
	}
	return plain
}

// failure adds an error to a head; nil = none.
func (h *head) failure(err error) {
	k := kindOf(err)
	h.number(uint64(k))
	if err != nil {
		h.text(err.Error())
	}
	if k == told {
		known, _ := errors.AsType[egress.Told](err)
		h.text(known.Code)
	}
}

// failed is an error of the broker's side. is says what kind of error it is; nil = no special one.
type failed struct {
	text string
	is   error
}

// Error is the text that the error has in the broker.
func (e *failed) Error() string { return e.text }

// Unwrap is an error of the same kind.
func (e *failed) Unwrap() error { return e.is }

// failure reads an error; nil = none.
func (f *fields) failure() error {
	k := kind(f.count(int(kinds) - 1))
	if k == none {
		return nil
	}
	text := f.text()
	switch k {
	case thrown:
		return lifecycle.Thrown(text)
	case ended:
		if text == io.EOF.Error() {
			return io.EOF
		}
		return &failed{text, io.EOF}
	case canceled:
		return &failed{text, context.Canceled}
	case late:
		return &failed{text, context.DeadlineExceeded}
	case reset:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case told:
		return egress.Told{Text: text, Code: f.text()}
	}
	return &failed{text: text}
}

// trailer is the name of the trailer with an error that comes after the head of an answer.
const trailer = "Failure"

// encodeTrailer makes the value of the trailer. Headers cannot have all characters of a text.
func encodeTrailer(err error) string {
	var h head
	h.failure(err)
	return base64.StdEncoding.EncodeToString(h)
}

// decodeTrailer reads the value of the trailer; "" = there was no error.
func decodeTrailer(value string) error {
	if value == "" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return errFields
	}
	f := fields{rest: data}
	failure := f.failure()
	if err := f.end(); err != nil {
		return err
	}
	return failure
}

// lieError is an error of a request that no Client writes, or that names what the cell was not given.
type lieError string

// Error says what is wrong.
func (e lieError) Error() string { return string(e) }

func lie(format string, args ...any) error { return lieError(fmt.Sprintf(format, args...)) }
