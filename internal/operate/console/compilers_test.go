package console_test

import (
	"html"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// The page of an owner says when the fleet allows less than any policy can. Such a fleet has a process of its own: V8
// starts once, with its compilers.
func TestCompilersOfTheFleet(t *testing.T) {
	const variable = "CONSOLE_COMPILERS"
	if os.Getenv(variable) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCompilersOfTheFleet$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=yes")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestCompilersOfTheFleet")
		return
	}
	f := startFleet(t, func(c *config.Config) { c.Compilers = "baseline" })
	p := newPerson(t, startConsole(t, f), operateToken)
	require.Contains(t, p.page("/owners/acme"), "<code>PINWHEEL_COMPILERS=baseline</code>: no owner gets more")
	p.does("/owners/acme", "/owners/acme", url.Values{"policy": {`{"compilers": "baseline"}`}})
	require.Eventually(t, func() bool {
		return strings.Contains(html.UnescapeString(p.page("/owners")), `title="compilers baseline"`)
	}, patience, 10*time.Millisecond)
}
