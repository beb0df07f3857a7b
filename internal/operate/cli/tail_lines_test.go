package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

// shownOn returns what a terminal of so many columns shows of what write writes, without colors.
func shownOn(t *testing.T, columns uint16, write func(*terminal.Terminal)) string {
	t.Helper()
	user, program := openTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	write(terminal.New(program, program, program))
	_, err := program.WriteString("the end")
	require.NoError(t, err)
	var all strings.Builder
	for part := make([]byte, 1000); !strings.HasSuffix(all.String(), "the end"); {
		n, err := user.Read(part)
		require.NoError(t, err)
		all.Write(part[:n])
	}
	text := regexp.MustCompile(`\x1b\[[0-9;]*m|\r`).ReplaceAllString(all.String(), "")
	return strings.TrimSuffix(text, "the end")
}

// Long lines of a tail break between words, and what continues a line is indented. In a file they are whole.
func TestLinesOfATailFitATerminal(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	long := strings.TrimSpace(strings.Repeat("several words ", 20))
	entries := []*tail.Entry{
		{Type: tail.TypeLog, Owner: "acme", Worker: "shop", Time: at, Level: "error", Text: long, EventID: "1", Attempt: 1,
			Stack: "Error: " + long + "\n    at f (shop.js:1:2)"},
		{Type: tail.TypeEvent, Owner: "acme", Worker: "shop", Time: at, Kind: "fetch", Status: 500, Outcome: "failed",
			Message: long, EventID: strings.Repeat("x", 90), Attempt: 1},
	}
	write := func(to *terminal.Terminal) {
		out := to.Colored()
		for _, e := range entries {
			require.NoError(t, printEntry(out, to, e))
		}
	}
	for _, columns := range []uint16{80, 200} {
		text := shownOn(t, columns, write)
		begins := 0
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if !strings.Contains(line, "xxx") { // an id stays whole
				require.LessOrEqual(t, utf8.RuneCountInString(line), int(columns), text)
			}
			if !strings.HasPrefix(line, "    ") {
				begins++
			}
		}
		require.Equal(t, 2, begins, text)
		require.Len(t, regexp.MustCompile(`several\s+words`).FindAllString(text, -1), 3*20, "no word is cut")
		require.Contains(t, text, strings.Repeat("x", 90))
		require.Contains(t, text, "\n        at f (shop.js:1:2)\n")
	}
	file, err := os.Create(t.TempDir() + "/tail")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	write(terminal.New(file, file, file))
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.Contains(t, string(text), "error acme/shop  "+long+"  (event 1, attempt 1)\n")
}

// What people copy stays in one line: commands, and the code that a message of a build shows.
func TestCommandsAreNotBroken(t *testing.T) {
	t.Parallel()
	command := "    PINWHEEL_NATS_URL=nats://127.0.0.1:14222 pinwheel send fetch dev/hello --data '{}' and what follows it\n"
	message := "    some/file.js:1:2: import of \"x\": " + strings.Repeat("text ", 20) + "\n"
	text := shownOn(t, 80, func(to *terminal.Terminal) {
		_, err := to.Colored().Write([]byte("✓ hello.js\n" + command + "✗ other.js\n" + message + command))
		require.NoError(t, err)
	})
	require.Equal(t, 2, strings.Count(text, command), text)
	require.NotContains(t, text, message)
	require.Contains(t, text, "\n        text ")
}
