package jsapi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// A message for which JetStream has no room now is not refused permanently, whichever code the error has.
func TestWhatIsFinal(t *testing.T) {
	for _, c := range []struct {
		code, errCode int
		full, refused bool
	}{
		{400, 10002, true, false},  // resource limits exceeded for account
		{503, 10023, true, false},  // insufficient resources
		{500, 10028, true, false},  // insufficient memory resources available
		{500, 10047, true, false},  // insufficient storage resources available
		{503, 10077, true, false},  // maximum bytes exceeded
		{400, 10054, false, true},  // message size exceeds maximum allowed
		{400, 10097, false, true},  // header size exceeds maximum allowed of 64k
		{503, 10008, false, false}, // JetStream system temporarily unavailable
	} {
		for _, err := range []error{&Error{Code: c.code, ErrCode: c.errCode},
			&jetstream.APIError{Code: c.code, ErrorCode: jetstream.ErrorCode(c.errCode)}} {
			err = fmt.Errorf("wrapped: %w", err)
			require.Equal(t, c.full, IsFull(err), "%d %d", c.code, c.errCode)
			require.Equal(t, c.refused, IsRefused(err), "%d %d", c.code, c.errCode)
		}
	}
	require.True(t, IsRefused(nats.ErrMaxPayload))
	require.False(t, IsRefused(ErrNoAnswer))
	require.False(t, IsFull(errors.New("10002")))
}
