package bundle_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
)

const adapted = "// pinwheel:runtime/script.js"

// A source that answers as Hoody's scripts do gets the adapter, whatever of their words it uses.
func TestScriptsAreFound(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"w.js":   "return { a: 1 };",
		"w2.js":  "const a = await Promise.resolve(1);\nreturn a;",
		"w3.ts":  "interface A { a: number }\nconst a: A = { a: 1 };\nif (a.a) return a;",
		"w4.js":  "res.end('x')",
		"w5.js":  "console.log(metadata.clientIp)",
		"w6.js":  "for (const socket of ws.connections) socket.close();",
		"w7.js":  "shared.n ??= 0; shared.n++;",
		"w8.js":  "import { a } from './lib/a.js'; // one\nimport {\n  b, // two\n} from \"./lib/a.js\";\nreturn [a, b];",
		"w9.js":  "#!/usr/bin/env hoody\nreturn 1",
		"w10.js": "// @mode worker",
		"w11.js": "const shared = new Map(), ws = 1; return { n: shared.size + ws }; // the end",
		"w12.js": "const text = 'export default 1'; /* export default 2 */ res.json(text)",
		"w14.ts": "declare const shared: any; declare const res: { end(text: string): void };\nres.end(shared.a);",
		"w15.ts": "declare global { var x: number }\nconst a = 1;\nreturn a;\nexport {};\n",
		"w16.ts": "return 1;\n\nexport {}",
		"w17.js": "import a, * as all from './lib/a.js'; import './lib/a.js' with { };\nreturn all.a",
		"w13.ts": "import type { A } from './lib/a.js';\nres.end(null as A)",
	} {
		dir := tree(t, map[string]string{name: source, "lib/a.js": "export const a = 1, b = 2; export default 3;"})
		b, err := bundle.Build(t.Context(), filepath.Join(dir, name))
		require.NoError(t, err, source)
		require.Contains(t, b.Code, adapted, source)
		require.Contains(t, b.Code, " as default", source)
		require.Empty(t, b.Warnings, source)
	}
}

func TestScriptsLearnWhatIsMissing(t *testing.T) {
	t.Parallel()
	const source = "const db = new Database('/x.db');\nreturn db.query('SELECT 1').all();"
	dir := tree(t, map[string]string{"w.js": source, "site/pinwheel.json": `{"fileRoutes": "api"}`,
		"site/api/a.js": source, "own.js": "class Database {}\nreturn new Database()"})
	for path, file := range map[string]string{"w.js": "/w.js", "site": "/api/a.js", "own.js": ""} {
		b, err := bundle.Build(t.Context(), filepath.Join(dir, path))
		require.NoError(t, err)
		if file == "" {
			require.Empty(t, b.Warnings)
			continue
		}
		require.Len(t, b.Warnings, 1)
		require.Contains(t, b.Warnings[0].String(), file+": Database is not here: env has values")
	}
}

// What only looks like a script, in comments, strings or inner scopes, stays what it is.
func TestOtherSourcesAreNoScripts(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"export default { fetch() { return new Response('res.end()') } }",
		"export default { fetch: () => Response.json(shared) }",
		"// return res.end(ws, metadata)\nconst text = `return ${1} res ws`;",
		"addEventListener('fetch', (event) => { const res = new Response(); event.respondWith(res); shared.a = 1; });",
		"self.addEventListener('fetch', (event) => event.respondWith(new Response(shared.a)));",
		"module.exports = { fetch: (req) => { return new Response(metadata) } };",
		"const f = (req, res) => { return res.end(req.ws) }; f.metadata = f;",
		"globalThis.shared; ({ ws: 1 }).res;",
	} {
		b, err := bundle.Build(t.Context(), write(t, t.TempDir()+"/w.js", source))
		require.NoError(t, err, source)
		require.NotContains(t, b.Code, adapted, source)
	}
	_, err := bundle.Build(t.Context(), write(t, t.TempDir()+"/w.js", "export default 1;\nreturn 2;"))
	require.ErrorContains(t, err, "w.js:2:1: Top-level return cannot be used")
	_, err = bundle.Build(t.Context(), write(t, t.TempDir()+"/w.js", "res.end(\n  return"))
	require.ErrorContains(t, err, "w.js:2:3: ")
}

// The source map has the lines and columns of the script, and its text.
func TestScriptsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"return mark();": "w.js:1:8",
		"// @mode worker\n\nconst x = 'é𝒳', y = mark();\nreturn x;":             "w.js:3:22",
		"import { a } from './lib/a.js'; return a(mark());":                     "w.js:1:42",
		"import { a } from './lib/a.js';\n\nres.end(a); {\n\tmark(); }":         "w.js:4:2",
		"#!/bin/sh\nmark(); return 1":                                           "w.js:2:1",
		"/* one\n two */ return /* three */ mark()":                             "w.js:2:28",
		"const late = 1;\n" + strings.Repeat("// x\n", 40) + "res.mark(mark())": "w.js:42:10",
	} {
		dir := tree(t, map[string]string{"w.js": source, "lib/a.js": "export const a = (x) => x;"})
		b, err := bundle.Build(t.Context(), filepath.Join(dir, "w.js"))
		require.NoError(t, err, source)
		m, err := sourcemap.Parse(b.SourceMap)
		require.NoError(t, err)
		i := strings.Index(b.Code, "mark()")
		before := b.Code[:i]
		p, ok := m.Position(strings.Count(before, "\n")+1, i-strings.LastIndexByte(before, '\n'))
		require.True(t, ok, source)
		require.Equal(t, want, p.String(), source)
		require.Equal(t, source, m.Text("w.js"))
	}
}

// Files of fileRoutes may be scripts, and what they say of all files holds for the worker.
func TestRoutesThatAreScripts(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"pinwheel.json":     `{"fileRoutes": "api"}`,
		"api/users/[id].ts": "// @mode worker\n// @cors reflective\n// @timeout 0\nreturn { user: metadata.parameters.id };",
		"api/index.js":      "// @mode worker\n// @cors reflective\n// @timeout 0\n// @websocket\nexport default () => new Response('home')",
		"api/users/pre.js":  "// @mode persistent\nreq.user = 'Ada';",
	})
	b, err := bundle.Build(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, workers.Persistent, b.Mode)
	require.Equal(t, workers.MaxLimits.Wall, b.Limits.Wall)
	require.Equal(t, []string{"reflective"}, b.HTTP.CORS.Origins)
	require.Empty(t, b.Warnings)
	require.Equal(t, 1, strings.Count(b.Code, adapted))

	for files, want := range map[string]string{
		"api/index.js|// @cors none\n// @mode worker\nexport default () => 1":                      `api/index.js:1:10: @cors is "none" here and "reflective" in `,
		"api/index.js|// @cors reflective\n// @mode shared\n// @timeout 0\nexport default () => 1": `api/index.js:2:10: @mode is "shared" here and "worker" in `,
		"api/index.js|// @cors reflective\n// @timeout 0\nexport default () => 1":                  `[id].ts:1:10: @mode is not in `,
		"pinwheel.json|{\"fileRoutes\": \"api\", \"mode\": \"shared\"}":                            `pinwheel.json:1:23: mode is "shared" here and "persistent" in`,
	} {
		path, text, _ := strings.Cut(files, "|")
		dir := tree(t, map[string]string{"pinwheel.json": `{"fileRoutes": "api"}`,
			"api/users/[id].ts": "// @mode worker\n// @cors reflective\n// @timeout 0\nreturn 1", path: text})
		_, err := bundle.Build(t.Context(), dir)
		require.ErrorContains(t, err, want)
	}
}
