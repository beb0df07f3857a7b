package isolates

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// TestJS runs every script of testdata inside a worker: assert.js, then the script, as one module
// whose task handler returns the results of its tests.
func TestJS(t *testing.T) {
	t.Parallel()
	assert, err := os.ReadFile("testdata/assert.js")
	require.NoError(t, err)
	cases, err := filepath.Glob("testdata/*/*.js")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, path := range cases {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".js"), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(path)
			require.NoError(t, err)
			b := newBench(t)
			b.pool.SetPolicy("acme", workers.Policy{WASM: strings.Contains(path, "wasm/") || strings.Contains(path, "globals/")})
			w := worker("js", string(assert)+"\n"+string(script))
			w.Limits = workers.Limits{CPU: workers.Millis(time.Minute), Wall: workers.Millis(patience)}
			o := b.run(w, task("{}"))
			if f := o.end.Failure; f != nil {
				t.Fatalf("%v\n%s\n%v", f, f.Stack, b.lines())
			}
			var doc struct {
				Data []struct {
					Name    string
					OK      bool
					Message string
				}
			}
			require.NoError(t, json.Unmarshal(o.reply.Body, &doc), "%s", o.reply.Body)
			require.NotEmpty(t, doc.Data)
			for _, r := range doc.Data {
				if !r.OK {
					t.Errorf("%s: %s", r.Name, r.Message)
				}
			}
		})
	}
}
