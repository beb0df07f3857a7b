package assets

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

func listOf(paths ...string) *List {
	l := &List{Files: map[string]File{}}
	for _, p := range paths {
		l.Files[p] = File{Hash: HashOf([]byte(p)), Size: 1, Type: typeOf(p)}
	}
	return l
}

// The four ways to write the path of a page. workerd, by miniflare, answers each of these in the same way, except
// //file, which it sends to /file.
func TestFind(t *testing.T) {
	t.Parallel()
	l := listOf("/index.html", "/file.html", "/folder/index.html", "/script.js", "/both.html", "/both/index.html")
	const none = ""
	for path, want := range map[string][4]string{ // auto, force, drop, none
		"/":                  {"= /index.html", "= /index.html", "= /index.html", none},
		"/index":             {"> /", "> /", "> /", none},
		"/index.html":        {"> /", "> /", "> /", "= /index.html"},
		"/file":              {"= /file.html", "> /file/", "= /file.html", none},
		"/file.html":         {"> /file", "> /file/", "> /file", "= /file.html"},
		"/file/":             {"> /file", "= /file.html", "> /file", none},
		"/file/index":        {"> /file", "> /file/", "> /file", none},
		"/file/index.html":   {"> /file", "> /file/", "> /file", none},
		"/folder":            {"> /folder/", "> /folder/", "= /folder/index.html", none},
		"/folder.html":       {"> /folder/", "> /folder/", "> /folder", none},
		"/folder/":           {"= /folder/index.html", "= /folder/index.html", "> /folder", none},
		"/folder/index":      {"> /folder/", "> /folder/", "> /folder", none},
		"/folder/index.html": {"> /folder/", "> /folder/", "> /folder", "= /folder/index.html"},
		"/script.js":         {"= /script.js", "= /script.js", "= /script.js", "= /script.js"},
		"/both":              {"= /both.html", "> /both/", "= /both.html", none}, // two pages for one path
		"/both/":             {"= /both/index.html", "= /both/index.html", "> /both", none},
		"/script.js/":        {none, none, none, none},
		"//file":             {none, none, none, none},
		"//":                 {none, none, none, none},
		"/FILE":              {none, none, none, none},
	} {
		for i, how := range []workers.HTMLHandling{workers.HTMLAuto, workers.HTMLForce, workers.HTMLDrop, workers.HTMLNone} {
			got := none
			if f, ok := l.Find(workers.PathOfFile(path), how); ok && f.File != "" {
				got = "= " + f.File
			} else if ok {
				got = "> " + f.Redirect
			}
			require.Equal(t, want[i], got, "%s with %s", path, how)
		}
	}
}

// Where a page leads, it is: nobody is sent around in circles, nor to another host.
func FuzzFind(f *testing.F) {
	f.Add("/file/", "/file.html", 0)
	f.Add("//evil.example/", "/evil.example/index.html", 1)
	f.Add("/index/index.html", "/index/index.html", 2)
	f.Add("/.html", "/.html", 0)
	f.Fuzz(func(t *testing.T, path, file string, how int) {
		if wrongPath(file) != "" {
			return
		}
		l, html := listOf(file), []workers.HTMLHandling{workers.HTMLAuto, workers.HTMLForce, workers.HTMLDrop,
			workers.HTMLNone}[how&3]
		found, ok := l.Find(workers.PathOfFile(path), html)
		if !ok || found.File != "" {
			return
		}
		require.True(t, strings.HasPrefix(found.Redirect, "/") && !strings.HasPrefix(found.Redirect, "//"), found.Redirect)
		again, ok := l.Find(workers.PathOfFile(found.Redirect), html)
		require.True(t, ok, found.Redirect)
		require.Equal(t, file, again.File, "%q leads to %q", path, found.Redirect)
	})
}

func TestNotFoundPages(t *testing.T) {
	t.Parallel()
	l := listOf("/index.html", "/404.html", "/docs/404.html")
	for path, want := range map[string]string{"/x": "/404.html", "/docs/x": "/docs/404.html",
		"/docs/a/b": "/docs/404.html", "/other/x": "/404.html", "": "/404.html"} {
		if path != "" {
			require.Equal(t, want, l.NotFound(workers.PathOfFile(path), workers.NotFoundPage), path)
		}
	}
	require.Equal(t, "/index.html", l.NotFound(workers.PathOfFile("/x"), workers.NotFoundSPA))
	require.Empty(t, l.NotFound(workers.PathOfFile("/x"), workers.NotFoundNone))
	require.Empty(t, listOf("/a").NotFound(workers.PathOfFile("/x/y"), workers.NotFoundPage))
	require.Empty(t, listOf("/a").NotFound(workers.PathOfFile("/x"), workers.NotFoundSPA))
}

func decoded(t *testing.T, l *List) *List {
	t.Helper()
	text, _, err := l.Encode()
	require.NoError(t, err)
	l, err = Decode(text)
	require.NoError(t, err)
	return l
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	rules, _, err := parseRedirects([]byte("# moved\n/old /new 301\n  /old/* /new/:splat\n/u/:id/x https://u.example/:id?from=:id#top 308\n/same /:splat\n/all/* /:splat 307\n/file /f.html 200\n/q /r?own=1\n"))
	require.NoError(t, err)
	l := decoded(t, &List{Redirects: rules})
	for path, want := range map[string]string{
		"/old":                "301 /new?q=1",
		"/old/a/b c":          "302 /new/a/b%20c?q=1",
		"/old/":               "302 /new/?q=1",
		"/u/1/x":              "308 https://u.example/1?from=1#top",
		"/u/1/2/x":            "0 ",
		"/u/a?b#c/x":          "308 https://u.example/a%3Fb%23c?from=a%3Fb%23c#top",
		"/same":               "302 /:splat?q=1",
		"/all//evil.example/": "307 /evil.example/?q=1",
		`/all/\evil.example`:  "307 /%5Cevil.example?q=1",
		"/all/\r\nSet: x":     "307 /%0D%0ASet:%20x?q=1",
		"/file":               "200 /f.html",
		"/q":                  "302 /r?own=1",
		"/Old":                "0 ",
	} {
		to, status := l.Location(workers.PathOfFile(path), "?q=1")
		require.Equal(t, want, fmt.Sprint(status, " ", to), path)
	}
	for line, want := range map[string]string{
		"/a":                               "_redirects:1:1: a line is FROM TO",
		"\n  /a /b 301 x":                  "_redirects:2:3: a line is FROM TO",
		"/a /b 404":                        "status 404: it is one of 200, 301",
		"/a /b 3o1":                        `status "3o1"`,
		"a /b":                             `"a" begins with /`,
		"https://x.example/a /b":           "begins with /: a rule is for every host",
		"/a?x /b":                          "has no ? and no #",
		"/a %zz":                           "is no address",
		"/a/%zz /b":                        "is no path",
		"/a //evil.example":                "is a path that begins with one /",
		"/a javascript:alert(1)":           "is a path that begins with one /",
		"/a https://x.example/ 200":        "begins with /: status 200",
		"/:h https://:h.example/":          "has a placeholder in its host",
		"/* https://*.example/":            "has a placeholder in its host",
		"/a/*/b/* /c":                      "has * twice",
		"/:x/:x /c":                        "has :x twice",
		"/a /" + strings.Repeat("x", 2000): "the line has 2004 bytes",
	} {
		_, _, err := parseRedirects([]byte(line))
		require.ErrorContains(t, err, want, line)
	}
	var many strings.Builder
	for i := range 101 {
		fmt.Fprintf(&many, "/%d/* /x\n", i)
	}
	_, _, err = parseRedirects([]byte(many.String()))
	require.ErrorContains(t, err, "_redirects:101:1: there are more than 2000 rules, or more than 100 with")
}

// Rules have the order of the file, and of two lines with one path the first holds: as at Cloudflare.
func TestRedirectsHaveTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "index.html", "home")
	write(t, dir, "_redirects", "/a/* /dynamic/:splat 301 # the old pages\n/a/b /static\n/c /first\n/c /second 308\n/c/* /x#y\n/c/* /z\n")
	f, err := Open(dir, "site")
	require.NoError(t, err)
	l := decoded(t, f.List)
	for path, want := range map[string]string{
		"/a/b": "301 /dynamic/b", "/c": "302 /first", "/c/d": "302 /x#y", "/a": "0 ",
	} {
		to, status := l.Location(workers.PathOfFile(path), "")
		require.Equal(t, want, fmt.Sprint(status, " ", to), path)
	}
	require.Equal(t, []string{"_redirects: /c stands twice, and the first line holds",
		"_redirects: /c/* stands twice, and the first line holds"}, f.Notes)
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	rules, err := parseHeaders([]byte("/*\n  X-Frame-Options: DENY\n  Link: </a.css>; rel=preload\n\n# hashed\n/assets/:name.js\n\tCache-Control: public, max-age=31536000\n\tLink: </:name.map>\n\t! X-Frame-Options\n"))
	require.NoError(t, err)
	l := decoded(t, &List{Headers: rules})
	h := http.Header{"Cache-Control": {"no"}, "Content-Type": {"x"}}
	l.Mark(workers.PathOfFile("/assets/a\r\nb.js"), h)
	require.Equal(t, http.Header{"Cache-Control": {"public, max-age=31536000"}, "Content-Type": {"x"},
		"Link": {"</a.css>; rel=preload, </a%0D%0Ab.map>"}}, h)
	h = http.Header{}
	l.Mark(workers.PathOfFile("/"), h)
	require.Equal(t, http.Header{"X-Frame-Options": {"DENY"}, "Link": {"</a.css>; rel=preload"}}, h)
	for text, want := range map[string]string{
		"  X: y":                                "_headers:1:3: a path comes first",
		"/a\n  X":                               "_headers:2:3: a line below a path is NAME: VALUE",
		"/a\n  X Y: z":                          `"X Y" is no name of a header`,
		"/a\n  content-length: 5":               "content-length cannot be set",
		"/a\n  ! Transfer-Encoding":             "Transfer-Encoding cannot be set",
		"/a\n  X: \x01":                         "the value of X has characters",
		"https://a.example/*\n  X: y":           "begins with /",
		"/a\n" + strings.Repeat(" A: b\n", 101): "_headers:102:2: /a has more than 100 headers",
	} {
		_, err := parseHeaders([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

// A rule is refused or does what it says: a redirect never leaves the host that its author wrote.
func FuzzRedirects(f *testing.F) {
	f.Add("/a/* /:splat", "/a//evil.example")
	f.Add("/:x https://x.example/:x 301", "/@evil.example")
	f.Add("/a /b?x=:y#z 308", "/a")
	f.Fuzz(func(t *testing.T, line, path string) {
		rules, _, err := parseRedirects([]byte(line))
		if err != nil || len(rules) == 0 {
			return
		}
		l := decoded(t, &List{Redirects: rules})
		to, status := l.Location(workers.PathOfFile(path), "?q=1")
		if status == 0 || status == http.StatusOK {
			return
		}
		u, err := url.Parse(to)
		require.NoError(t, err, "%q from %q", to, line)
		for _, r := range rules {
			wrote, err := url.Parse(placeholder.ReplaceAllString(r.To, "x"))
			require.NoError(t, err)
			if wrote.Host == u.Host {
				return
			}
		}
		t.Fatalf("%q with %q leads to %q", line, path, to)
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add("/*\n X: y", "/a")
	f.Add("/:a\n Link: <:a>\n ! Date", "/\r\n")
	f.Fuzz(func(t *testing.T, text, path string) {
		rules, err := parseHeaders([]byte(text))
		if err != nil {
			return
		}
		h := http.Header{}
		decoded(t, &List{Headers: rules}).Mark(workers.PathOfFile(path), h)
		for name, values := range h {
			for _, v := range values {
				require.NotContains(t, name+v, "\n")
				require.NotContains(t, name+v, "\r")
			}
		}
	})
}

// The mark | is where <base> goes.
func TestBaseAt(t *testing.T) {
	for _, page := range []string{
		"<!doctype html><html><head>|<title>x</title></head><body>",
		"<head a='>'>|</head>",
		"\ufeff<!-- <head> --><!DOCTYPE html>\n<HTML lang=en>|\n<title>x</title><head>",
		"<!doctype html>|<title><head></title><p>x",
		"|<p>text</p><head>",
		"|",
		"|text",
		"<!doctype html><!-- c --><head>|<base target=_top><script>'<base href=x>'</script></head>",
		"<html>|<body><base href=x>",
		"<head>|</head><base href=x>",
	} {
		before, after, _ := strings.Cut(page, "|")
		require.Equal(t, int64(len(before))+1, baseAt(strings.NewReader(before+after)), page)
	}
	for _, page := range []string{"<head><base href=/x/>", "<base target=a HREF>",
		"<html><title>x</title><base href=''/>"} {
		require.Zero(t, baseAt(strings.NewReader(page)), page)
	}
}

// A place for <base> is in the page, and a page that has one there has a base.
func FuzzBaseAt(f *testing.F) {
	f.Add("<!doctype html><html><head><title>")
	f.Add("<!--><head>")
	f.Fuzz(func(t *testing.T, page string) {
		at := baseAt(strings.NewReader(page))
		require.GreaterOrEqual(t, at, int64(0))
		require.LessOrEqual(t, at, int64(len(page))+1)
		if at > 0 {
			require.Zero(t, baseAt(strings.NewReader(page[:at-1]+`<base href="/">`+page[at-1:])))
		}
	})
}

func FuzzDecodeList(f *testing.F) {
	text, _, _ := listOf("/a.html").Encode()
	f.Add(text)
	f.Add([]byte(`{"files":{},"redirects":[{"from":"/a","to":"/b","status":301}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Decode(text)
		if err != nil {
			return
		}
		again, hash, err := l.Encode()
		require.NoError(t, err)
		other, err := Decode(again)
		require.NoError(t, err)
		_, same, err := other.Encode()
		require.NoError(t, err)
		require.Equal(t, hash, same)
	})
}

func write(t *testing.T, dir, path, text string) {
	t.Helper()
	full := filepath.Join(dir, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o700))
	require.NoError(t, os.WriteFile(full, []byte(text), 0o600))
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, data := range map[string]string{
		"index.html": "home", "a/b.css": "x", "a/copy.css": "x", ".env": "KEY=1", ".git/config": "x",
		"node_modules/x/y.js": "x", ".well-known/acme": "y",
		"_redirects": "/a /b", "_headers": "/*\n X: y", "a/_headers": "served", "tool.json": "left out",
	} {
		write(t, dir, path, data)
	}
	require.NoError(t, os.Symlink("index.html", filepath.Join(dir, "home.html")))
	f, err := Open(dir, "dist", "tool.json")
	require.NoError(t, err)
	require.Len(t, f.List.Files, 6)
	for _, path := range []string{"/index.html", "/home.html", "/a/b.css", "/a/copy.css", "/a/_headers",
		"/.well-known/acme"} {
		require.Contains(t, f.List.Files, path)
	}
	require.Equal(t, File{Hash: HashOf([]byte("x")), Size: 1, Type: "text/css; charset=utf-8"},
		f.List.Files["/a/copy.css"])
	require.Len(t, f.Hashes(), 4, "equal files are stored once")
	require.Len(t, f.Notes, 3)
	require.ElementsMatch(t, []string{filepath.Join(dir, "*"), filepath.Join(dir, "a", "*"),
		filepath.Join(dir, ".well-known", "*")}, f.Inputs())
	data, contentType, err := f.Read(HashOf([]byte("x")))
	require.NoError(t, err)
	require.Equal(t, []any{"x", "text/css; charset=utf-8"}, []any{string(data), contentType})
	before := f.Hash
	write(t, dir, "index.html", "HOME")
	_, _, err = f.Read(HashOf([]byte("home")))
	require.ErrorContains(t, err, "the file changed while it was deployed")
	f, err = Open(dir, "dist", "tool.json")
	require.NoError(t, err)
	require.NotEqual(t, before, f.Hash)
}

func TestFoldersThatAreRefused(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	for name, c := range map[string]struct {
		make func(dir string)
		says string
	}{
		"link out": {func(dir string) { require.NoError(t, os.Symlink(outside, filepath.Join(dir, "a"))) },
			"a: it cannot be read: it is a link that leads nowhere, or out of the directory"},
		"link up": {func(dir string) { require.NoError(t, os.Symlink("../x", filepath.Join(dir, "a"))) },
			"a: it cannot be read"},
		"link to dir": {func(dir string) {
			write(t, dir, "d/x", "x")
			require.NoError(t, os.Symlink("d", filepath.Join(dir, "a")))
		}, "a: it is a link to a directory"},
		"large": {func(dir string) {
			write(t, dir, "a", "")
			require.NoError(t, os.Truncate(filepath.Join(dir, "a"), MaxFile+1))
		}, "a: it has 26214401 bytes: at most 26214400 are served"},
		"name":      {func(dir string) { write(t, dir, "a\nb", "x") }, "its path cannot be served: it has no control characters"},
		"backslash": {func(dir string) { write(t, dir, `a\b`, "x") }, "its path cannot be served"},
		"rules":     {func(dir string) { write(t, dir, "_redirects", "/a\n") }, "_redirects:1:1: a line is FROM TO"},
	} {
		dir := t.TempDir()
		c.make(dir)
		_, err := Open(dir, "dist")
		require.ErrorContains(t, err, c.says, name)
		var fault *Error
		require.ErrorAs(t, err, &fault, name)
	}
}
