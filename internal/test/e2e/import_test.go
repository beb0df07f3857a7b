package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// The import() calls that esbuild leaves in a bundle run in the real runtime. A module that esbuild can resolve is
// bundled and loaded once, when it is imported. Another one is refused when it is imported.
func TestImportsOfABundle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"part.js":  `globalThis.loads = (globalThis.loads ?? 0) + 1; export default "part"; export const url = import.meta.url;`,
		"slow.js":  `export const late = await Promise.resolve("late");`,
		"de.js":    `export default "hallo";`,
		"en.js":    `export default "hello";`,
		"plain.ts": `export const typed: string = "typed";`,
		"worker.js": `
			import { typed } from "./plain.ts";
			const check = (ok, what) => { if (!ok) throw new Error(what) };
			check(globalThis.loads === undefined, "a part was loaded before it was imported");
			const [one, two] = await Promise.all([import("./part.js"), import("./part.js")]);
			check(one.default === "part" && one === two && globalThis.loads === 1, "not loaded once");
			check((await import("./slow.js")).late === "late", "top-level await of a part");
			for (const lang of ["de", "en"]) check((await import("./" + lang + ".js")).default === { de: "hallo", en: "hello" }[lang], lang);
			check(one.url === import.meta.url && new URL("./part.js", import.meta.url).href === "file:///part.js", import.meta.url);
			check(typed === "typed", typed);
			const name = "./not" + "-bundled.js";
			const error = await import(name).catch((e) => e);
			check(error instanceof TypeError && error.message.includes('"./not-bundled.js"'), String(error));
			const unknown = await import("./xx" + ".js").catch((e) => e);
			check(unknown instanceof Error, String(unknown));
			export default { fetch: () => new Response("ok") };`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	b, err := bundle.Build(context.Background(), filepath.Join(dir, "worker.js"))
	require.NoError(t, err)
	check, err := isolates.OpenChecker(nil, isolates.CheckConfig{})
	require.NoError(t, err)
	defer check.Close()
	has, err := check.Check(context.Background(), &workers.Worker{Owner: "acme", Name: "bundled", Code: b.Code,
		File: b.File})
	require.NoError(t, err, "%s", b.Code)
	require.Equal(t, workers.Handlers{Kinds: []events.Kind{events.Fetch}}, has)
}
