package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
)

// What lists take is bounded for a request and for a process, and is given back.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	var room listRoom
	one := &held{room: &room}
	require.NoError(t, one.take(maxList))
	require.ErrorContains(t, one.take(1), "name a longer prefix")
	others := make([]*held, 0, 4)
	for range maxLists/maxList - 1 {
		h := &held{room: &room}
		require.NoError(t, h.take(maxList))
		others = append(others, h)
	}
	late := &held{room: &room}
	require.ErrorIs(t, late.take(1), errNoRoom)
	one.giveBack()
	require.NoError(t, late.take(maxList), "what was refused takes nothing")
	late.giveBack()
	for _, h := range others {
		h.giveBack()
	}
	require.Zero(t, room.used.Load())
}

// Errors of bindings have the code of the answer in their text.
func TestErrorsOfOwnersData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{errors.New("413 Value length of 9"), 413, "Value length of 9"},
		{errors.New("414 UTF-8 encoded length"), 400, "UTF-8 encoded length"},
		{errors.New("504 the owner's data did not answer in time"), 503, "the owner's data did not answer in time"},
		{fmt.Errorf("429 %w", errNoRoom), 503, errNoRoom.Error()},
		{errors.New("429 the owner's bindings may be called 5 times in a second"), 429, "the owner's bindings may be called 5 times in a second"},
		{fmt.Errorf("429 %w", errTooMuch), 413, errTooMuch.Error()},
		{errors.New("The specified object name is not valid. (10020)"), 400, "The specified object name is not valid. (10020)"},
		{errors.New("200 keys"), 400, "200 keys"},
		{bindings.ErrNoData, 404, "acme: the owner has no KV data yet"},
		{fmt.Errorf(`the object "k" %w`, bindings.ErrObjectChanged), 409, `the object "k" was changed while it was read`},
		{context.DeadlineExceeded, 503, context.DeadlineExceeded.Error()},
		{wrongField("from", " is 1"), 400, "from is 1"},
		{fmt.Errorf("500 %w", nats.ErrConnectionClosed), http.StatusInternalServerError, "nats: connection closed"},
	} {
		err := storedIn("acme", c.err)
		require.Equal(t, c.code, codeOf(err), "%v", c.err)
		require.Equal(t, c.text, err.Error())
	}
	require.NoError(t, storedIn("acme", nil))
}

// Parts are as long as an answer has room for, and end where the data does.
func TestPartsOfData(t *testing.T) {
	t.Parallel()
	data := []byte("0123456789")
	part, next, err := bytesPart(data, 0, 9)
	require.NoError(t, err)
	require.Equal(t, "012345", string(part), "eight bytes of base64")
	require.Equal(t, 6, next)
	part, next, err = bytesPart(data, 6, 9)
	require.NoError(t, err)
	require.Equal(t, "6789", string(part))
	require.Zero(t, next)
	for _, from := range []int{-1, 11} {
		_, _, err = bytesPart(data, from, 9)
		require.ErrorContains(t, err, "from is")
	}
	_, _, err = bytesPart(data, 0, 3)
	require.ErrorContains(t, err, "max_payload is too small")
	part, next, err = bytesPart(nil, 0, 0)
	require.NoError(t, err)
	require.Empty(t, part)
	require.Zero(t, next)
}
