//go:build browser

package browser

import (
	"bufio"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

func TestMain(m *testing.M) {
	fleettest.BeChild()
	os.Exit(m.Run())
}

// startDev runs `pinwheel dev ./examples/site` below dir, on free ports, and returns the address that it prints for the
// site. It gets Ctrl-C at the end of the test.
func startDev(t *testing.T, dir string) (address string) {
	t.Helper()
	cmd := fleettest.Command([]string{"PINWHEEL_ADMIN_ADDR="},
		"dev", "./examples/site", "--port", "-1", "--nats-port", "-1")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said, over := make(chan string, 1), make(chan string, 1)
	go func() { over <- follow(out, said) }()
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		text := <-over
		require.NoError(t, cmd.Wait(), "%s", text)
		require.NotContains(t, text, "✗")
	})
	select {
	case address = <-said:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatalf("pinwheel dev prints no address: %s", <-over)
	}
	return address
}

// follow reads lines to their end. It passes on the first address of the site.
func follow(in io.Reader, said chan<- string) (text string) {
	address := regexp.MustCompile(`http://site--dev\.localhost:\d+/shop/$`)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if at := address.FindString(lines.Text()); at != "" && len(said) == 0 {
			said <- at
		}
		text += lines.Text() + "\n"
	}
	return text
}

// change has an editor save a file with a text in place of another one.
func change(t *testing.T, path, before, after string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), before)
	require.NoError(t, os.WriteFile(path+".new", []byte(strings.ReplaceAll(string(text), before, after)), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}
