package control

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Parts of code fit the room, end between characters, and are never empty while there is code and room.
func TestCodePart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.StringOf(rapid.RuneFrom([]rune("ab<>&\x00\n\"ü€😀"))).Draw(t, "code")
		room := rapid.IntRange(40, 200).Draw(t, "room")
		var whole strings.Builder
		for rest := code; rest != ""; {
			part, err := codePart(rest, room)
			require.NoError(t, err)
			text, err := json.Marshal(part)
			require.NoError(t, err)
			require.LessOrEqual(t, len(text), room)
			require.NotEmpty(t, part)
			whole.WriteString(part)
			rest = rest[len(part):]
		}
		require.Equal(t, code, whole.String())
	})
	_, err := codePart("x", 2)
	require.ErrorContains(t, err, "no room")
	_, err = codePart("x", -1)
	require.ErrorContains(t, err, "no room")
}

// A part of a source has whole lines around the one that was asked for, fits the room, and says where it begins.
func TestPartOfASource(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("ab<>\x00\"ü😀"))), 1, 60).Draw(t, "lines")
		line, room := rapid.IntRange(1, len(lines)).Draw(t, "line"), rapid.IntRange(40, 400).Draw(t, "room")
		s := ShownSource{Lines: len(lines)}
		require.NoError(t, s.part(strings.Join(lines, "\n"), line, room))
		data, err := encodeJSON(s.Text)
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), room)
		got := strings.Split(s.Text, "\n")
		require.LessOrEqual(t, s.From, line)
		require.Less(t, line, s.From+len(got))
		if s.Cut {
			require.Len(t, got, 1)
			require.True(t, strings.HasPrefix(lines[line-1], got[0]))
			return
		}
		require.Equal(t, lines[s.From-1:s.From-1+len(got)], got)
	})
	long := strings.Repeat("\n", 1<<20) + "last"
	s := ShownSource{Lines: 1<<20 + 1}
	require.NoError(t, s.part(long, s.Lines, 1<<19))
	require.True(t, strings.HasSuffix(s.Text, "\nlast"))
	require.Equal(t, s.Lines, s.From+strings.Count(s.Text, "\n"))
}

// The file that is shown first is the one with the handlers, and their list has bounds.
func TestFilesOfASource(t *testing.T) {
	t.Parallel()
	s := ShownSource{}
	s.name([]string{"a/node_modules/b.js", "lib.ts", "main.ts"}, "main.ts")
	require.Equal(t, "main.ts", s.File)
	s = ShownSource{}
	s.name([]string{"a/node_modules/b.js", "lib.ts"}, "main.js")
	require.Equal(t, "lib.ts", s.File)
	s = ShownSource{}
	s.name([]string{"a/node_modules/b.js"}, "main.js")
	require.Equal(t, "a/node_modules/b.js", s.File)
	s = ShownSource{File: "x"}
	s.name(make([]string, 1000), "main.js")
	require.Equal(t, []any{"x", maxSourceFiles, true}, []any{s.File, len(s.Files), s.More})
}
