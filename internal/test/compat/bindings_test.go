package compat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// servicesOptions bind the exports of the worker itself.
const servicesOptions = `{"name": "w", "bindings": {"TEXT": "t"}, "serviceBindings": {"SELF": "w", "NAMED": {"name": "w", "entrypoint": "Named"},
	"PLAIN": {"name": "w", "entrypoint": "plain"}, "BARE": {"name": "w", "entrypoint": "Bare"}, "BROKEN": {"name": "w", "entrypoint": "Broken"}}}`

// Bindings answer as those of Cloudflare's workerd do, call by call.
func TestBindings(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	tests := []struct {
		file    string
		options string // of Miniflare
		ours    func(*testing.T, *worker) map[string]any
	}{
		{"kv.js", `{"kvNamespaces": ["KV"]}`, together},
		{"caches.js", `{}`, together},
		{"objects.js", `{"r2Buckets": ["R2"]}`, oneByOne},
		{"queue.js", `{"queueProducers": {"QUEUE": "jobs"}}`, together},
		{"services.js", servicesOptions, oneByOne},
		{"version.js", `{"versionMetadata": "VERSION"}`, together},
		{"rewriter.js", `{}`, together},
		{"apis.js", `{"compatibilityFlags": ["nodejs_compat"], "bindings": {"GREETING": "hi"}}`, together},
	}
	var modules []string
	for _, test := range tests {
		modules = append(modules, test.file, test.options)
	}
	answers := runMiniflare(t, f.dir, modules...)
	calls := 0
	for i, test := range tests {
		theirs := cases(t, []byte(answers[i]))
		calls += len(theirs)
		t.Run(test.file, func(t *testing.T) { compareCalls(t, test.file, theirs, test.ours(t, f.deploy(t, test.file))) })
	}
	enoughCalls(t, calls, 1150)
}

// compareCalls holds the answers of Pinwheel to those of workerd, but for those that known names. It returns their
// number.
func compareCalls(t *testing.T, file string, theirs, ours map[string]any) int {
	t.Helper()
	require.Len(t, ours, len(theirs))
	for name, answer := range theirs {
		if reason, ok := known[file][name]; ok {
			assert.NotEqual(t, answer, ours[name], "%s is the same now, and should differ: %s", name, reason)
		} else {
			assert.Equal(t, answer, ours[name], name)
		}
	}
	for name := range known[file] {
		require.Contains(t, theirs, name)
	}
	return len(theirs)
}

// enoughCalls prints how many calls a test has compared, and fails if they are fewer than there were.
func enoughCalls(t *testing.T, calls, least int) {
	t.Helper()
	t.Logf("%d calls are compared with those of workerd", calls)
	require.GreaterOrEqual(t, calls, least)
}

// together returns the answers of one event to all cases.
func together(t *testing.T, w *worker) map[string]any {
	t.Helper()
	a := w.get(t, "http://w.test/")
	require.Equal(t, 200, a.status, a.body)
	return cases(t, []byte(a.body))
}

// oneByOne returns the answers of an event for each case: a run may make some calls only.
func oneByOne(t *testing.T, w *worker) map[string]any {
	t.Helper()
	all := map[string]any{}
	for i := 0; ; i++ {
		a := w.get(t, fmt.Sprint("http://w.test/?case=", i))
		require.Equal(t, 200, a.status, a.body)
		one := cases(t, []byte(a.body))
		if len(one) == 0 {
			return all
		}
		maps.Copy(all, one)
	}
}

// runMiniflare returns the bodies with which modules answer in workerd. modules are file, options, file, options …: one
// workerd runs them all, because its start takes longer than an answer. If the first is sockets.js, the last body is
// what clients saw of it. dir is the directory of the packages.
func runMiniflare(t *testing.T, dir string, modules ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(modules))*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(dir, "miniflare.mjs")}, modules...)...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("miniflare: %v\n%s", err, exit.Stderr)
	}
	require.NoError(t, err)
	var answers []string
	require.NoError(t, json.Unmarshal(out, &answers), "%s", out)
	require.GreaterOrEqual(t, len(answers), len(modules)/2)
	return answers
}

func cases(t *testing.T, text []byte) map[string]any {
	t.Helper()
	answers := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &answers), "%s", text)
	return answers
}
