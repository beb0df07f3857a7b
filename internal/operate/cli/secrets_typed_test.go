package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
)

// openTerminal returns both ends of a terminal.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("NOT TESTED: there are no terminals: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	fd := int(user.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return user, program
}

// What is typed on a terminal is not shown on it.
func TestASecretIsTypedUnseen(t *testing.T) {
	t.Parallel()
	user, program := openTerminal(t)
	e := secretCommands{&env{Terminal: terminal.New(program, program, program)}}
	type typing struct {
		value secrets.Value
		err   error
	}
	done := make(chan typing, 1)
	go func() {
		v, err := e.value(secrets.Name{Owner: "acme", Worker: "shop", Name: "KEY"})
		done <- typing{v, err}
	}()
	require.Eventually(t, func() bool {
		state, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
		return err == nil && state.Lflag&unix.ECHO == 0
	}, time.Minute, time.Millisecond, "the program asks without showing what is typed")
	_, err := user.WriteString("s3cret value\n")
	require.NoError(t, err)
	typed := <-done
	require.NoError(t, typed.err)
	require.Equal(t, "s3cret value", string(typed.value))
	shown := make([]byte, 1000)
	n, err := user.Read(shown)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(shown[:n]), "value of acme/shop KEY: "), "%q", shown[:n])
	require.NotContains(t, string(shown[:n]), "s3cret")
}

// A terminal shows what takes longer than a second, and keeps nothing of it. Its tables are no wider than it is.
func TestATerminalShowsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	user, program := openTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}))
	to := terminal.New(program, program, program)
	seen := make(chan string)
	go func() {
		text := ""
		for buffer := make([]byte, 1000); !strings.Contains(text, "END"); {
			n, err := user.Read(buffer)
			if err != nil {
				break
			}
			text += string(buffer[:n])
		}
		seen <- text
	}()
	require.NoError(t, to.During("fast", func() error { return nil }))
	slow := time.NewTimer(1500 * time.Millisecond)
	require.NoError(t, to.During("slow", func() error { <-slow.C; return nil }))
	l := to.List(false, "ID", "MESSAGE")
	require.NoError(t, l.Add(nil, 1, strings.Repeat("x", 100)))
	require.NoError(t, l.End())
	require.NoError(t, to.Say("END"))
	text := <-seen
	require.NotContains(t, text, "fast")
	require.Contains(t, text, "\rslow, 1 s …\x1b[K\r\x1b[K", "it is removed")
	require.Contains(t, text, "ID  MESSAGE\r\n1   "+strings.Repeat("x", 35)+"…\r\n")
}
