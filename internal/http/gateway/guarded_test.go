package gateway

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// plan is the text of the files that a guard or a token is before, and home that of those which are public.
const plan, home = "the plan", "home"

// planFiles are files with rules that lead to them.
func planFiles() *memoryFiles {
	files := newMemoryFiles()
	rule := func(from, to string, status int) assets.Redirect {
		return assets.Redirect{From: from, To: to, Status: status}
	}
	files.put(filesOf2, map[string]string{
		"/private/plan.txt": plan, "/private/index.html": plan, "/private/page.html": plan, "/exact.html": plan,
		"/dir/index.html": plan, "/docs/internal/plan.txt": plan,
		"/docs/open.txt": home, "/public.txt": home, "/index.html": home, "/caf\u00e9.txt": plan, "/%70rivate/plan.txt": home,
	}, rule("/fixed", "/private/plan.txt", 200), rule("/escaped", "/%70rivate/plan.txt", 200),
		rule("/page", "/private/page", 200), rule("/exactly", "/exact", 200),
		rule("/up", "/x/../private/plan.txt", 200), rule("/r/*", "/:splat", 200), rule("/s/:file", "/private/:file", 200),
		rule("/docs/leak", "/docs/internal/plan.txt", 200),
		rule("/docs/fine", "/docs/open.txt", 200), rule("/gone/*", "/public.txt?/:splat", 302))
	return files
}

// pathForms are ways to write paths, with those that lead to a file which is kept from the public, whoever decides.
var pathForms = []struct {
	path string
	want string // home, plan (of who may see it), or "" = nothing
}{
	{"/private/plan.txt", plan}, {"/%70rivate/plan.txt", plan}, {"/private/plan%2Etxt", plan},
	{"/%70%72%69%76%61%74%65/%70lan.txt", plan}, {"/private/index.html", ""}, {"/private/", plan},
	{"/private/page", plan}, {"/%70rivate/page", plan}, {"/exact", plan}, {"/ex%61ct", plan}, {"/dir/", plan},
	{"/d%69r/", plan}, {"/caf%C3%A9.txt", plan}, {"/caf%c3%a9.txt", plan}, {"/caf\u00e9.txt", plan},
	{"/fixed", plan}, {"/f%69xed", plan}, {"/escaped", plan}, {"/page", plan}, {"/exactly", plan},
	{"/r/private/plan.txt", plan}, {"/r//private/plan.txt", plan}, {"/r/%70rivate/plan.txt", plan}, {"/s/plan.txt", plan},
	{"/up", ""}, {"/r/x/../../private/plan.txt", ""}, {"/%2570rivate/plan.txt", home}, {"/public.txt", home},
	{"/docs/open.txt", home}, {"/docs/leak", plan}, {"/docs/internal/plan.txt", plan}, {"/docs/fine", home},
	{"/private%2fplan.txt", ""}, {"/private%2Fplan.txt", ""}, {"/private%5cplan.txt", ""}, {`/private\plan.txt`, ""},
	{"/private/plan.txt%00", ""}, {"/private%00/plan.txt", ""}, {"/private%c0%afplan.txt", ""},
	{"/docs/internal%2fplan.txt", ""}, {"/docs/internal%5cplan.txt", ""}, {"/docs/internal%252fplan.txt", ""},
	{"/docs/x%2f..%2finternal%2fplan.txt", ""}, {"/docs/internal%c0%afplan.txt", ""}, {"/docs/internal%2fplan.txt%00", ""},
	{"/./private/plan.txt", ""}, {"/x/../private/plan.txt", ""}, {"/x/%2e%2e/private/plan.txt", ""},
	{"/docs/../private/plan.txt", ""}, {"/docs/%2e/internal/plan.txt", ""}, {"//private/plan.txt", ""},
	{"/private//plan.txt", ""},
	{"/private;x/plan.txt", ""}, {"/private/plan.txt;x", ""}, {"/Private/plan.txt", ""}, {"/private/plan.txt/", ""},
	{"/private/plan.txt%3f", ""}, {"/private/plan.txt%23x", ""}, {"/s/..%2fprivate%2fplan.txt", ""},
	{"/r/%2fprivate/plan.txt", ""},
}

// Each way to write a path, with each of the two that keep a file from the public: the handler of workerFirst, and a
// token with public paths. Whoever may not see it, sees it in no way.
func TestPathsAndWhoDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guarded, public []string
	}{
		"workerFirst": {guarded: []string{"/private/*", "/exact", "/dir", "/caf\u00e9.txt", "/docs/internal/*"}},
		"workerFirst, escaped": {guarded: []string{"/%70rivate/*", "/%65xact/", "/dir/index.html", "/caf%C3%A9.txt",
			"/docs/:x/plan.txt"}},
		"public": {public: []string{"/docs/:page", "/public.txt", "/r/*", "/s/*", "/fixed", "/page", "/exactly", "/escaped",
			"/up", "/%2570rivate/*"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, p := range c.guarded {
				c.guarded[i] = strings.ReplaceAll(p, "\u00e9", "%c3%a9")
			}
			w := version(2, nil)
			w.Assets, w.Handlers = &workers.Assets{Files: filesOf2, WorkerFirst: c.guarded}, []events.Kind{events.Fetch}
			if c.public != nil {
				w.HTTP = &workers.HTTP{Auth: "TOKEN", Public: workers.PublicPaths{"GET": c.public}}
			}
			s := &seen{}
			_, addr := open(t, domain, s.handle, (&backend{secrets: map[string]string{"TOKEN": "s3cret"}}).only(w).in,
				func(g *Gateway) { g.Files = planFiles() })
			for _, f := range pathForms {
				r := getFile(t, addr, f.path)
				got := text(t, r)
				if ran := len(s.take()) > 0; c.public == nil {
					redirected := r.StatusCode == http.StatusTemporaryRedirect
					require.Equal(t, f.want == home, got == home, f.path)
					require.Equal(t, f.want != home && !redirected, ran, "%s: the handler runs: %s", f.path, r.Status)
				} else if f.want != home {
					require.True(t, r.StatusCode == http.StatusUnauthorized || ran && got == "ok", "%s: %s %s", f.path, r.Status, got)
				} else {
					require.Equal(t, home, got, f.path)
				}
				require.NotEqual(t, plan, got, f.path)
				if c.public != nil && f.want != "" {
					r := getFile(t, addr, f.path, "X-Token", "s3cret")
					if r.StatusCode == http.StatusTemporaryRedirect { // to the one way to write the path
						require.Equal(t, workers.NewPath(f.path).Canonical(), r.Header.Get("Location"))
						r = getFile(t, addr, r.Header.Get("Location"), "X-Token", "s3cret")
					}
					require.Equal(t, f.want, text(t, r), "%s with the token", f.path)
				}
			}
		})
	}
}

// A page that answers what is not found is guarded, too. Without a handler, nothing answers there.
func TestGuardedPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first    []string
		how      workers.NotFound
		handlers []events.Kind
		path     string
		want     string
	}{
		{[]string{"/"}, workers.NotFoundSPA, []events.Kind{events.Fetch}, "/app/x", "ok"},
		{[]string{"/other"}, workers.NotFoundSPA, []events.Kind{events.Fetch}, "/app/x", home},
		{[]string{"/other"}, workers.NotFoundSPA, []events.Kind{events.Fetch}, "/app%2fx", "ok"},
		{[]string{"/"}, workers.NotFoundSPA, []events.Kind{events.Task}, "/app/x", noFile.text + "\n"},
		{[]string{"/private/*"}, workers.NotFoundNone, []events.Kind{events.Task}, "/private/plan.txt", noFile.text + "\n"},
		{[]string{"/private/*"}, workers.NotFoundNone, []events.Kind{events.Task}, "/fixed", noFile.text + "\n"},
	} {
		w := version(2, nil)
		w.Assets, w.Handlers = &workers.Assets{Files: filesOf2, WorkerFirst: c.first, NotFound: c.how}, c.handlers
		_, addr := open(t, domain, (&seen{}).handle, (&backend{}).only(w).in, func(g *Gateway) { g.Files = planFiles() })
		require.Equal(t, c.want, text(t, getFile(t, addr, c.path, "Sec-Fetch-Mode", "navigate")), c)
	}
}

// Routes and the paths of workers are found by the same form.
func TestRoutesOfPathForms(t *testing.T) {
	t.Parallel()
	s := &seen{}
	_, addr := open(t, Config{Paths: "dev"}, s.handle, func(g *Gateway) {
		g.Routes.SetPolicy("acme", workers.Policy{Hosts: []string{"h.test"}})
		g.Routes.Install(routed("acme", "admin", "h.test/%61dmin/*"))
		g.Routes.Install(routed("acme", "site", "h.test/*"))
	})
	for path, want := range map[string]string{
		"/admin/x": "admin", "/%61dmin/x": "admin", "/admi%6E/": "admin", "/x/../admin/y": "admin",
		"/x/%2e%2e/admin/y": "admin", "/admin/../x": "site", "/admin": "site",
		"/admin%2fx": "site", "/%2561dmin/x": "site", "//admin/x": "site", "/Admin/x": "site",
	} {
		list := raw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: h.test\r\nConnection: close\r\n\r\n", 1)
		require.Equal(t, http.StatusOK, list[0].StatusCode, path)
		require.Equal(t, want, s.take()[0].Worker, path)
	}
}

// FuzzGuardedFiles: whatever the path of a request is, a file that workerFirst or a missing token keeps from the public
// is not served.
func FuzzGuardedFiles(f *testing.F) {
	for _, form := range pathForms {
		f.Add(form.path, "/private/*", "/docs/:page")
	}
	f.Add("/dir", "/dir/", "/*")
	f.Fuzz(func(t *testing.T, path, guard, public string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + path + " HTTP/1.1\r\nHost: " + shop +
			"\r\n\r\n")))
		if err != nil {
			return
		}
		r.RemoteAddr = "192.0.2.7:1234"
		w := version(2, &workers.HTTP{Auth: "TOKEN", Public: workers.PublicPaths{"GET": {public}}})
		w.Assets, w.Handlers, w.Secrets = &workers.Assets{Directory: ".", Files: strings.Repeat("2", 64),
			WorkerFirst: []string{guard}}, []events.Kind{events.Fetch}, []string{"TOKEN"}
		if w.Validate() != nil {
			return
		}
		files := planFiles()
		files.lists[w.Assets.Files] = files.lists[filesOf2]
		ran := false
		g := newGateway(t, domain, answers(func(*lifecycle.Delivery) { ran = true }))
		g.Workers = (&backend{secrets: map[string]string{"TOKEN": "s3cret"}}).only(w)
		g.Files = files
		rec := httptest.NewRecorder()
		g.ServeHTTP(rec, r)
		if ran || rec.Code != http.StatusOK {
			return
		}
		// A file answered. Which one it is, its bytes say.
		list := files.lists[filesOf2]
		open := slices.ContainsFunc(slices.Collect(keysOf(list.Files)), func(file string) bool {
			at := workers.PathOfFile(file)
			return files.bytes[list.Files[file].Hash] == rec.Body.String() && !w.Assets.First(at)
		})
		require.True(t, open, "%q with %q served %q", path, guard, rec.Body)
		require.True(t, w.HTTP.Public.Match("GET", workers.NewPath(r.URL.EscapedPath())), path)
	})
}

func keysOf(m map[string]assets.File) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
