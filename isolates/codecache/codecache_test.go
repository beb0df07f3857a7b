package codecache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// long makes a module large enough for its code to be kept.
var long = "//" + strings.Repeat("-", Least)

func owned(owner, code string) *workers.Worker {
	return &workers.Worker{Owner: owner, Name: "w", Version: "1", Hash: "h", File: "w.js", Code: code}
}

func TestCodeOfAnotherTextIsNotUsed(t *testing.T) {
	t.Parallel()
	c := New(1 << 20)
	w := owned("acme", "one"+long)
	c.Put(w, []byte("code of one"))
	changed := *w
	changed.Code = "two" + long // of the same length, under the same hash
	require.Nil(t, c.Get(&changed))
	require.Nil(t, c.Get(w)) // and the entry is gone
	require.True(t, c.Wants(w))
}

func TestKeptCodeIsBounded(t *testing.T) {
	t.Parallel()
	const size = 2 * Least
	c := New(10 * size)
	version := func(i int) *workers.Worker {
		w := owned("acme", strings.Repeat("x", size/2))
		w.Version = fmt.Sprint(i)
		return w
	}
	for i := range 10 {
		c.Put(version(i), make([]byte, size/2))
	}
	require.Equal(t, 10*size, c.Stats().Bytes)
	require.NotNil(t, c.Get(version(0))) // used again: 1 is now the oldest
	c.Put(version(10), make([]byte, size/2))
	require.NotNil(t, c.Get(version(0)))
	require.Nil(t, c.Get(version(1)))
	c.Put(version(2), make([]byte, size)) // in place of the old one
	require.Equal(t, 9, c.Stats().Versions)
	require.LessOrEqual(t, c.Stats().Bytes, 10*size)

	c.Put(version(5), make([]byte, 3*size)) // too large for one entry
	require.Len(t, c.Get(version(5)), size/2)
	large := owned("acme", strings.Repeat("x", 2*size))
	require.False(t, c.Wants(large))
	small := owned("acme", strings.Repeat("x", Least-1))
	require.False(t, c.Wants(small))
	none := New(0)
	none.Put(version(0), []byte{1})
	require.Zero(t, none.Stats().Versions)
}
