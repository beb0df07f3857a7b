package compat_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// types returns the directory of the packages, which has the output of pinwheel types, and that text.
func types(t *testing.T) (dir, text string) {
	t.Helper()
	dir = packages(t)
	text, err := declarations()
	require.NoError(t, err)
	return dir, text
}

// declarations writes the output of pinwheel types to the directory of the packages, once.
var declarations = sync.OnceValues(func() (string, error) {
	var out, errs bytes.Buffer
	if cli.MainWith(config.Config{}, []string{"types"}, strings.NewReader(""), &out, &errs) != 0 {
		return "", errors.New(errs.String())
	}
	return out.String(), os.WriteFile(filepath.Join(home, "pinwheel.d.ts"), out.Bytes(), 0o600)
})

// tsc checks the files of dir with the options in docs/guides/types.md and further options. It returns the errors.
func tsc(t *testing.T, dir string, files []string, options ...string) []string {
	t.Helper()
	return tscOf(t, dir, "typescript", files, append([]string{"--ignoreConfig"}, options...)...)
}

// tscOf does what tsc does, with the compiler of another package.
func tscOf(t *testing.T, dir, compiler string, files []string, options ...string) []string {
	t.Helper()
	args := slices.Concat([]string{
		filepath.Join(dir, "node_modules", compiler, "bin", "tsc"), "--pretty", "false", "--noEmit", "--strict", "--target",
		"es2022", "--lib", "esnext,webworker", "--typeRoots", "none",
		"--module", "esnext", "--moduleResolution", "bundler",
	}, options, []string{"pinwheel.d.ts"}, files)
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	out, err := cmd.CombinedOutput()
	var complaints []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, " ") {
			complaints[len(complaints)-1] += "\n" + strings.TrimSuffix(line, "\n")
		} else {
			complaints = append(complaints, strings.TrimSuffix(line, "\n"))
		}
	}
	require.Equal(t, err == nil, len(complaints) == 0, "tsc: %v\n%s", err, out)
	return complaints
}

func glob(t *testing.T, dir string, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, f := range found {
			name, err := filepath.Rel(dir, f)
			require.NoError(t, err)
			files = append(files, name)
		}
	}
	return files
}

// good are files without a mistake. Each of them is a module, and the last one is JavaScript.
var good = []string{"types/good.ts", "types/listeners.ts", "types/entrypoint.ts", "types/jsdoc.js"}

func TestTypesOfHandlers(t *testing.T) {
	t.Parallel()
	dir, _ := types(t)
	require.Empty(t, tsc(t, dir, good, "--allowJs", "--checkJs"))
	require.Empty(t, tsc(t, dir, good[:3], "--lib", "esnext,dom"), "an editor without a configuration takes the DOM's types")
	require.Empty(t, tsc(t, dir, glob(t, dir, "*.ts", "*.tsx"), "--skipLibCheck", "--jsx", "react-jsx"),
		"workers with the packages' own types")
}

// The oldest TypeScript that docs/guides/types.md names, and the last one before the compiler was rewritten.
func TestTypesWithOlderCompilers(t *testing.T) {
	t.Parallel()
	dir, _ := types(t)
	for _, compiler := range []string{"typescript-5.5", "typescript-5.9"} {
		require.Empty(t, tscOf(t, dir, compiler, good, "--allowJs", "--checkJs"), compiler)
	}
}

func TestTypesOfExamples(t *testing.T) {
	t.Parallel()
	dir, _ := types(t)
	copied := filepath.Join(dir, "examples")
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(copied)) }) // for -count
	require.NoError(t, os.CopyFS(copied, os.DirFS(examples)))
	require.Empty(t, tsc(t, dir, glob(t, dir, "examples/*.ts")))
	require.Empty(t, tsc(t, dir, glob(t, dir, "examples/*.js"), "--allowJs", "--checkJs", "--strict", "false"))
}

// Lines of bad.ts say which error they must have. The other lines must have none.
func TestTypesRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir, _ := types(t)
	text, err := os.ReadFile("testdata/types/bad.ts")
	require.NoError(t, err)
	var want, got []string
	for i, line := range strings.Split(string(text), "\n") {
		if _, code, ok := strings.Cut(line, "// error "); ok {
			want = append(want, fmt.Sprintf("line %d: %s", i+1, code))
		}
	}
	require.NotEmpty(t, want)
	complaint := regexp.MustCompile(`^types/bad\.ts\((\d+),\d+\): error (TS\d+): `)
	for _, c := range tsc(t, dir, []string{"types/bad.ts"}) {
		m := complaint.FindStringSubmatch(c)
		require.NotNil(t, m, c)
		got = append(got, fmt.Sprintf("line %s: %s", m[1], m[2]))
	}
	require.Equal(t, want, got)
}

// declared returns the names of the members that the types declare for an interface or class, without the static ones.
func declared(t *testing.T, text, of string) []string {
	t.Helper()
	block := regexp.MustCompile(`(?ms)^( *)(?:declare )?(?:interface|class) ` + of + `\b[^\n]*\{\n(.*?)^( *)\}`).
		FindStringSubmatch(text)
	require.NotNil(t, block, of)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:readonly )?(\w+)[(<?:]`).FindAllStringSubmatch(block[2], -1) {
		if m[1] != "constructor" {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

// The types declare exactly the members that objects of the runtime have.
func TestTypesFitTheRuntime(t *testing.T) {
	t.Parallel()
	_, text := types(t)
	f := startFleet(t)
	w := f.deploy(t, "types/good.ts", "--var", "GREETING=hello", "--queue", "JOBS=good")
	require.JSONEq(t, `{"greeting":"HELLO","path":"/a","inside":"ada","n":3,"text":"a note\n","locale":"en"}`, w.fetch(t, "POST", "/a", "x").body)
	var task struct {
		N, Bytes           int
		Type, ID, Greeting string
		Members            map[string][]string
	}
	w.task(t, map[string]any{"n": 21}, &task)
	require.Equal(t, 42, task.N)
	require.Equal(t, "task string hello", task.Type+" "+task.ID+" "+task.Greeting)
	require.Len(t, task.Members, 3)
	for name, members := range task.Members {
		require.Equal(t, declared(t, text, name), members, name)
	}
	var scheduled map[string]any
	w.run(t, w.request(events.Scheduled), &scheduled)
	for key, want := range map[string][]string{
		"members": append(declared(t, text, "EventInfo"), declared(t, text, "ScheduledEvent")...),
		"storage": declared(t, text, "AsyncLocalStorage"), "variable": declared(t, text, "Variable"),
		"snapshot": declared(t, text, "Snapshot"),
	} {
		slices.Sort(want)
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(scheduled[key]), key)
	}
}
