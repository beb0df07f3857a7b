package js

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// V8 keeps the texts of the runtime outside its heaps only if they are ASCII.
func TestRuntimeIsInASCII(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\u2026\u00e9\ud83d\ude00\n`+"\n", ascii("a…é😀\\n\n"))
	files, err := Files()
	require.NoError(t, err)
	for _, f := range files {
		require.Equal(t, f.Text, ascii(f.Text), f.Name)
	}
}

// order.txt gives the order in which the files of the runtime are evaluated. A file that it does not name would never
// be evaluated.
func TestOrderNamesEachFileOnce(t *testing.T) {
	t.Parallel()
	files, err := list()
	require.NoError(t, err)
	var listed, there []string
	require.NoError(t, fs.WalkDir(text, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".js") {
			there = append(there, path)
		}
		return err
	}))
	for _, f := range files {
		listed = append(listed, f.Name)
	}
	slices.Sort(listed)
	slices.Sort(there)
	require.Equal(t, there, listed)
}

// What a file takes from internal is of its own folder or of an earlier one, in the order at the top of order.txt.
// Names of features may be of later folders: runtime/features.js has them, and they are looked for when used.
func TestFoldersTakeNamesOfEarlierOnes(t *testing.T) {
	t.Parallel()
	order, err := text.ReadFile("order.txt")
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(order), "\n")
	folders := strings.Fields(strings.TrimPrefix(first, "# Folders:"))
	require.Len(t, folders, 11)
	files, err := list()
	require.NoError(t, err)

	comment := regexp.MustCompile(`(?m)//.*$`)
	gives := regexp.MustCompile(`\binternal\.(\w+) = `)
	takes := regexp.MustCompile(`\binternal\.(\w+)`)
	list := regexp.MustCompile(`(?s)const \{([^}]*)\} = internal;`)
	code, from := map[string]string{}, map[string]string{} // by file; by name
	for _, f := range files {
		source, err := text.ReadFile(f.Name)
		require.NoError(t, err)
		code[f.Name] = comment.ReplaceAllString(string(source), "")
		for _, m := range gives.FindAllStringSubmatch(code[f.Name], -1) {
			if f.Feature == "" && from[m[1]] == "" {
				from[m[1]] = f.Name
			}
		}
	}
	require.Greater(t, len(from), 100)
	place := func(file string) int {
		at := slices.Index(folders, strings.Split(file, "/")[0])
		require.NotEqual(t, -1, at, file)
		return at
	}
	for file, source := range code {
		var taken []string
		for _, m := range takes.FindAllStringSubmatch(source, -1) {
			taken = append(taken, m[1])
		}
		for _, m := range list.FindAllStringSubmatch(source, -1) {
			for _, name := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == '\n' }) {
				name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
				taken = append(taken, name)
			}
		}
		for _, name := range taken {
			if giver := from[name]; giver != "" && place(giver) > place(file) {
				t.Errorf("js/%s takes %s from js/%s, a later folder", file, name, giver)
			}
		}
	}
}
