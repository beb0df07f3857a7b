package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/wasmtest"
)

// sumModule exports sum(a, b), for i32. Its bytes are followed by a custom section of so many bytes.
func sumModule(more int) string {
	code := "\x00asm\x01\x00\x00\x00\x01\x07\x01\x60\x02\x7f\x7f\x01\x7f\x03\x02\x01\x00" +
		"\x07\x07\x01\x03sum\x00\x00\x0a\x09\x01\x07\x00\x20\x00\x20\x01\x6a\x0b"
	return code + string(wasmtest.Section(0, wasmtest.Join([]byte("\x01m"), make([]byte, more))))
}

const sums = `import m from "./sum.wasm?module";
	export default { fetch: () => new Response(new WebAssembly.Instance(m).exports.sum(40, 2)) }`

// An owner deploys a worker that imports a module of WebAssembly. It runs in the fleet's process and in a cell.
func TestAnOwnerDeploysWebAssembly(t *testing.T) {
	t.Parallel()
	for _, cell := range []workers.Cell{"none", "all"} {
		t.Run(string(cell), func(t *testing.T) {
			t.Parallel()
			url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
			h := openFleet(t, withWeb, func(c *config.Config) {
				c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes, c.MaxBytes = url, "fleet", "fleet-secret",
					config.List{"_INBOX.{owner}."}, 256<<20
			})
			policy := workers.Policy{WASM: true}
			if cell == "all" {
				policy.Cell = "acme"
			}
			h.setPolicyOf("acme", policy)
			dir := project(t, "", map[string]string{"pinwheel.json": `{"main": "app.js"}`, "app.js": sums,
				"sum.wasm": sumModule(3 << 20)})
			code, out := h.deployBy("acme", dir, "--dry-run", "--name", "site")
			require.Zero(t, code, out)
			code, out = h.deployBy("acme", dir, "--name", "site")
			require.Zero(t, code, out)
			w := openWeb(t, h.fleet.HTTPAddr())
			require.Eventually(t, func() bool {
				_, body := w.ask("GET", "acme/site", "/", "")
				return body == "42"
			}, patience, tick)

			h.setPolicyOf("acme", workers.Policy{WASM: true, Compilers: workers.CompilersBaseline})
			project(t, dir, map[string]string{"app.js": sums + "// again"})
			code, out = h.deployBy("acme", dir, "--name", "site")
			require.Equal(t, 1, code, out)
			require.Contains(t, out, "WebAssembly, which needs V8's optimizing compilers")
		})
	}
}

// What an owner says of the modules of a bundle is checked by the fleet, whatever its client has checked.
func TestModulesOfBundlesThatLie(t *testing.T) {
	t.Parallel()
	_, url := openFiles(t)
	acme, beta := as(t, url, "acme"), as(t, url, "beta")
	bomb, text := string(wasmtest.VariablesAndBlocks(40_000, 1000)), "no module"
	good := sumModule(0)
	for _, data := range []string{bomb, text} {
		require.Empty(t, storeAsOwner(t, acme, "acme", storing(t, acme, "acme", data)))
	}
	require.Empty(t, storeAsOwner(t, beta, "beta", storing(t, beta, "beta", good)))
	ref := func(data string, more int) deploy.ModuleRef {
		return deploy.ModuleRef{Hash: assetsHash(data), Size: int64(len(data) + more)}
	}
	for want, modules := range map[string][]deploy.ModuleRef{
		"at most 2500000 allowed":    {ref(bomb, 0)},
		"not a WebAssembly module":   {ref(text, 0)},
		"has 9 bytes, and not 10":    {ref(text, 1)},
		"412 ":                       {ref(good, 0)}, // another owner's
		"it is named by its SHA-256": {{Hash: "beta." + strings.Repeat("0", 59), Size: 9}},
		"it has 1 to 16777216":       {{Hash: assetsHash(text), Size: 1 << 40}},
		"hashes, each once":          {ref(text, 0), ref(text, 0)},
		"modules":                    make([]deploy.ModuleRef, 65),
	} {
		r := uploaded(t, acme, "acme", "w", goodVersion)
		r.Modules = modules
		_, failure := deployAsOwner(t, acme, "acme", r)
		require.Contains(t, failure, want)
	}
	// Code that names a module which does not come with it is refused as any other that does not load.
	r := uploaded(t, acme, "acme", "w", `import { imported } from "pinwheel:wasm"; imported("`+assetsHash(good)+`");
		export default { task() {} }`)
	_, failure := deployAsOwner(t, acme, "acme", r)
	require.Contains(t, failure, "has no module of WebAssembly")
}
