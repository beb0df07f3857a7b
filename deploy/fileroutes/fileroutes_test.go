package fileroutes

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func isSource(name string) bool { return path.Ext(name) == ".ts" || path.Ext(name) == ".js" }

func nothingOff(string) (bool, error) { return false, nil }

func tree(files ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for _, f := range files {
		fs[f] = &fstest.MapFile{}
	}
	return fs
}

func TestRoutes(t *testing.T) {
	got, err := Read(tree("index.ts", "users/index.js", "users/[id].ts", "users/pre.js", "users/post.ts",
		"users/[id]/posts/[post].ts", "files/[...path].ts", "café.js",
		"pre.js", "_helper.ts", ".x/y.ts", "node_modules/a/b.js", "read.me", "a b.ts", "index/index.ts"), isSource,
		nothingOff)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"/": "index.ts", "/users": "users/index.js", "/users/:id": "users/[id].ts",
		"/users/:id/posts/:post": "users/[id]/posts/[post].ts",
		"/files/:path+":          "files/[...path].ts", "/café": "café.js", "/a b": "a b.ts", "/index": "index/index.ts",
	}, got.routes)
	require.Equal(t, map[string]string{"users": "users/pre.js", ".": "pre.js"}, got.pre)
	require.Equal(t, map[string]string{"users": "users/post.ts"}, got.post)
	require.Equal(t, []string{".", "files", "index", "users", "users/[id]", "users/[id]/posts"}, got.Dirs)
	require.Len(t, got.Files, 11)
	require.Equal(t, []string{
		".x has no route: its name begins with . or _, or it is node_modules", "_helper.ts has no route: its name begins with . or _, or it is node_modules",
		"node_modules has no route: its name begins with . or _, or it is node_modules", "read.me has no route: it is no source",
	}, got.Notes)
	entry := got.Entry("api", "src/index.ts")
	require.Contains(t, entry, `import * as source from "./src/index.ts";`)
	require.Contains(t, entry, `from "./api/users/[id].ts";`)
	require.Equal(t, 1, strings.Count(entry, `from "./api/users/pre.js";`))
	require.Regexp(t, `\["/users/:id", "api/users/\[id\]\.ts", module\d+, module\d+, module\d+\]`, entry)
	require.Regexp(t, `\["/files/:path\+", "api/files/\[\.\.\.path\]\.ts", module\d+, null, null\]`, entry)
	require.Contains(t, entry, "export default around(source.default, compose([")
}

func TestFilesThatAreOff(t *testing.T) {
	off := func(path string) (bool, error) { return strings.HasPrefix(path, "old/") || path == "pre.js", nil }
	got, err := Read(tree("a.ts", "old/a.ts", "old/pre.ts", "pre.js"), isSource, off)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"/a": "a.ts"}, got.routes)
	require.Empty(t, got.pre)
	require.Equal(t, []string{"a.ts"}, got.Files)
	require.Equal(t, []string{"old/a.ts", "old/pre.ts", "pre.js"}, got.Off)
	require.Contains(t, got.Notes, "old/a.ts is left out: // @enabled false")

	_, err = Read(tree("old/a.ts"), isSource, off)
	require.ErrorContains(t, err, "it has no file with a route")
	_, err = Read(tree("a.ts"), isSource, func(string) (bool, error) { return false, fs.ErrPermission })
	require.ErrorIs(t, err, fs.ErrPermission)
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"[...rest]/a.ts":    `[...rest]/a.ts: [...rest] is the name of a file, at the end of the path`,
		"[[...rest]].ts":    `the name "[[...rest]]" is none of a route`,
		"[a-b].ts":          `the name "[a-b]" is none of a route`,
		"a[b].ts":           `is none of a route`,
		":a.ts":             `is none of a route`,
		"a*.ts":             `is none of a route`,
		"a%20b.ts":          `is none of a route`,
		"what?.ts":          `is none of a route`,
		"a.js a.ts":         `a.ts: a.js is the same: keep one of them`,
		"a/index.ts a.ts":   `a.ts: a/index.ts is the same`,
		"a/pre.js a/pre.ts": `a/pre.ts: a/pre.js is the same`,
		"read.me":           `.: it has no file with a route`,
		"pre.js":            `.: it has no file with a route`,
	} {
		_, err := Read(tree(strings.Fields(name)...), isSource, nothingOff)
		require.ErrorContains(t, err, want, name)
		require.ErrorAs(t, err, new(*Error))
	}
}

// The path that a name gives is one that a route of JavaScript may have, with each parameter of the name.
func FuzzRouteOf(f *testing.F) {
	f.Add("users/[id]/[...rest]")
	f.Add("index")
	f.Fuzz(func(t *testing.T, file string) {
		route, err := routeOf(file)
		if err != nil {
			return
		}
		require.True(t, strings.HasPrefix(route, "/"))
		require.NotContains(t, route, "[")
		for i, s := range strings.Split(route[1:], "/") {
			if strings.Contains(s, ":") {
				require.Regexp(t, `^:[A-Za-z_][A-Za-z0-9_]*\+?$`, s)
			}
			require.NotContains(t, s, "*")
			_ = i
		}
	})
}
