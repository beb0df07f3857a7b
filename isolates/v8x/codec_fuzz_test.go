package v8x

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// JavaScript encodes commands in the same way as Go encodes calls. A call is a command, except for its first byte.
func command(op byte, fill func(*Call)) []byte {
	var c Call
	c.buf = []byte{0}
	fill(&c)
	return append([]byte{op}, c.buf...)
}

func TestDetachedArgumentsOutliveTheInput(t *testing.T) {
	out := append(command(7, func(c *Call) { c.Number(1).String("two").Blob([]byte{3}).Null().Bool(true) }),
		command(8, func(c *Call) { c.Number(9) })...)
	in := ReadCommands(out)
	op, ok := in.Next()
	require.True(t, ok)
	require.Equal(t, 7, op)
	require.EqualValues(t, 1, in.Int())
	rest := in.Detach()
	op, ok = in.Next()
	require.True(t, ok)
	require.Equal(t, 8, op)
	require.EqualValues(t, 9, in.Int())
	clear(out)
	require.Equal(t, "two", rest.Text())
	require.Equal(t, []byte{3}, rest.View())
	require.Nil(t, rest.View())
	require.True(t, rest.Bool())
	require.Nil(t, rest.View(), "there is no more")
	require.NoError(t, rest.Err())
	require.Zero(t, rest.Len())
}

func TestAnswersAreValues(t *testing.T) {
	var c Call
	c.Reset(5).Raw(AnswerList([]byte("a"), nil)).Raw(AnswerTexts("b", "ü")).Raw(AnswerBool(true))
	in := ReadCommands(append([]byte{0}, c.Bytes()...))
	in.Next()
	require.EqualValues(t, 5, in.Int())
	in.Skip()
	require.Equal(t, []string{"b", "ü"}, in.Strings())
	require.True(t, in.Bool())
	_, ok := in.Next()
	require.False(t, ok)
	require.NoError(t, in.Err())
}

// FuzzCommands reads any input: with and without detaching, the result is the same, and nothing panics.
func FuzzCommands(f *testing.F) {
	f.Add(command(3, func(c *Call) {
		c.Number(1).String("x").Strings([]string{"a", "b"}).Blob([]byte{1, 2}).Null().Bool(false)
	}))
	f.Add([]byte{1, 2, tagList, 1, 0, 0, 0, tagList, 0, 0, 0, 0})
	// a list of strings that has other values
	f.Add([]byte("0\x06\x02\x00\x00\x0300000000\x04\x01\x00\x00\x000\x06\x02\x00\x00\x00\x00\x0000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := ReadCommands(data), ReadCommands(data)
		for {
			opA, okA := a.Next()
			opB, okB := b.Next()
			require.Equal(t, okA, okB)
			if !okA {
				break
			}
			require.Equal(t, opA, opB)
			detached := b.Detach()
			if b.Err() != nil {
				continue
			}
			for range 5 {
				require.Equal(t, a.Text(), detached.Text())
			}
			require.Equal(t, a.Strings(), detached.Strings())
			require.Equal(t, a.Err(), detached.Err())
			if a.Err() != nil {
				break // the error ends a, but not b, which has only skipped the wrong value
			}
		}
	})
}
