package cli_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

func TestOwners(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	require.Equal(t, "OWNER  WEIGHT  RUNNING  QUEUED  FLEET  CALLS  ISOLATES  HEAP MB  GROUP  COMPILERS  WASM  CELL  DEPLOYS  HOSTS  CEILINGS\n", f.Pinwheel("owners", "ls").Out)
	r := f.Pinwheel("owners", "set", "dev", "--weight", "2", "--cpu", "20ms", "--worker-heap", "64")
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Out, "dev    2       -        -       -      -      -         -        -      -          -     -     -        -      cpu 20ms, heap 64 MB\n")
	r = f.Pinwheel("owners", "set", "dev", "--max-running", "7", "--weight", "0")
	require.Contains(t, r.Out, "dev    -       7        -       -      -      -         -        -      -          -     -     -        -      cpu 20ms, heap 64 MB\n")
	require.JSONEq(t, `{"owner":"dev","maxRunning":7,"ceilings":{"cpuMs":20,"heapMB":64}}`, f.Pinwheel("owners", "ls", "--json").Out)
	r = f.Pinwheel("owners", "set", "limited", "--fleet-max-running", "40", "--fleet-max-queued", "900", "--calls", "100",
		"--call-burst", "300", "--call-bytes", "1000000")
	require.Contains(t, r.Out, "40 running, 900 queued  100/s, 300 at once, 1000000 bytes/s  -")
	r = f.Pinwheel("owners", "set", "deployer", "--max-workers", "3", "--code-bytes", "1000000")
	require.Contains(t, r.Out, "3 workers, 1000000 bytes of code")
	r = f.Pinwheel("owners", "set", "routed", "--hosts", "shop.example,*.shop.example")
	require.Contains(t, r.Out, "shop.example, *.shop.example")
	require.Contains(t, f.Pinwheel("owners", "set", "routed", "--hosts", "shop/x").Err, `hosts[0]: host "shop/x"`)
	r = f.Pinwheel("owners", "set", "shop", "--group", "acme-inc")
	require.Contains(t, r.Out, " acme-inc ")
	require.JSONEq(t, `{"owner":"shop","group":"acme-inc"}`, lineWith(f.Pinwheel("owners", "ls", "--json").Out, "shop\""))
	require.Contains(t, f.Pinwheel("owners", "set", "shop", "--group", "acme inc").Err,
		`group "acme inc": a name is 1 to 64 of`)
	require.NotContains(t, f.Pinwheel("owners", "set", "shop", "--group", "").Out, "acme-inc")
	require.Contains(t, f.Pinwheel("owners", "set", "guest", "--compilers", "baseline").Out, "  baseline   ")
	require.JSONEq(t, `{"owner":"guest","compilers":"baseline"}`,
		lineWith(f.Pinwheel("owners", "ls", "--json").Out, "guest"))
	r = f.Pinwheel("owners", "set", "guest", "--compilers", "none")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, `compilers is "none": it is full or baseline, or "" for what the fleet has`)
	require.NotContains(t, f.Pinwheel("owners", "set", "guest", "--compilers", "").Out, "baseline")
	require.Contains(t, f.Pinwheel("owners", "set", "guest", "--cell", "own").Out, "  own   ")
	require.JSONEq(t, `{"owner":"guest","cell":"own"}`, lineWith(f.Pinwheel("owners", "ls", "--json").Out, "guest"))
	r = f.Pinwheel("owners", "set", "guest", "--cell", "two words")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, `cell "two words": a name is 1 to 64 of`)
	require.NotContains(t, f.Pinwheel("owners", "set", "guest", "--cell", "").Out, "own")
	for _, bad := range []string{"--max-workers=10001", "--code-bytes=-1", "--weight=-1", "--weight=101", "--cpu=-1s",
		"--cpu=6m", "--worker-heap=4"} {
		r := f.Pinwheel("owners", "set", "dev", bad)
		require.Equal(t, 2, r.Code, "%s: %s", bad, r.Err)
		require.Contains(t, r.Err, "it is ", bad)
	}
	require.Equal(t, 2, f.Pinwheel("owners", "set", "dev").Code)
	require.Equal(t, 2, f.Pinwheel("owners", "set", "d.v", "--weight", "1").Code)
	r = f.Pinwheel("owners", "rm", "dev")
	require.Zero(t, r.Code, r.Err)
	require.NotContains(t, f.Pinwheel("owners", "ls").Out, "dev")
}

// A ceiling applies to workers that already run. Workers that ask for more cannot be deployed.
func TestOwnersCeilings(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	file := t.TempDir() + "/loop.js"
	require.NoError(t, os.WriteFile(file, []byte(`export default { fetch() { for (;;); } }`), 0o600))
	manifest := strings.TrimSuffix(file, ".js") + ".pinwheel.json"
	require.NoError(t, os.WriteFile(manifest, []byte(`{"limits":{"cpuMs":100}}`), 0o600))
	f.Deploy(t, file, "--owner", "dev")
	require.Contains(t, f.Pinwheel("send", "fetch", "dev/loop").Err, "CPU time limit of 100ms")
	require.Zero(t, f.Pinwheel("owners", "set", "dev", "--cpu", "30ms").Code)
	require.Eventually(t, func() bool {
		return strings.Contains(f.Pinwheel("send", "fetch", "dev/loop").Err, "CPU time limit of 30ms")
	}, patience, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(manifest, []byte(`{"limits":{"cpuMs":90}}`), 0o600))
	r := f.Pinwheel("deploy", file, "--owner", "dev")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "limits.cpuMs is 90: this owner may have at most 30")
	require.Zero(t, f.Pinwheel("owners", "rm", "dev").Code)
	require.Eventually(t, func() bool {
		return strings.Contains(f.Pinwheel("send", "fetch", "dev/loop").Err, "CPU time limit of 100ms")
	}, patience, 10*time.Millisecond)
}

// lineWith returns the first line that has a text.
func lineWith(lines, text string) string {
	for line := range strings.Lines(lines) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// Workers of owners of a group run in one isolate, as soon as the policies are taken up, and apart when they are not.
func TestOwnersGroup(t *testing.T) {
	t.Parallel()
	// each thread has an isolate of the group
	f := fleettest.Start(t, func(c *config.Config) { c.Threads, c.BackgroundThreads = 1, 0 })
	file := t.TempDir() + "/who.js"
	require.NoError(t, os.WriteFile(file, []byte(`// @mode shared
export default { fetch: (request, env) => new Response("I am " + env.WHO) }`), 0o600))
	ask := func() {
		for _, owner := range []string{"shop", "blog"} {
			require.Contains(t, f.Pinwheel("send", "fetch", owner+"/who").Out, "I am "+owner)
		}
	}
	isolates := func() string {
		ask()
		m, err := f.NC.Request("pinwheel.control.pool", nil, 10*time.Second)
		require.NoError(t, err)
		return string(m.Data)
	}
	for _, owner := range []string{"shop", "blog"} {
		f.Deploy(t, file, "--owner", owner, "--var", "WHO="+owner)
	}
	require.NotContains(t, isolates(), "@acme")
	for _, owner := range []string{"shop", "blog"} {
		require.Zero(t, f.Pinwheel("owners", "set", owner, "--group", "acme").Code)
	}
	require.Eventually(t, func() bool {
		out := isolates()
		return strings.Contains(out, `"@acme","isolates":1,"contexts":2`)
	}, 60*time.Second, 10*time.Millisecond, "%s", isolates())
	require.Zero(t, f.Pinwheel("owners", "rm", "shop").Code)
	require.Eventually(t, func() bool {
		return strings.Contains(isolates(), `"@acme","isolates":1,"contexts":1`)
	}, 60*time.Second, 10*time.Millisecond)
}

// Owners without a cell of their policy are where the fleet says.
func TestOwnersInCellsOfTheFleet(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t, func(c *config.Config) { c.Cell = "guests" })
	require.Contains(t, f.Pinwheel("owners", "set", "acme", "--weight", "2").Out, "  guests (fleet)  ")
	require.Contains(t, f.Pinwheel("owners", "set", "acme", "--cell", "shared").Out, "  shared  ")
}
