package resources

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// codeMaxBytes is JetStream's error for a stream that is full. It has others with the same words.
const codeMaxBytes = 10077

// IsFull reports whether err says that a stream has no room for a message.
func IsFull(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeMaxBytes || strings.Contains(api.Description, "maximum bytes"))
}

// FullError says that a bucket has no room for what a deploy stores.
type FullError struct {
	Bucket   string
	MaxBytes int64  // of the bucket; 0 = not known
	Variable string // of the environment, that decides MaxBytes
}

// Error says what makes room.
func (e *FullError) Error() string {
	most := ""
	if e.MaxBytes > 0 {
		most = " and may have " + bytesText(e.MaxBytes)
	}
	return fmt.Sprintf("bucket %s is full%s: remove workers that are not needed with 'pinwheel workers rm', "+
		"or have an operator raise %s and run 'pinwheel resources apply'", e.Bucket, most, e.Variable)
}
