package assets

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIgnoredFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lines, ignored, served string }{
		{"_worker.js\n_routes.json\r\n# a comment\n\n", "_worker.js a/_worker.js _ROUTES.json",
			"worker.js a_worker.js _worker.js.map"},
		{"/a.js\nd/b.js", "a.js d/b.js", "d/a.js b.js e/d/b.js"},
		{"dir/", "dir/ x/dir/", "dir"},
		{"*.map\n!keep.map", "a.map d/b.map", "keep.map d/keep.map a.map.js"},
		{"**/secret\na/**/z\nlogs/**", "secret x/y/secret a/z a/b/c/z logs/x logs/x/y", "xsecret az logs a/b"},
		{"a?c\n[x-z]1\n[!0-9]2\n\\!b\n\\[", "abc y1 a2 !b [", "a/c ac a1 22 b"},
		{"[]a]\n[\\]x]3\n[.]4", "] a ]3 x3 .4", "b 33 a4"},
		{"trailing  \nkept\\ ", "trailing|kept ", "trailing  |kept"},
		{"*\n!*.html", "a.js d", "a.html d/a.html"},
		{"é*\n.", "éa . a/.", "e a.b"},
	} {
		list, err := parseIgnores(c.lines)
		require.NoError(t, err, c.lines)
		for want, paths := range map[bool]string{true: c.ignored, false: c.served} {
			by := " "
			if strings.Contains(paths, "|") {
				by = "|"
			}
			for path := range strings.SplitSeq(paths, by) {
				name, isDir := strings.CutSuffix(path, "/")
				require.Equal(t, want, list.match(name, isDir), "%q of %q", path, c.lines)
			}
		}
	}
}

func TestIgnoresThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"a\n[b":                                 `.assetsignore:2:1: "[b" is no pattern as in a .gitignore`,
		"/":                                     `.assetsignore:1:1: "/" is no pattern`,
		"[b-a]":                                 `.assetsignore:1:1: "[b-a]" is no pattern`,
		"\xff":                                  `.assetsignore:1:1: "\xff" is no pattern`,
		strings.Repeat("a\n", maxIgnoreLines+1): ".assetsignore:1001:1: there are more than 1000 lines",
		strings.Repeat("a", maxIgnoreBytes) + "\n": ".assetsignore: it has 65537 bytes: at most 65536 are read",
	} {
		dir := t.TempDir()
		write(t, dir, ignoreFile, text)
		_, err := Open(dir, "dist")
		require.ErrorContains(t, err, says)
		var fault *Error
		require.ErrorAs(t, err, &fault)
	}
}

func TestFolderLeavesOutWhatItsAuthorIgnores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, text := range map[string]string{
		ignoreFile: "_worker.js\nserver/\n_headers\n", headersFile: "/*\n  X-A: b\n", "_worker.js": "const secret = 1",
		"server/a.js": "x", "server/deep/b.js": "x", "index.html": "<p>", "a/server.js": "x", ".hidden": "x",
	} {
		write(t, dir, path, text)
	}
	f, err := Open(dir, "dist")
	require.NoError(t, err)
	require.Equal(t, []string{"/a/server.js", "/index.html"}, slices.Sorted(maps.Keys(f.List.Files)))
	require.Len(t, f.List.Headers, 1, "SvelteKit's adapter ignores the files with rules, and means them")
	require.Len(t, f.Notes, 1, "the author has said so: no note about what is ignored")
	require.Contains(t, f.Notes[0], ".hidden")
}

func FuzzIgnores(f *testing.F) {
	f.Add("*.map\n!a/[b-c]?\n**/x/", "a/b")
	f.Fuzz(func(t *testing.T, text, path string) {
		list, err := parseIgnores(text)
		if err != nil {
			return
		}
		list.match(path, true)
	})
}
