//go:build newbinding

package newbinding_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the directory of the module.
const root = "../../.."

// lines are what the kind takes in existing files: a field of workers.Bindings, its row in bindingKinds, and its line
// in internal/env/bindings.New. Each stands before the line that begins with before.
var lines = []struct{ file, before, line string }{
	{"events/workers/bindings.go", "\tNATS map[string]NATSSubjects ", "\tCounters map[string]string `json:\"counters,omitempty\"`"},
	{
		"events/workers/bindings.go", "\t{BindingNATS, ",
		"\t{\"counters\", \"counter\", func(b *Bindings) values { return (*textValues)(&b.Counters) }, names(\"counters\", \"counter\"), 4, Budget{50, 2}},",
	},
	{"internal/env/bindings/bindings.go", "\t\tworkers.BindingNATS:", "\t\tBindingCounters: {newCounters(of).method, \"Counter\"},"},
}

// TestOneMoreKindOfBinding builds the fleet with the kind, in an overlay of its files, and runs counters_test.go in it.
func TestOneMoreKindOfBinding(t *testing.T) {
	module, err := filepath.Abs(root)
	require.NoError(t, err)
	dir := t.TempDir()
	replace := map[string]string{}
	for path, file := range map[string]string{"internal/env/bindings/counters.go": "counters.go",
		"isolates/js/bindings/counters.js": "counters.js"} {
		replace[filepath.Join(module, path)], err = filepath.Abs(filepath.Join("testdata", file))
		require.NoError(t, err)
	}
	texts := map[string]string{}
	for _, l := range lines {
		path := filepath.Join(module, l.file)
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			texts[path] = string(text)
		}
		head, tail, ok := strings.Cut(texts[path], "\n"+l.before)
		require.True(t, ok, "%s has no line that begins with %q", l.file, l.before)
		texts[path] = head + "\n" + l.line + "\n" + l.before + tail
	}
	for path, text := range texts {
		changed := filepath.Join(dir, filepath.Base(filepath.Dir(path))+".go")
		require.NoError(t, os.WriteFile(changed, []byte(text), 0o600))
		replace[path] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))

	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", list, "-tags", "counters", "-run",
		"^TestCounters$", "-v", ".")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestCounters")

	// hash, record, schema and checks follow from the row
	for _, of := range []string{"./deploy", "./deploy/manifest", "./events/workers"} {
		cmd = exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-run",
			"TestHash|TestRecord|TestSchema|TestEachField", of)
		cmd.Dir = module
		out, err = cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "no tests to run", of)
	}
}
