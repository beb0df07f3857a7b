package workers_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Each way to write a path, with what the handler sees, what decides, and the file that can be there.
func TestPaths(t *testing.T) {
	t.Parallel()
	const none = "\x00"
	for path, want := range map[string][3]string{ // URL, Canonical, File
		"":                       {"/", "/", "/"},
		"/private/plan.txt":      {"/private/plan.txt", "/private/plan.txt", "/private/plan.txt"},
		"/%70rivate/plan%2etxt":  {"/%70rivate/plan%2etxt", "/private/plan.txt", "/private/plan.txt"},
		"/%2570rivate":           {"/%2570rivate", "/%2570rivate", "/%70rivate"},
		"/./private/x":           {"/private/x", "/private/x", none},
		"/x/../private/":         {"/private/", "/private/", none},
		"/x/%2E./private/.%2e/a": {"/a", "/a", none},
		"/x/%2e":                 {"/x/", "/x/", none},
		"/../..":                 {"/", "/", none},
		"//private//x":           {"//private//x", "//private//x", "//private//x"},
		"//../private":           {"/private", "/private", none},
		"/private;a=b/x":         {"/private;a=b/x", "/private;a=b/x", "/private;a=b/x"},
		"/Private":               {"/Private", "/Private", "/Private"},
		"/private%2fplan.txt":    {"/private%2fplan.txt", "/private%2Fplan.txt", none},
		"/private%5Cplan.txt":    {"/private%5Cplan.txt", "/private%5Cplan.txt", none},
		`/private\plan.txt`:      {"/private%5Cplan.txt", "/private%5Cplan.txt", none},
		"/private/plan.txt%00":   {"/private/plan.txt%00", "/private/plan.txt%00", none},
		"/private%c0%afplan.txt": {"/private%c0%afplan.txt", "/private%C0%AFplan.txt", none},
		"/a%zz":                  {"/a%zz", "/a%25zz", none},
		"/a%2":                   {"/a%2", "/a%252", none},
		"/plan.txt%3Fx%23y":      {"/plan.txt%3Fx%23y", "/plan.txt%3Fx%23y", "/plan.txt?x#y"},
		"/caf\u00e9 \"<|>%c3%a9": {"/caf%C3%A9%20%22%3C%7C%3E%c3%a9", "/caf%C3%A9%20%22%3C%7C%3E%C3%A9",
			"/caf\u00e9 \"<|>\u00e9"},
		"/%2e%2e%2fprivate/x": {"/%2e%2e%2fprivate/x", "/..%2Fprivate/x", none},
		"/[%5b]%21!":          {"/[%5b]%21!", "/%5B%5B%5D!!", "/[[]!!"},
		"no/slash":            {"/no/slash", "/no/slash", "/no/slash"},
		"/private/plan.txt/":  {"/private/plan.txt/", "/private/plan.txt/", "/private/plan.txt/"},
		"/..;/private":        {"/..;/private", "/..;/private", "/..;/private"},
		"/%252e%252e/private": {"/%252e%252e/private", "/%252e%252e/private", "/%2e%2e/private"},
		"/.../x":              {"/.../x", "/.../x", "/.../x"},
		"/x/%2e%2e%2e/y":      {"/x/%2e%2e%2e/y", "/x/.../y", "/x/.../y"},
	} {
		p := workers.NewPath(path)
		file, ok := p.File()
		if !ok {
			file = none
		}
		require.Equal(t, want, [3]string{p.URL(), p.Canonical(), file}, path)
	}
	require.False(t, workers.PublicPaths{"GET": {"/*"}}.Match("GET", workers.Path{}), "the zero Path is none")

	below, ok := workers.NewPath("/%73hop/%61pi/x").Below("/shop/a%70i")
	require.True(t, ok)
	require.Equal(t, workers.NewPath("/x"), below)
	for path, want := range map[string]bool{"/shop": true, "/shop/": true, "/shopx": false, "/": false,
		"/x/../shop/y": true, "/shop/../y": false, "//shop": false, "/shop%2fx": false} {
		_, ok := workers.NewPath(path).Below("/shop")
		require.Equal(t, want, ok, path)
	}
}

// Patterns and the paths of files have the same form as paths of requests.
func TestPatternsOfPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/private/*", "/%70rivate/x", true}, {"/%70rivate/*", "/private/x", true}, {"/private/*", "/private", false},
		{"/private/*", "/private/", true},
		{"/private/*", "/Private/x", false}, {"/private/*", "//private/x", false}, {"/private/*", "/%2570rivate/x", false},
		{"/private/*", "/y/../private/x", false},
		{"/docs/:page", "/docs/internal%2fplan.txt", false}, {"/docs/:page", "/docs/a%5cb", false},
		{"/docs/:page", "/docs/a%00", false}, {"/docs/:page", "/docs/%c0%af", false},
		{"/docs/:page", "/docs/%2e%2e%2fx", false}, {"/docs/:page", "/docs/a%20b", true}, {"/docs/:page", "/docs/", false},
		{"/docs/:page", "/docs/a/", false},
		{"/docs/a%2fb", "/docs/a%2fb", false}, {"/%3aid", "/x", false}, {"/%3aid", "/:id", true}, {"/*", "/%2f", false},
		{"/*", "/", true}, {"/a%2a", "/a*", true},
	} {
		got := workers.PublicPaths{"*": {c.pattern}}.Match("GET", workers.NewPath(c.path))
		require.Equal(t, c.want, got, "%s %s", c.pattern, c.path)
		require.Equal(t, c.want, (&workers.Assets{WorkerFirst: []string{c.pattern}}).First(workers.NewPath(c.path)), "%s %s",
			c.pattern, c.path)
	}
}

// FuzzPaths: a path has one canonical form, whatever is escaped; the file at it is found again at its own path.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"/%70rivate/a%2fb", "/x/.%2E/y", "//", "/%", "/%zz%41", "\\\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p := workers.NewPath(path)
		require.Equal(t, p.URL(), workers.NewPath(p.URL()).URL(), "a URL parser finds nothing to change")
		require.Equal(t, p.Canonical(), workers.NewPath(p.Canonical()).Canonical())
		require.True(t, strings.HasPrefix(p.Canonical(), "/"))
		require.Equal(t, strings.Count(p.URL(), "/"), strings.Count(p.Canonical(), "/"))
		file, ok := p.File()
		if !ok {
			return
		}
		decoded, err := url.PathUnescape(p.URL())
		require.NoError(t, err)
		require.Equal(t, decoded, file)
		require.Equal(t, strings.Count(p.URL(), "/"), strings.Count(file, "/"))
		require.False(t, workers.DotSegment(file) && !strings.Contains(file, "%"))
		require.Equal(t, p.Canonical(), workers.PathOfFile(file).Canonical())
	})
}
