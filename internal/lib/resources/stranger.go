package resources

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Stranger says of the error of a publish to a subject that another client of NATS has given the answer, if it is one
// that no stream gives, like +ACK. It returns any other error as it is.
func Stranger(err error, subject string) error {
	if !errors.Is(err, jetstream.ErrInvalidJSAck) {
		return err
	}
	return fmt.Errorf("a client of NATS that is not Pinwheel's has answered what was published to %s, before the stream did. "+
		"It may be stored. Find the client that subscribes to this subject and acknowledges or answers what it gets "+
		"('nats server request connections --subscriptions' lists subscriptions), end it, and try again: %w", subject, err)
}
