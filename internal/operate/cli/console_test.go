package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// console waits until out has the address of a console, and returns it.
func (s *screen) console(t *testing.T) (base string) {
	t.Helper()
	s.shows(t, "Console on http://")
	return "http://" + regexp.MustCompile(`Console on http://([^/\s]+)`).FindStringSubmatch(s.String())[1]
}

// page asks for a page, and returns its status and text.
func page(t *testing.T, address string) (code int, body string) {
	t.Helper()
	client := http.Client{Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := client.Get(address)
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(text)
}

func helloFile(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "hello.js")
	require.NoError(t, os.WriteFile(path, []byte("export default { task() {} }"), 0o600))
	return path
}

// The console of dev needs no login, as its NATS needs none, and its operator may act.
func TestConsoleOfDev(t *testing.T) {
	t.Parallel()
	out := runsDev(t, helloFile(t))
	base := out.console(t)
	out.shows(t, "dev/hello, version")
	code, body := page(t, base+"/workers")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, "dev/hello")
	code, body = page(t, base+"/dead")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, "Open to this machine")
	code, body = page(t, base+"/doctor")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, "nats-server")
}

// With a token in its environment dev asks for it.
func TestConsoleOfDevWithToken(t *testing.T) {
	t.Parallel()
	cfg := devConfig(t)
	cfg.ConsoleToken = "token-of-those-who-see"
	out := runsDevWith(t, cfg, helloFile(t))
	code, _ := page(t, out.console(t)+"/workers")
	require.Equal(t, http.StatusSeeOther, code)
}

// Where NATS alone guards the control endpoints, dev starts too.
func TestConsoleOfDevWithPermissions(t *testing.T) {
	t.Parallel()
	cfg := devConfig(t)
	cfg.Control = config.ControlByPermissions
	out := runsDevWith(t, cfg, helloFile(t))
	base := out.console(t)
	out.shows(t, "dev/hello, version")
	code, body := page(t, base+"/dead")
	require.Equal(t, http.StatusOK, code, body)
}

// An address that is taken ends dev, if somebody has chosen it.
func TestConsoleAddressIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	cfg := devConfig(t)
	cfg.ConsoleAddr = l.Addr().String()
	err = runDev(context.Background(), cfg, zerolog.Nop(), &screen{}, []string{helloFile(t)}, nil)
	require.ErrorContains(t, err, "PINWHEEL_CONSOLE_ADDR is")
	require.ErrorContains(t, err, "address already in use")
}

// serve does not start with a console that nobody can use, or that others could.
func TestConsoleOfServeNeedsAToken(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*config.Config){
		"nobody can log in": func(c *config.Config) { c.ConsoleAddr = "127.0.0.1:0" },
		"it is host:port":   func(c *config.Config) { c.ConsoleAddr = "8423" },
		"PINWHEEL_CONTROL_TOK": func(c *config.Config) {
			c.ControlToken, c.ConsoleToken = "sixteen-characters",
				"sixteen-characters"
		},
	} {
		cfg := devConfig(t)
		change(&cfg)
		var errs screen
		require.Equal(t, exitUsage, MainWith(cfg, []string{"serve"}, strings.NewReader(""), io.Discard, &errs), want)
		require.Contains(t, errs.String(), want)
	}
}
