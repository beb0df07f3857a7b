package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestATableFitsATerminal(t *testing.T) {
	t.Parallel()
	head := []string{"ID", "WORKER", "MESSAGE"}
	rows := func() [][]string {
		return [][]string{head, {"1", "acme/orders", strings.Repeat("long ", 30) + "\x1b[2J\nend"}, {"22", "a/b", "short"}}
	}
	for _, columns := range []int{40, 80, 200} {
		text := fitted(head, rows(), columns)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		require.Len(t, lines, 3, text)
		for _, line := range lines {
			require.LessOrEqual(t, utf8.RuneCountInString(line), columns)
		}
		require.Equal(t, "22  a/b          short", lines[2])
		require.NotContains(t, text, "\x1b")
		require.Equal(t, columns < 200, strings.Contains(text, "…"))
	}
	require.Equal(t, "id       1\nworker   acme/orders\nmessage  m\n\nid       2\n",
		fitted(head, [][]string{head, {"1", "acme/orders", "m"}, {"2", "-", ""}}, 12), "no room for a table")
}

func TestLongLinesAreWrapped(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ok  one two\n    three-is-long\n    four", Wrapped("ok  one two three-is-long four", 13, 4))
	require.Equal(t, "ok  one two", Wrapped("ok  one two", 0, 4))
}

func TestTimesAreCutAfterMessages(t *testing.T) {
	t.Parallel()
	text := fitted([]string{"FAILED", "MESSAGE"}, [][]string{{"2026-11-29 12:03:18Z", "no stock of that"}}, 34)
	require.Equal(t, "2026-11-29 12:03:18Z  no stock of…\n", text)
	text = fitted([]string{"FAILED", "MESSAGE"}, [][]string{{"2026-11-29 12:03:18Z", "no stock of that"}}, 22)
	require.Equal(t, "2026-11-29 …  no stoc…\n", text)
}
