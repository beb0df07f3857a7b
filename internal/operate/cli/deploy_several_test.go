package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

func TestSeveralWorkersInOneDeploy(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	dir := t.TempDir()
	save := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	a, b := save("a.js", `export default { fetch: () => new Response("a") }`), filepath.Join(dir, "b")
	save("b/index.js", `export default { fetch: () => new Response("b") }`)
	r := f.Pinwheel("deploy", a, b, "--owner", "acme")
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `^deployed acme/a version 1-\S+ \(fetch\), .*\ndeployed acme/b version 1-\S+ \(fetch\), .*\n$`, r.Out)
	require.Equal(t, "b", f.Pinwheel("send", "fetch", "acme/b").Out)

	broken := save("c.js", `export default { fetch( }`)
	r = f.Pinwheel("deploy", save("new.js", `export default { task() {} }`), broken, "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "c.js:1:")
	require.NotContains(t, f.Pinwheel("workers", "ls").Out, "acme/new", "what is not bundled keeps all from being deployed")

	refused := save("d.js", `export default {}`)
	r = f.Pinwheel("deploy", refused, a, b, "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "pinwheel: not deployed: "+a+", "+b+"\n")

	r = f.Pinwheel("deploy", a, b, "--owner", "acme", "--name", "x")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "--name is for one worker, and these are 2: give them names in their manifests")
	r = f.Pinwheel("deploy", a, save("other/a.js", "export default {}"), "--owner", "acme")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "are both the worker a: ")
}
