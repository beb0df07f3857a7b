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
