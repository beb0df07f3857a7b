package hostcalls

import (
	"errors"
	"io"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// The server may answer the close frame that it gets when the socket is given up, before the connection is closed.
func TestWebSocketGivenUpHasFailed(t *testing.T) {
	t.Parallel()
	why := errors.New("closed before it was open")
	answer := &websocket.CloseError{Code: websocket.CloseGoingAway}
	s := &socket{line: line{c: &call{cancel: func() {}}}}
	require.Equal(t, socketEnd{code: 1001, clean: true}, s.ended(answer))
	require.Equal(t, socketEnd{code: 1006}, s.ended(io.EOF))
	s.giveUp(why)
	require.Equal(t, socketEnd{code: 1006, failure: why}, s.ended(answer))
	require.Equal(t, socketEnd{code: 1006, failure: why}, s.ended(io.EOF))
}
