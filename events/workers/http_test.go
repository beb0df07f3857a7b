package workers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

func TestRoutesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]workers.Route{
		"shop.acme.example/*":      {Host: "shop.acme.example", Path: "/", Below: true},
		"*.acme.example/api/*":     {Host: "*.acme.example", Path: "/api/", Below: true},
		"a/x%2Fy":                  {Host: "a", Path: "/x%2Fy"},
		"a/":                       {Host: "a", Path: "/"},
		"xn--bcher-kva.example/b*": {Host: "xn--bcher-kva.example", Path: "/b", Below: true},
	} {
		got, err := workers.ParseRoute(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for text, want := range map[string]string{
		"": "a route is HOST/PATH", "shop.example": "a route is HOST/PATH", "/x": `host ""`, "https://a/x": `host "https:"`,
		"a:80/x": `host "a:80"`, "A.example/x": `host "A.example"`,
		"*/x": `host "*"`, "a.*.b/x": `host "a.*.b"`, "a..b/x": "host", "-a/x": "host", "a_b/x": "host",
		"a/*/x": "* only at the end", "a/x?y": "its path has", "a/x y": "its path has",
		"a/../x": "no segment", "a/x/%2e": "no segment", "a/%zz": "its path has",
		"a/" + strings.Repeat("x", 1024): "at most 1024 bytes", strings.Repeat("a.", 130) + "b/": "host",
	} {
		_, err := workers.ParseRoute(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestHostsAreGranted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		grant, host string
		want        bool
	}{
		{"a.test", "a.test", true}, {"a.test", "b.a.test", false}, {"a.test", "*.a.test", false},
		{"*.a.test", "a.test", false}, {"*.a.test", "b.a.test", true},
		{"*.a.test", "c.b.a.test", true}, {"*.a.test", "*.a.test", true}, {"*.a.test", "*.b.a.test", true},
		{"*.b.a.test", "*.a.test", false}, {"*.a.test", "ba.test", false},
		{"*", "x", true}, {"*", "*.x", true}, {"a.test", "aatest", false},
	} {
		require.Equal(t, c.want, workers.Policy{Hosts: []string{"other", c.grant}}.GrantsHost(c.host), "%+v", c)
	}
	require.False(t, workers.Policy{}.GrantsHost("a.test"))
	require.NoError(t, workers.Policy{Hosts: []string{"*", "*.a.test", "b"}}.Validate())
	require.ErrorContains(t, workers.Policy{Hosts: []string{"a", "b/c"}}.Validate(), `hosts[1]: host "b/c"`)
	require.ErrorContains(t, workers.Policy{Hosts: make([]string, 1001)}.Validate(), "hosts has 1001: at most 1000")
	err := workers.Policy{Hosts: []string{"a.test"}}.MayRoute(&workers.HTTP{Routes: []string{"a.test/*", "b.test/*"}})
	require.EqualError(t, err, "http.routes[1] is b.test/*: the owner may not have host b.test: an operator grants it with 'pinwheel owners set OWNER --hosts b.test'")
	require.NoError(t, workers.Policy{}.MayRoute(nil))
}

func TestHTTPOfASpec(t *testing.T) {
	t.Parallel()
	good := workers.Spec{Secrets: []string{"TOKEN"}, HTTP: &workers.HTTP{
		Routes: []string{"a.test/*"}, Base: "/shop/%20&", Delivery: workers.DeliverStored, MaxBody: 10 << 20, Auth: "TOKEN",
		Public: workers.PublicPaths{"GET": {"/health", "/a/:id/*"}, "*": {"/*"}},
		CORS:   &workers.CORS{Origins: []string{"https://a.test", "http://localhost:8080"}, Credentials: true},
	}}
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*workers.HTTP){
		`http.delivery is "later": it is one of direct, stored, accepted`: func(h *workers.HTTP) { h.Delivery = "later" },
		`http.base is "shop": it begins with /`:                           func(h *workers.HTTP) { h.Base = "shop" },
		`http.base is "/": it begins with / and does not end with one`:    func(h *workers.HTTP) { h.Base = "/" },
		`http.base is "/a/": it begins with / and does not end with one`:  func(h *workers.HTTP) { h.Base = "/a/" },
		`http.base is "/a//b": it has no segment that is empty`:           func(h *workers.HTTP) { h.Base = "/a//b" },
		`http.base is "/a/%2E": it has no segment that is empty, . or ..`: func(h *workers.HTTP) { h.Base = "/a/%2E" },
		`http.base is "/a\"b": it has letters`:                            func(h *workers.HTTP) { h.Base = `/a"b` },
		`http.base is "/*": it has letters`:                               func(h *workers.HTTP) { h.Base = "/*" },
		`http.maxBody is -1`:                                              func(h *workers.HTTP) { h.MaxBody = -1 },
		`http.auth is "OTHER": it is one of the secrets`:                  func(h *workers.HTTP) { h.Auth = "OTHER" },
		`http.public is for a worker with http.auth`:                      func(h *workers.HTTP) { h.Auth = "" },
		`http.routes[0] is "a.test": a route is HOST/PATH`:                func(h *workers.HTTP) { h.Routes = []string{"a.test"} },
		`http.routes[1] is "a.test/*", which stands there twice`:          func(h *workers.HTTP) { h.Routes = []string{"a.test/*", "a.test/*"} },
		`http.routes has 101: at most 100 are allowed`:                    func(h *workers.HTTP) { h.Routes = make([]string, 101) },
		`http.public.get is no method`:                                    func(h *workers.HTTP) { h.Public = workers.PublicPaths{"get": {"/"}} },
		`http.public.GET[0] is "health": it begins with /`:                func(h *workers.HTTP) { h.Public = workers.PublicPaths{"GET": {"health"}} },
		`http.public.GET[0] is "/a*": * stands at the end, after a /`:     func(h *workers.HTTP) { h.Public = workers.PublicPaths{"GET": {"/a*"}} },
		`http.public.GET[0] is "/a/../b": it has no segment . or ..`: func(h *workers.HTTP) {
			h.Public = workers.PublicPaths{"GET": {"/a/../b"}}
		},
		`http.public.GET[0] is "/:": segment : is a colon and a name`:                       func(h *workers.HTTP) { h.Public = workers.PublicPaths{"GET": {"/:"}} },
		`http.public.GET[0] is "/a b": a segment has`:                                       func(h *workers.HTTP) { h.Public = workers.PublicPaths{"GET": {"/a b"}} },
		`http.cors.origins has 0`:                                                           func(h *workers.HTTP) { h.CORS.Origins = nil },
		`http.cors.origins[1] is "*", which stands alone`:                                   func(h *workers.HTTP) { h.CORS.Origins = []string{"https://a", "*"} },
		`http.cors.origins[0] is "https://a/": an origin is https://HOST`:                   func(h *workers.HTTP) { h.CORS.Origins = []string{"https://a/"} },
		`http.cors.origins[0] is "a.test": an origin is https://HOST`:                       func(h *workers.HTTP) { h.CORS.Origins = []string{"a.test"} },
		`http.cors.origins[0] is "https://A.test": an origin is https://HOST in lower case`: func(h *workers.HTTP) { h.CORS.Origins = []string{"https://A.test"} },
		`http.cors.credentials is for named origins`:                                        func(h *workers.HTTP) { h.CORS.Origins = []string{"*"} },
		`http.cors.methods[0] is "GET,PUT": it is a name`:                                   func(h *workers.HTTP) { h.CORS.Methods = []string{"GET,PUT"} },
		`http.cors.maxAgeMs is 90000000: it is at most 24 hours`:                            func(h *workers.HTTP) { h.CORS.MaxAge = workers.Millis(25 * 3600e9) },
	} {
		h, c := *good.HTTP, *good.HTTP.CORS
		h.CORS = &c
		change(&h)
		spec := good
		spec.HTTP = &h
		require.ErrorContains(t, spec.Validate(), want)
	}
}

// FuzzPublicPaths: a path that is public is one of the pattern's literal beginning, and no URL parser takes it for
// another.
func FuzzPublicPaths(f *testing.F) {
	f.Add("/a/:id/*", "/a/7/b")
	f.Add("/a/*", "/a/%2e%2e/b")
	f.Add("/", "//")
	f.Add("/", "")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		h := workers.HTTP{Auth: "T", Public: workers.PublicPaths{"*": {pattern}}}
		spec := workers.Spec{Secrets: []string{"T"}, HTTP: &h}
		if spec.Validate() != nil || !h.Public.Match("GET", workers.NewPath(path)) {
			return
		}
		literal, _, _ := strings.Cut(pattern, ":")
		p := workers.NewPath(path)
		require.True(t, strings.HasPrefix(p.Canonical(), workers.PathKey(strings.TrimSuffix(literal, "*"))), "%q %q", pattern,
			path)
		require.False(t, workers.DotSegment(p.URL()) || workers.DotSegment(p.Canonical()))
		path = p.Canonical()
		require.LessOrEqual(t, strings.Count(strings.TrimSuffix(pattern, "*"), "/"), strings.Count(path, "/"), "%q %q",
			pattern, path)
	})
}

func FuzzParseRoute(f *testing.F) {
	f.Add("shop.acme.example/api/*")
	f.Add("*.a/%2F")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := workers.ParseRoute(text)
		if err != nil {
			return
		}
		require.Equal(t, text, r.String())
		require.True(t, strings.HasPrefix(r.Path, "/"))
		require.NotContains(t, r.Host, "/")
	})
}
