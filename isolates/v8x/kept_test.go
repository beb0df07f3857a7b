package v8x

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeptStrings(t *testing.T) {
	list := func(of ...string) []byte {
		return new(Call).Reset(0).Strings(of).Bytes()
	}
	read := func(k *Kept, b []byte) []string {
		c := Commands{in: b[1:], args: int(b[0])} // this test reads a call instead of commands
		c.Skip()                                  // its op
		got := c.KeptStrings(k)
		require.NoError(t, c.Err())
		return got
	}
	var k Kept
	long := strings.Repeat("x", keptString+1)
	for i := range 3 * keptStrings {
		want := []string{"content-type", strconv.Itoa(i), "", long, "ä"}
		require.Equal(t, want, read(&k, list(want...)))
		require.LessOrEqual(t, len(k.strings), keptStrings)
		require.NotContains(t, k.strings, long)
	}
	b := list("content-type", "application/json")
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { read(&k, b) }), 2.0, "the list")
}
