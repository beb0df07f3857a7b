package compat_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Node's modules answer as those of Cloudflare's workerd do, call by call. Where they do not, they answer as Node's
// own, or differences_test.go has the reason.
func TestNodeModules(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	const options = `{"compatibilityFlags": ["nodejs_compat"], "bindings": {"GREETING": "hi"}}`
	files := []string{"node_events.js", "node_buffer.js", "node_misc.js", "node_crypto.js", "node_zlib.js", "node_keys.js",
		"node_http.js"}
	var modules []string
	for _, file := range files {
		modules = append(modules, file, options)
	}
	answers := runMiniflare(t, f.dir, modules...)
	calls, asNode := 0, 0
	for i, file := range files {
		theirs, nodes := cases(t, []byte(answers[i])), cases(t, answersOfNode(t, f.dir, file))
		calls += len(theirs)
		t.Run(file, func(t *testing.T) {
			ours := together(t, f.deploy(t, file))
			require.Len(t, ours, len(theirs))
			for name := range theirs {
				_, named := known[file][name]
				if !named && !reflect.DeepEqual(theirs[name], ours[name]) && reflect.DeepEqual(nodes[name], ours[name]) {
					theirs[name], asNode = ours[name], asNode+1
				}
			}
			compareCalls(t, file, theirs, ours)
		})
	}
	t.Logf("%d of them are as in Node, and not as in workerd", asNode)
	enoughCalls(t, calls, 4200)
}

// answersOfNode returns the body with which the fetch handler of a module answers in node.
func answersOfNode(t *testing.T, dir, file string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--no-warnings", "--input-type=module", "--eval", `
		process.env.GREETING = "hi";
		const { default: handler } = await import("data:text/javascript," + encodeURIComponent(`+
		`(await import("node:fs")).readFileSync(process.argv[1], "utf8")));
		process.stdout.write(await (await handler.fetch(new Request("http://w.test/"), {}, {})).text());`,
		filepath.Join(dir, file))
	cmd.Dir, cmd.WaitDelay, cmd.Stderr = dir, time.Second, os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}
