package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The author's files of a version are told, around the line that a stack names. An owner sees its own only.
func TestControlShowsSources(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	dir := t.TempDir()
	lib := "// <b>\n" + strings.Repeat("// a line\n", 5000) + "export function fail(): never { throw new Error('no'); }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib.ts"), []byte(lib), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.ts"),
		[]byte("import { fail } from './lib';\nexport default { task() { fail(); } };\n"), 0o600))
	version := h.deployDir(filepath.Join(dir, "main.ts"))
	require.NotEmpty(t, version)
	a := h.ask("versions.source", `{"worker":"acme/main"}`)
	require.Equal(t, []any{"main.ts", []any{"lib.ts", "main.ts"}, 2.0, 1.0}, []any{a["file"], a["files"], a["lines"],
		a["from"]})
	require.Contains(t, a["text"], "import { fail } from './lib';\nexport default")
	a = h.ask("versions.source", `{"worker":"acme/main","version":"1","file":"lib.ts","line":5002}`)
	require.True(t, strings.HasSuffix(a["text"].(string), "// a line\nexport function fail(): never { throw new Error('no'); }"))
	require.Equal(t, []any{5002.0, 3003.0, "acme/main"}, []any{a["lines"], a["from"], a["worker"]})
	for request, want := range map[string]string{
		`{"worker":"acme/main","file":"<script>"}`:   `404 version 1-`,
		`{"worker":"acme/main","file":"../main.ts"}`: "404 ",
		`{"worker":"acme/main","line":3}`:            "400 line is 3: the file has 2 lines",
		`{"worker":"acme/main","line":-1}`:           "400 line is -1",
		`{"worker":"acme/main","version":"7"}`:       "404 ",
		`{"worker":"acme/none"}`:                     "404 ",
	} {
		_, failure := h.control("versions.source", request)
		require.Contains(t, failure, want, request)
	}
	_, failure := h.control("versions.source", `{"worker":"acme/main"}`, "Authorization", "")
	require.Contains(t, failure, "401 ")
	text, failure := askAsOwner(t, h.nc, "acme", "versions.source", `{"worker":"main"}`)
	require.Empty(t, failure)
	require.True(t, json.Valid([]byte(text)))
	_, failure = askAsOwner(t, h.nc, "beta", "versions.source", `{"worker":"acme/main"}`)
	require.Contains(t, failure, "403 ")
}
